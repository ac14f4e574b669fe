import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Several senders have given their messages the same identifier.
@Suite(.blocking) struct SharedIdentifierTests {
  /// One message waits here, and the other message is on its way to the home of the receiver.
  @Test func aCancellationIsRequestedOfTheMessageInTransitToo() throws {
    let meeting = try Meeting()
    try meeting.container.join(as: "printer").leave()
    let phone = try meeting.container.join(as: "phone")
    let printer = phone.peer("printer")
    let first = try printer.send(1, .quick { $0.id = "one" })
    let folder = try meeting.folder("members/printer")
    try meeting.folder.descriptor.open("made", [.writeOnly, .create], mode: 0o600)
      .write(Elsewhere(machine: "0123456789abcdef", since: Date()).encoded())
    try meeting.folder.descriptor.rename("made", to: folder, MemberDirectory.elsewhereName)
    // As a carrier claims it.
    try folder.rename("inbox/\(first.name.text)", to: folder, "claimed/\(first.name.text)~1")
    try meeting.container.peer("printer", from: "tv").send(2, .quick { $0.id = "one" })
    #expect(try printer.cancel(id: "one") == .cancelled)
    #expect(try printer.queue.map(\.from) == ["phone"])
    let requests = try meeting.names("members/printer/claimed").filter { $0.hasSuffix(",cancel") }
    #expect(requests == [first.name.text + ",cancel"])
  }

  /// A receiver that runs would otherwise get a later message first.
  @Test func deadLettersOfOneIdentifierAreRetriedInOrder() throws {
    let meeting = try Meeting()
    let sent = try (1...8).map { number in
      try meeting.container.peer("printer", from: "tv\(number)").send(
        number, .quick { $0.id = "one" })
    }
    let home = try #require(try meeting.container.storage.existingMember("printer"))
    // Neither the order of creation nor its reverse is the order of the messages.
    for index in [4, 1, 6, 3, 0, 7, 2, 5] {
      let name = sent[index].name.text
      #expect(try home.move(name, from: .inbox, .dead, as: name))
    }
    let printer = meeting.container.peer("printer")
    var isRetried = false
    let calls = try FaultPoints.with { isRetried = try printer.retry(id: "one") }
    #expect(isRetried)
    let moved = calls.filter { $0.hasPrefix("rename ") && $0.contains("printer/inbox/") }
    let names = moved.compactMap { $0.split(separator: "/").last }
    #expect(names.map { String($0) } == sent.map { $0.name.retried.text })
  }
}
