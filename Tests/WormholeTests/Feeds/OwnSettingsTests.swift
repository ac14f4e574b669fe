import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// The watch of a suite, and the changes of the object that watches.
@Suite(.blocking) struct OwnSettingsTests {
  private let meeting: Meeting
  private let defaults: Defaults
  /// The same suite, as another process would have it.
  private let other: Defaults

  init() throws {
    meeting = try Meeting()
    defaults = meeting.container.defaults("app")
    other = try meeting.another().defaults("app")
  }

  /// The look at the file's name is all.
  @Test func theObjectsOwnFileIsNotRead() throws {
    let slot = try defaults.slot.get()
    for number in 1...3 {
      try defaults.set(number, forKey: "n")
      var stamp: Stamp?
      let calls = FaultPoints.with { stamp = defaults.known.ownChange(of: slot)?.stamp }
      #expect(calls.map { $0.prefix { $0 != " " } } == ["fstatat"], "\(calls)")
      #expect(stamp == WatchResult(reading: slot, meeting.container.options.limits).stamp)
      try other.set(-number, forKey: "n")
      #expect(defaults.known.ownChange(of: slot)?.stamp == nil)
      #expect(defaults.known.withLock { $0.stamped?.file } == nil, "the file is closed")
    }
  }

  /// Most changes are made in a copy of the file, and the others write all keys.
  @Test func eachChangeIsReadAsItWasMade() throws {
    var expected: [String: PropertyListValue] = ["first": 1, "last": [1, "list"]]
    for (key, value) in expected { _ = try defaults.change(key, to: value) }
    let long = PropertyListValue.string(String(repeating: "long ", count: 2000))
    let values: [PropertyListValue?] = [
      1, 300, 70_000, "text", true, 0.5, .data(Data([1, 2])), .date(Date()), ["a list", 1], 2,
      ["a": "dictionary"], nil, 3, long, 4, .unsigned(.max), "\u{fc}", "$null",
    ]
    for value in values {
      expected["changed"] = value
      let version = try #require(try defaults.change("changed", to: value))
      #expect(try other.dictionaryRepresentation() == expected)
      let slot = try other.slot.get()
      let stamp = WatchResult(reading: slot, meeting.container.options.limits).stamp
      guard case .version(version, _, recovered: false) = stamp else {
        Issue.record("another version than \(version): \(stamp)")
        return
      }
    }
  }

  @Test func theWatchReportsTheChangesOfAllObjects() throws {
    let heard = Heard<Int>()
    let watch = try defaults.watchVersion { heard.add($0) }
    defer { watch.stop() }
    for number in 1...10 {
      for (object, value) in [(defaults, number), (other, -number), (defaults, 0)] {
        let changed = try object.change("n", to: .integer(Int64(value)))
        let version = try #require(changed)
        try heard.waitForLast(version)
      }
    }
    #expect(heard.all == heard.all.sorted(), "no version is reported late")
  }
}
