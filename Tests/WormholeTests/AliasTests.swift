import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

/// Second names of values.
@Suite(.blocking) struct AliasTests {
  private let meeting: Meeting

  init() throws { meeting = try Meeting.patient() }

  /// Whoever clears what was never written meets whoever puts the first value, link and all.
  @Test func ofAFirstPutAndAClearTheLastOneSettlesTheLink() throws {
    let channel = meeting.hole.channel("film", of: String.self)
    let alias = try Wormhole.Alias(["film"], channel: "film", in: meeting.hole)
    let other = try meeting.another(Meeting.havePatience).channel("film", of: String.self)
    // The link is there, and the value is about to come.
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
    let alias = try Wormhole.Alias(["film"], channel: "film", in: meeting.hole)
    #expect(try meeting.hole.channel("film", of: String.self).clear(alias: alias) == 0)
    #expect(try meeting.hole.channels() == [])
    #expect(!isThere(alias))
  }

  private func isThere(_ alias: Wormhole.Alias) -> Bool {
    (try? Descriptor.readSymbolicLink(path: alias.location)) != nil
  }
}
