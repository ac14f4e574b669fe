import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import Wormhole

/// A member that has left retains nothing.
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
}
