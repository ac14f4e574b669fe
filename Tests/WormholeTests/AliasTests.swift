import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Aliases: links that are second names of channels' values.
@Suite(.blocking) struct AliasTests {
  private let meeting: Meeting

  init() throws { meeting = try Meeting.patient() }

  /// A clear of a value that was never written races with the first put, which also makes the link.
  @Test func ofAFirstPutAndAClearTheLastOneSettlesTheLink() throws {
    let channel = meeting.container.channel("film", of: String.self)
    let alias = try Alias(["film"], channel: "film", in: meeting.container)
    let other = try meeting.another(Meeting.havePatience).channel("film", of: String.self)
    // The link exists, and the put is about to rename its value into place.
    let rule = FaultRule(.rename, path: "value.plist", .delay(milliseconds: 400))
    let putting = try Thread("putter") {
      FaultPoints.with([rule]) { _ = try? channel.put("Metropolis", alias: alias) }
    }
    try eventually("the link is made") { isThere(alias) }
    try other.clear(alias: alias)
    putting.join()
    #expect(try isThere(alias) == (channel.value != nil))
  }

  @Test func clearingWhatWasNeverWrittenMakesNothing() throws {
    let alias = try Alias(["film"], channel: "film", in: meeting.container)
    #expect(try meeting.container.channel("film", of: String.self).clear(alias: alias) == 0)
    #expect(try meeting.container.channels() == [])
    #expect(!isThere(alias))
  }

  /// Another tool has made a link to another file, or a regular file, at the alias's path.
  @Test func clearingRemovesOnlyTheAliasesOwnLink() throws {
    let channel = meeting.container.channel("film", of: String.self)
    let alias = try Alias(["film"], channel: "film", in: meeting.container)
    try channel.put("Metropolis", alias: alias)
    try meeting.folder.descriptor.unlink("film")
    try meeting.folder.descriptor.makeSymbolicLink("film", to: "elsewhere")
    try channel.clear(alias: alias)
    #expect(try meeting.folder.descriptor.readSymbolicLink("film") == Array("elsewhere".utf8))
    try meeting.folder.descriptor.unlink("film")
    try meeting.folder.write("mine", to: "film")
    try channel.put("M")
    try channel.clear(alias: alias)
    #expect(try meeting.folder.read("film") == "mine")
  }

  @Test func theErrorOfAPutNamesTheChannelOnce() throws {
    let channel = meeting.container.channel("film", of: String.self)
    let alias = try Alias(["film"], channel: "film", in: meeting.container)
    let rule = FaultRule(.rename, path: "value.plist", persistent: true, .fail(.inputOutput))
    var error: WormholeError?
    try FaultPoints.with([rule]) {
      error = try failure { try channel.put("Metropolis", alias: alias) }
    }
    #expect(error?.operation == "put value into channel")
    #expect(error?.subject == "film")
  }

  private func isThere(_ alias: Alias) -> Bool {
    (try? Descriptor.readSymbolicLink(path: alias.location)) != nil
  }
}
