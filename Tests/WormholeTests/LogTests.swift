import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The fields of a log entry besides its text.
@Suite(.blocking) struct LogTests {
  private typealias Entries = Heard<LogEntry>

  private let meeting: Meeting
  private let entries: Entries
  private let container: SharedContainer

  init() throws {
    let (meeting, entries) = (try Meeting(), Entries())
    container = try meeting.another {
      $0.log = { entries.add($0) }
      $0.mailbox.attempts = 1
    }
    (self.meeting, self.entries) = (meeting, entries)
  }

  private func first(_ what: String) throws -> LogEntry {
    try entries.wait(what) { !$0.isEmpty }
    return try #require(entries.all.first)
  }

  @Test func aChannelsDamageIsToldWithItsName() throws {
    try container.channel("speed").put(1)
    try meeting.overwrite("channels/speed/value.plist", [1, 2, 3])
    try container.channel("speed").put(2)
    let entry = try first("the damage")
    #expect(entry.level == .error)
    #expect(entry.fields == ["container": meeting.path, "channel": "speed"])
  }

  @Test func anErrorThatNobodyAsksForIsToldWithItsKind() throws {
    let watching = try container.channel("speed", of: Int.self).watch { _ in }
    let folder = meeting.path + "/channels/speed"
    try container.channel("speed").put(1)
    let directory = try Descriptor.open(path: folder, [.readOnly, .directory])
    try directory.makeSymbolicLink("link", to: "nowhere")
    try directory.rename("link", to: directory, "value.plist")
    let entry = try first("the link")
    #expect(entry.level == .error)
    #expect(
      entry.fields == ["container": meeting.path, "channel": "speed", "code": "refused"])
    watching.stop()
  }

  @Test func whatTheSystemHasSaidIsToldByItsNumber() throws {
    try Descriptor.removeDirectory(path: meeting.path + "/guests")
    _ = try Descriptor.open(
      path: meeting.path + "/guests", [.writeOnly, .create, .exclusive], mode: 0o600)
    let entries = Entries()
    _ = try meeting.another { $0.log = { entries.add($0) } }
    let entry = try #require(entries.all.first)
    #expect(entry.errno == Errno.notADirectory.rawValue && entry.code == .refused)
    #expect(entry.fields["errno"] == "20" && entry.text.contains("guests"))
  }

  @Test func aSuiteIsNotCalledAChannel() throws {
    let suite = container.defaults("app")
    try suite.set(1, forKey: "one")
    try meeting.overwrite("system/defaults.app/value.plist", [1, 2, 3])
    try suite.removeAll()
    #expect(try first("the damage").fields == ["container": meeting.path, "suite": "app"])
  }

  @Test func aMessageThatIsGivenUpIsToldWithItsIdAndReceiver() throws {
    let watch = try container.join(as: "watch")
    let sent = try container.peer("watch").send(1, .quick { $0.id = "one" })
    let receiving = try watch.receive { _ in throw Missing() }
    let entry = try first("the dead letter")
    #expect(entry.level == .error && sent.id == "one")
    #expect(
      entry.fields == ["container": meeting.path, "member": "watch", "message": "one"])
    receiving.stop()
    watch.leave()
  }
}
