import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Values that cannot be read, and puts that replace damaged values.
@Suite(.blocking) struct DamageTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }
  private var speed: Channel<Double> { container.channel("speed") }
  private let file = "channels/speed/value.plist"

  init() throws { meeting = try Meeting() }

  /// Versions after damage are microseconds since 1970: greater than any before.
  private let large = 1_500_000_000_000_000

  @Test func aDamagedValueIsAnErrorAndAPutMendsIt() throws {
    try speed.put(1, durability: .process)
    _ = try meeting.overwrite(file, [])
    try? Descriptor.open(path: meeting.path + "/channels/speed", [.readOnly, .directory])
      .unlink("kept.plist")
    let error = try failure { _ = try speed.value }
    #expect(error.code == .damaged)
    #expect(error.reason == "the file is empty")
    #expect(try failure { _ = try speed.metadata }.code == .damaged)
    #expect(try failure { try speed.update { $0 = 1 } }.code == .damaged)
    #expect(try failure { try speed.put(2, ifVersion: 1) }.reason.hasSuffix("is damaged"))
    let version = try speed.put(2)
    #expect(version > large)
    #expect(try speed.value == 2)
    #expect(try speed.put(3) == version + 1)
    #expect(try !container.container("damaged").isEmpty)
  }

  @Test func theKeptValueStandsInMarkedAsRecovered() throws {
    try speed.put(1, durability: .power)
    try speed.put(2, durability: .power)
    var bytes = try meeting.bytes(of: file)
    bytes[bytes.count / 2] ^= 1
    try meeting.overwrite(file, bytes)
    let latest = try #require(try speed.latest)
    #expect(latest.value == 1)
    #expect(latest.version == 1)
    #expect(latest.metadata.isRecovered)
    // Version 2 was already assigned, so it is not assigned again.
    #expect(try speed.update(default: 0) { $0 += 10 } == 11)
    #expect(try #require(try speed.metadata).version > large)
    #expect(try speed.metadata?.isRecovered == false)
  }

  @Test func aWatcherLearnsThatItsValueIsRecovered() throws {
    let heard = Heard<[Double?: Bool]>()
    try speed.put(1, durability: .power)
    try speed.put(2, durability: .power)
    _ = try meeting.overwrite(file, [])
    let watching = try speed.watch { heard.add([$0.value: $0.metadata.isRecovered]) }
    try heard.wait("the previous value") { !$0.isEmpty }
    try speed.put(3)
    try heard.wait("the next value") { $0.count == 2 }
    #expect(heard.all == [[1: true], [3: false]])
    watching.stop()
  }

  /// Other programs may know the version of the damaged value.
  @Test func aRepairUsesNoVersionTwice() throws {
    try speed.put(1, durability: .power)
    try speed.put(2, durability: .power)
    let settings = container.defaults("cinema")
    try settings.set(1, forKey: "rows")
    try settings.set(2, forKey: "rows")
    let files = [file, "system/defaults.cinema/value.plist"]
    for file in files { try meeting.overwrite(file, [1, 2, 3]) }
    #expect(Set(try container.repair().map(\.subject)).isSuperset(of: files))
    let repaired = try #require(try speed.latest)
    #expect(repaired.value == 1)
    #expect(repaired.version > large)
    #expect(!repaired.metadata.isRecovered)
    #expect(try speed.put(3) == repaired.version + 1)
    let version = try #require(try settings.change("rows", to: .integer(3)))
    #expect(version > large)
  }

  @Test func aRecoveredVersionMayBeExpected() throws {
    try speed.put(1, durability: .power)
    try speed.put(2, durability: .power)
    try meeting.overwrite(file, [1, 2, 3])
    #expect(try speed.put(3, ifVersion: 1) > large)
  }

  @Test func damageCanBeCleared() throws {
    try speed.put(1)
    try meeting.overwrite(file, [1, 2, 3])
    #expect(try speed.clear() > large)
    #expect(try speed.value == nil)
  }

  /// Other processes have seen a later value, so the channel must be cleared again.
  @Test func aRecoveredClearIsClearedAgain() throws {
    try speed.clear()
    try speed.put(1, durability: .power)
    try speed.clear(durability: .power)
    try speed.put(2, durability: .power)
    try meeting.overwrite(file, [1, 2, 3])
    #expect(try speed.value == nil)
    #expect(try speed.latest?.metadata.isRecovered == true)
    #expect(try speed.clear() > large)
    #expect(try speed.latest?.metadata.isRecovered == false)
    #expect(try !container.container("damaged").isEmpty)
  }

  @Test(
    arguments: [
      ["value": 5], 5, ["version": "1", "sent": 5, "from": "me"],
      ["version": .integer(.max), "sent": .date(Date()), "from": "me", "value": 5],
      ["version": 0, "sent": .date(Date()), "from": "me", "value": 5],
    ] as [PropertyListValue])
  func aFileThatIsNotOfAChannelsFormIsDamage(_ content: PropertyListValue) throws {
    try speed.put(1)
    try meeting.overwrite(file, try BinaryPropertyList.encode(content))
    let error = try failure { _ = try speed.value }
    #expect(error.code == .damaged)
    #expect(error.reason.hasPrefix("the content does not have the form of a channel: "))
    let words = Heard<String>()
    let other = try meeting.another { $0.log = { words.add($0.text) } }
    #expect(try other.channel("speed").put(2.0) > large)
    #expect(try speed.value == 2)
    #expect(words.all == ["the file in channels 'speed' had an unknown format; replaced"])
  }

  /// A writer that knows only the article on the directory.
  @Test func aForeignValueIsRead() throws {
    try speed.put(1)
    let content: PropertyListValue = [
      "version": 7, "sent": .date(Date(timeIntervalSinceReferenceDate: 0)), "from": "script",
      "value": 2.5, "comment": "not ours",
    ]
    try meeting.overwrite(file, try BinaryPropertyList.encode(content))
    #expect(try speed.value == 2.5)
    #expect(try speed.metadata?.writer == "script")
    #expect(try speed.put(3) == 8)
  }

  /// A removal may have ended before its last step, or another tool has removed the directory.
  @Test func anErasureOfARemovedChannelDiscardsItsDamagedFiles() throws {
    func erase() throws -> Int {
      var version = 0
      let calls = try FaultPoints.with { version = try speed.clear(erasing: true) }
      #expect(calls.contains { $0.hasPrefix("fsync ") && $0.hasSuffix("/damaged") }, "\(calls)")
      #expect(try meeting.names("damaged") == [])
      return version
    }
    try speed.put(1)
    try meeting.overwrite(file, [1, 2, 3])
    try speed.put(2)
    #expect(try meeting.names("damaged").count == 2)
    try FileManager.default.removeItem(atPath: meeting.path + "/channels/speed")
    #expect(try erase() == 0)
    #expect(try meeting.names("channels") == [])
    try speed.put(1)
    try meeting.overwrite(file, [1, 2, 3])
    #expect(try erase() > 0)
  }
}
