import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeBridge

/// Lent messages and their ends between two machines, without servers.
@Suite(.blocking) struct QueueFlowTests {
  /// What the home lends, and the ends that come back.
  private final class Home: FlowJobs {
    var waiting: [FlowEntry] = []
    var bodies: [String: [UInt8]] = [:]
    var ends: [String: [LoanEnd]] = [:]

    func entries(for machine: String) -> [FlowEntry] { waiting }
    func bound(_ entries: [FlowEntry]) { waiting.removeAll { entries.contains($0) } }
    func body(of entry: FlowEntry) -> [UInt8]? { entry.job.flatMap { bodies[$0.id] } }
    func settle(_ file: String, of queue: String) {}
    func end(_ entry: FlowEntry, by machine: String) {
      guard case .worked(let job, let end) = entry.kind else { return }
      ends[job.id, default: []].append(end)
    }
  }

  private let machines: TwoMachines
  private let home = Home()
  private let jobs: Queue<Int>

  init() throws {
    machines = try TwoMachines()
    jobs = machines.there.queue("jobs")
    _ = try machines.opened().there.residents.proxy(
      of: .queue("jobs"), on: TwoMachines.hereName)
  }

  /// The sides, with what a bridge gives its flows.
  private func opened() throws -> QueueTraffic {
    let (here, there) = try machines.opened()
    here.out.jobs = home
    here.incoming.jobs = home
    let traffic = QueueTraffic()
    there.out.jobs = traffic
    let proxy = try #require(there.residents[.queue("jobs")])
    traffic.worked["jobs"] = QueueTraffic.BorrowedQueue(
      machine: TwoMachines.hereName, queue: try WorkedQueue(proxy), heard: .now)
    return traffic
  }

  private func pump() throws {
    let traffic = try opened()
    defer { traffic.stop() }
    let look = try traffic.worked["jobs"]?.queue.look()
    traffic.worked["jobs"]?.look = try #require(look)
    try machines.pump()
  }

