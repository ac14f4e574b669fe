import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// One identifier that several senders have given.
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
}
