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
}