  /// A message in the queue of the home.
  private func message(_ number: Int) throws -> (MessageName, [UInt8]) {
    let queue = machines.here.queue("jobs", of: Int.self)
    try queue.send(number)
    let names = try machines.names("here/queues/jobs/inbox")
    let last = try #require(names.last)
    let name = try #require(MessageName(last))
    let directory = try #require(
      try machines.here.storage.existingMember("jobs", in: .queues))
    guard case .sound(let bytes, _) = try directory.read(name.text, in: .inbox, "read") else {
      throw TwoMachines.StillOnTheWay()
    }
    return (name, bytes)
  }

  private func lend(
    _ number: Int, attempt: Int = 1, isMarked: Bool = false
  ) throws -> String {
    let (name, bytes) = try message(number)
    let job = LentQueue.Job(
      id: "\(number).\(attempt)", name: name, attempt: attempt, isMarked: isMarked)
    home.bodies[job.id] = bytes
    home.waiting.append(FlowEntry(.job(FlowJob(job)), to: .queue("jobs"), name))
    return job.id
  }

  private func handle(
    _ count: Int, _ body: @escaping @Sendable (Int, Message) throws -> Void
  ) throws -> [String] {
    let heard = Heard<String>()
    let working = try jobs.work { number, message in
      try body(number, message)
      heard.add("\(number) \(message.attempt) \(message.isRedelivered)")
    }
    try heard.wait("\(count) jobs", within: patience) { $0.count >= count }
    working.stop()
    return heard.all
  }

  @Test func aLentMessageIsHandledAndItsEndComesBack() throws {
    let (first, second, third) = (
      try lend(1), try lend(2, attempt: 2), try lend(3, isMarked: true)
    )
    try pump()
    #expect(try machines.names("there/queues/jobs/inbox") == [])
    #expect(try machines.names("there/queues/jobs/away/inbox").count == 1)
    let handled = try handle(3) { _, _ in }
    #expect(Set(handled) == ["1 1 false", "2 2 true", "3 1 true"])
    try eventually("the ends are there") {
      try machines.names("there/queues/jobs/away/receipts").count == 3
    }
    try pump()
    #expect(home.ends == [first: [.acknowledged], second: [.acknowledged], third: [.acknowledged]])
    try pump()
    #expect(try machines.names("there/queues/jobs/away/receipts") == [])
    #expect(try machines.names("there/queues/jobs/away/workers") == [])
  }

  @Test func whatNoWorkerCanHaveIsGivenBack() throws {
    let ids = [try lend(1), try lend(2, attempt: 2), try lend(3, isMarked: true)]
    try pump()
    let traffic = try opened()
    try traffic.worked["jobs"]?.queue.giveBack()
    traffic.stop()
    try pump()
    for id in ids { #expect(home.ends[id] == [.undone]) }
  }

  /// A message that its worker could not handle is dead for the home, too.
  @Test func aDeadLetterIsTheHomes() throws {
    var options = Options()
    options.mailbox.retryDelay = .milliseconds(1)
    options.mailbox.attempts = 3
    let id = try lend(1, attempt: 2)
    try pump()
    struct Refused: Error {}
    let queue = try SharedContainer(directory: machines.folder.path + "/there", options: options)
      .queue("jobs", of: Int.self)
    let working = try queue.work { _, _ in throw Refused() }
    try eventually("it has failed") {
      try machines.names("there/queues/jobs/away/receipts").count == 1
    }
    working.stop()
    try pump()
    guard case .dead(let reason, let attempts)? = home.ends[id]?.first else {
      Issue.record("\(home.ends)")
      return
    }
    #expect(attempts == 3 && reason.contains("Refused"))
    try pump()
    #expect(try machines.names("there/queues/jobs/away/dead") == [])
  }

  /// The system refuses to read the end at the first look: a later look reports the end.
  ///
  /// Otherwise the message would be handled again.
  @Test(arguments: [Errno.inputOutput, .tooManyOpenFiles])
  func anEndThatCannotBeReadAtPresentIsReportedLater(_ code: Errno) throws {
    let id = try lend(1)
    try pump()
    #expect(try handle(1) { _, _ in } == ["1 1 false"])
    let receipts = "there/queues/jobs/away/receipts"
    try eventually("the end is there") { try machines.names(receipts).count == 1 }
    let file = try #require(try machines.names(receipts).first)
    let rule = FaultRule(.open, path: "away/receipts/\(file)", persistent: true, .fail(code))
    try FaultPoints.with([rule]) { try pump() }
    #expect(try machines.names(receipts) == [file])
    try pump()
    #expect(home.ends == [id: [.acknowledged]])
  }

  /// A message that was long under way may be another worker's by now.
  @Test func aMessageThatArrivesLateIsDropped() throws {
    _ = try lend(1)
    _ = try opened()
    let bundles = try machines.published()
    let there = try machines.opened().there
    for bundle in bundles { try there.incoming.begin(bundle.flow) }
    let delay = LentQueue.deadline / 2 / .nanoseconds(1)
    _ = try there.incoming.receive(bundles.map { (bundle: $0, delay: Int64(delay)) })
    #expect(try machines.names("there/queues/jobs/away/inbox") == [])
    #expect(there.incoming.position?.number == 1)
  }

  /// The home lends the message again and again while the directory of the workers is closed.
  @Test func aMessageThatNoWorkerCanReadLeavesNoFile() throws {
    _ = try lend(1)
    let traffic = try opened()
    defer { traffic.stop() }
    let bundles = try machines.published()
    let rule = FaultRule(
      .open, path: "there/queues/jobs/away", persistent: true, .fail(.accessDenied))
    try FaultPoints.with([rule]) { _ = try machines.receive(bundles) }
    #expect(try machines.names("there/queues/jobs/away/inbox") == [])
    #expect(
      try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"])
  }

  @Test func onlyTheHomeLends() throws {
    _ = try lend(1)
    _ = try opened()
    let bundles = try machines.published()
    let there = try machines.opened().there
    try there.residents.release(.queue("jobs"))
    _ = try machines.receive(bundles)
    #expect(try machines.names("there/queues/jobs/away/inbox") == [])
    withExtendedLifetime(there) {}
  }

  /// A worker that has begun as one of this machine's queue goes on when the queue becomes another
  /// machine's, and when it becomes this machine's again.
  @Test func workersFollowTheirQueue() throws {
    let queue = machines.there.queue("own", of: Int.self)
    let heard = Heard<Int>()
    let working = try queue.work { number, _ in heard.add(number) }
    try queue.send(1)
    try heard.wait("the first job", within: patience) { $0 == [1] }
    let residents = try machines.opened().there.residents
    #expect(throws: Never.self) {
      try eventually("the worker has left") {
        try isProxy("own", residents)
      }
    }
    #expect(throws: Never.self) {
      try eventually("the worker works for the other machine") {
        try machines.names("there/queues/own/away/workers").count == 1
      }
    }
    #expect(try machines.names("there/queues/own/workers") == [])
    try queue.send(2)
    try residents.release(.queue("own"))
    #expect(throws: Never.self) {
      try heard.wait("the second job", within: patience) { $0 == [1, 2] }
    }
    working.stop()
    try eventually("the worker has ended") {
      try machines.names("there/queues/own/workers") == []
        && machines.names("there/queues/own/away/workers") == []
    }
  }

  /// Whether the queue has become one of the other machine.
  private func isProxy(_ name: String, _ residents: Residents) throws -> Bool {
    do throws(WormholeError) {
      _ = try residents.proxy(of: .queue(name), on: TwoMachines.hereName)
      return true
    } catch {
      guard error.code == .nameTaken else { throw error }
      return false
    }
  }

  /// Messages in the hands of handlers, until the test lets the handlers go on.
  private final class Hands: Sendable {
    private let held = Monitor<[(message: Message, resume: @Sendable () -> Void)]>([])

    func hold(_ message: Message) async {
      await withCheckedContinuation { continuation in
        held.signal { $0.append((message, { continuation.resume() })) }
      }
    }

    /// The messages, after so many handlers have begun.
    func messages(_ count: Int) throws -> [Message] {
      try eventually("\(count) messages are in hand") { held.withLock { $0.count } == count }
      return held.withLock { $0.map(\.message) }
    }

    func release() {
      let all = held.withLock { held in
        defer { held = [] }
        return held
      }
      for one in all { one.resume() }
    }
  }

  /// A queue is not given away before the end of its workers.
  ///
  /// A message that has failed goes to the new home, marked.
  @Test func whatWorkersHaveIsNotGivenAway() throws {
    struct Refused: Error {}
    let queue = machines.there.queue("own", of: Int.self)
    let hands = Hands()
    let working = try queue.work { _, message in
      await hands.hold(message)
      throw Refused()
    }
    let id = try queue.send(1).id
    _ = try hands.messages(1)
    let residents = try machines.opened().there.residents
    for _ in 0..<3 { #expect(try !isProxy("own", residents)) }
    hands.release()
    try eventually("the worker has left") { try isProxy("own", residents) }
    let file = try #require(try machines.names("there/queues/own/inbox").first)
    #expect(MessageName(file)?.id == id)
    let home = try #require(try machines.there.storage.existingMember("own", in: .queues))
    guard case .sound(let bytes, _) = try home.read(file, in: .inbox, "read") else {
      Issue.record("the message is gone")
      return
    }
    #expect(try BinaryPropertyList.decode(bytes)["redelivered"] == true)
    #expect(try machines.names("there/queues/own/claimed") == [])
    working.stop()
  }

  /// The home has given the message to another worker: this worker's acknowledgement is refused.
  @Test func whatTheHomeTakesAwayIsNotAcknowledged() throws {
    let (id, other) = (try lend(1), try lend(2))
    try pump()
    let hands = Hands()
    let working = try jobs.work(concurrency: 2) { _, message in await hands.hold(message) }
    let messages = try hands.messages(2)
    let traffic = try opened()
    try traffic.worked["jobs"]?.queue.revoke { MessageOrigin($0)?.job?.id == id }
    traffic.stop()
    let failures = messages.map { message in
      do throws(WormholeError) {
        try message.acknowledge()
        return nil as WormholeError.Code?
      } catch {
        return error.code
      }
    }
    #expect(failures.contains(.superseded) && failures.contains(nil))
    hands.release()
    try pump()
    #expect(home.ends == [id: [.failed], other: [.acknowledged]])
    working.stop()
  }

  /// What programs of this machine send to the queue of another machine goes there.
  @Test func sentMessagesGoToTheHome() throws {
    let sender = try machines.there.join(as: "eve")
    let sent = try sender.queue("jobs", of: Int.self).send(7, SendOptions(wantsOutcome: true))
    try machines.settle()
    #expect(try machines.names("there/queues/jobs/inbox") == [])
    let heard = Heard<Int>()
    let working = try machines.here.queue("jobs", of: Int.self).work { number, message in
      #expect(message.from == "eve")
      heard.add(number)
    }
    try heard.wait("the message", within: patience) { $0 == [7] }
    try eventually("it is settled") { try machines.names("here/queues/jobs/inbox") == [] }
    working.stop()
    try eventually("the outcome comes back") {
      try machines.pump()
      return sent.waitForEnd(until: .now) == .delivered
    }
    #expect(try machines.names("there/queues/jobs/claimed") == [])
  }

  /// A file and a large message go to the home in pieces.
  @Test func largeMessagesGoToTheHome() throws {
    let sender = try machines.there.join(as: "eve")
    let path = machines.folder.path + "/file"
    let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
    try file.writeFully([UInt8](repeating: 7, count: 600 << 10))
    let queue = sender.queue("jobs", of: String.self)
    let text = String(repeating: "x", count: 700 << 10)
    let sent = [
      try queue.send(text, SendOptions(wantsOutcome: true)),
      try queue.send("file", file: path, SendOptions(wantsOutcome: true)),
    ]
    try machines.settle()
    let heard = Heard<String>()
    let working = try machines.here.queue("jobs", of: String.self).work { value, message in
      let file = message.file.flatMap { try? Descriptor.open(path: $0.path, [.readOnly]) }
      let content = (try? file?.contents()) ?? []
      heard.add("\(value.utf8.count) \(content.count) \(message.isRedelivered)")
    }
    try heard.wait("both", within: patience) { $0.count == 2 }
    #expect(heard.all == ["\(700 << 10) 0 false", "4 \(600 << 10) false"])
    working.stop()
    try eventually("the outcomes come back") {
      try machines.pump()
      return sent.allSatisfy { $0.waitForEnd(until: .now) == .delivered }
    }
    for name in ["inbox", "claimed"] {
      #expect(try machines.names("there/queues/jobs/\(name)") == [])
    }
    #expect(try machines.names("there/queues/jobs/files").filter { $0 != "room" } == [])
  }

  /// The bridges are killed before each of their calls, one after the other, or the call fails:
  /// each lent message is handled once, and its end comes back.
  @Test(arguments: [true, false])
  func whicheverCallIsTheLast(_ isKilled: Bool) throws {
    let step = TestRun.isLong ? 1 : 13
    var call = 1 + Int(TestRun.seed % UInt64(step))
    var (number, isReached) = (0, true)
    while isReached {
      number += 1
      let id = try lend(number)
      let rule = FaultRule(nil, number: call, persistent: isKilled, .fail(.inputOutput))
      isReached = try pump(rule)
      try pump()
      try pump()
      #expect(
        try handle(1) { _, _ in } == ["\(number) 1 false"], "call \(call), killed: \(isKilled)")
      try eventually("it has ended") {
        try machines.names("there/queues/jobs/away/receipts").count == 1
      }
      if !isReached { isReached = try pump(rule) }
      try eventually("the end comes back, call \(call)") {
        try pump()
        let left = try machines.names("there/queues/jobs/away/receipts")
        return home.ends[id]?.last == .acknowledged && left == []
      }
      call += step
    }
    #expect(call > 40, "only \(call) calls")
  }

  /// Returns whether the bridges made the call to which the rule applies.
  private func pump(_ rule: FaultRule) throws -> Bool {
    var failure: (any Error)?
    let calls = FaultPoints.with([rule]) { do { try pump() } catch { failure = error } }
    if failure != nil || rule.persistent { machines.kill() }
    return calls.count >= rule.number
  }
}
