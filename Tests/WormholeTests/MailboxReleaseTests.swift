import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// A member that has left retains nothing, and no claim of a message that no handler has.
///
/// The stress found the bug: a member that joined again and again with a claimed batch held more
/// descriptors each time.
@Suite(.blocking) struct MailboxReleaseTests {
  @Test(arguments: [1, 3])
  func whoLeavesWithMessagesInHandKeepsNothing(_ count: Int) throws {
    let folder = try TemporaryDirectory()
    let container = try SharedContainer(directory: folder.path + "/c")
    let sender = try container.join(as: "sender")
    let held = Monitor<[Message]>([])
    weak var mailbox: Mailbox?
    do {
      let member = try container.join(as: "receiver")
      mailbox = member.mailbox
      let receiving = try member.receive(acknowledging: .explicit) { message in
        held.signal { $0.append(message) }
      }
      try sender.peer("receiver").send(contentsOf: Array(0..<count))
      let isHeld = held.wait(until: .now + patience) { $0.count == count ? true : nil }
      #expect(isHeld == true)
      #expect(mailbox != nil)
      member.leave()
      receiving.stop()
    }
    // Released without an acknowledgement.
    held.withLock { $0 = [] }
    try eventually("the mailbox is gone") { mailbox == nil }
    sender.leave()
  }

  /// No handler has the message: the next incarnation gets it as if it had never been claimed.
  @Test func aMessageThatIsClaimedWhileItsMemberLeavesGoesBack() throws {
    let pair = try Pair()
    let mailbox = pair.watch.mailbox
    let number = try mailbox.add(Worker(on: WorkQueue()), kinds: nil)
    try pair.send([1])
    let (hasLeft, leaving) = (Monitor(false), Monitor<Thread?>(nil))
    func pass(_ work: ReceiverWork) {
      guard case .file(let file) = work else { return }
      let thread = try? Thread("leaving") {
        pair.watch.leave()
        hasLeft.signal { $0 = true }
      }
      leaving.withLock { $0 = thread }
      // The receiver has not passed the message on.
      let isEarly = hasLeft.wait(until: .now + .milliseconds(500)) { $0 ? true : nil }
      #expect(isEarly == nil)
      file.delivery.release()
    }
    try eventually("the message is claimed") {
      _ = mailbox.step(for: number, until: { false }, handing: pass)
      return leaving.withLock { $0 != nil }
    }
    leaving.withLock { $0 }?.join()
    #expect(try pair.files("claimed") == [])
    #expect(try pair.files("inbox").count == 1)
  }

  /// A receiver that is being stopped has taken the message back, and has not returned it yet.
  @Test func aMessageThatIsGivenBackWhileItsMemberLeavesIsAwaited() throws {
    let pair = try Pair()
    try pair.send([1])
    let messages = try pair.watch.take(1)
    let (hasLeft, leaving) = (Monitor(false), Monitor<Thread?>(nil))
    pair.watch.mailbox.givingBack {
      let thread = try? Thread("leaving") {
        pair.watch.leave()
        hasLeft.signal { $0 = true }
      }
      leaving.withLock { $0 = thread }
      let isEarly = hasLeft.wait(until: .now + .milliseconds(500)) { $0 ? true : nil }
      #expect(isEarly == nil)
      messages[0].requeue()
    }
    leaving.withLock { $0 }?.join()
    #expect(try pair.files("claimed") == [])
    #expect(try pair.files("inbox").count == 1)
  }

  /// The task of the loop was resumed with the message, and has not continued yet.
  @Test func aMessageThatItsLoopHasNotTakenGoesBack() throws {
    let pair = try Pair()
    let (busy, taken) = (BusyActor(), Heard<Bool>())
    let pump = try Pump(pair.watch.mailbox, nil)
    Task { taken.add(await busy.takes(from: pump)) }
    try eventually("the loop asks") { busy.executor.run() }
    try pair.send([1])
    try eventually("the loop is resumed") { busy.executor.isAsked }
    #expect(try pair.files("claimed").count == 1)
    pair.watch.leave()
    #expect(try pair.files("claimed") == [])
    #expect(try pair.files("inbox").count == 1)
    #expect(busy.executor.run())
    try taken.wait("the end of the loop") { $0 == [false] }
    pump.stop()
  }

  /// The call of the closure waits for its actor: the next incarnation would count the attempt.
  @Test func aMessageWhoseClosureHasNotBegunGoesBack() throws {
    let pair = try Pair()
    let (executor, heard) = (BusyActor.shared.executor, Heard<String>())
    let receiving = try pair.watch.receive {
      @BusyActor (message: Message) async throws -> Void in heard.add(message.id)
    }
    try pair.send([1])
    try eventually("the call waits for its actor") { executor.isAsked }
    #expect(try pair.files("claimed").count == 1)
    pair.watch.leave()
    #expect(try pair.files("claimed") == [])
    #expect(try pair.files("inbox").count == 1)
    #expect(executor.run())
    #expect(heard.all == [])
    receiving.stop()
  }
}

/// An actor that is busy until a test lets it continue.
@globalActor private actor BusyActor {
  static let shared = BusyActor()
  nonisolated let executor = BusyExecutor()

  nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

  /// Whether a loop gets work.
  func takes(from pump: Pump) async -> Bool { await pump.next() != nil }
}

/// Runs jobs on the thread of a test, when the test says so.
private final class BusyExecutor: SerialExecutor {
  private let jobs = Monitor<[UnownedJob]>([])

  var isAsked: Bool { jobs.withLock { !$0.isEmpty } }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    jobs.withLock { $0.append(job) }
  }

  /// Runs the jobs that wait; returns whether there were any.
  func run() -> Bool {
    let waiting = jobs.withLock { jobs in
      defer { jobs = [] }
      return jobs
    }
    for job in waiting { job.runSynchronously(on: asUnownedSerialExecutor()) }
    return !waiting.isEmpty
  }
}
