import Observation
import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A suite as a model for a user interface.
@Suite @MainActor struct ObservableDefaultsTests {
  private let meeting: Meeting
  private let defaults: Defaults

  init() throws {
    meeting = try Meeting()
    defaults = meeting.container.defaults("app")
  }

  /// The notice of an older value may already wait for the main queue.
  @Test func whatTheModelHasSetIsNotTakenBack() async throws {
    let model = ObservableDefaults(defaults)
    let (heard, changes) = (Heard<Int?>(), Heard<Int>())
    let watch = try defaults.watch("volume", of: Int.self) { heard.add($0) }
    defer { watch.stop() }
    #expect(model["volume"] == nil)
    // This thread waits, and so does the main queue.
    for value in 1...10 {
      try model.set(value, forKey: "volume")
      try heard.waitForLast(value)
      let _: Void? = Monitor(0).wait(until: .now + .milliseconds(5)) { _ in nil }
    }
    withObservationTracking {
      #expect(model["volume"] == 10)
    } onChange: {
      changes.add(1)
    }
    // The calls that wait for the main queue run first.
    let other = try meeting.another().defaults("app")
    for value in 1...10 {
      try await other.set(value, forKey: "end")
      try await becomes("the model follows") { model["end"] == .integer(Int64(value)) }
      #expect(model["volume"] == 10)
    }
    #expect(changes.all == [])
    try await other.set(11, forKey: "volume")
    try await becomes("the model follows") { model["volume"] == 11 }
  }

  /// The clock of a program shows the same moment for many values: it is coarse, or the program
  /// sets the clock itself.
  @Test func ofTwoValuesOfOneMomentTheLaterIsKept() async throws {
    let moment = Clocks.sinceEpoch
    let defaults = try meeting.another { $0.environment.sinceEpoch = { moment } }.defaults("app")
    let model = ObservableDefaults(defaults)
    let (heard, changes) = (Heard<Int?>(), Heard<Int>())
    let watch = try defaults.watch("volume", of: Int.self) { heard.add($0) }
    defer { watch.stop() }
    #expect(model["volume"] == nil)
    // This thread waits, and so does the report of an earlier value, which the main queue makes.
    for value in 1...3 {
      try model.set(value, forKey: "volume")
      try heard.waitForLast(value)
      let _: Void? = Monitor(0).wait(until: .now + .milliseconds(50)) { _ in nil }
    }
    withObservationTracking {
      #expect(model["volume"] == 3)
    } onChange: {
      changes.add(1)
    }
    // The calls that wait for the main queue run first.
    try await defaults.set(1, forKey: "end")
    try await becomes("the model follows") { model["end"] == 1 }
    #expect(model["volume"] == 3)
    #expect(changes.all == [], "no earlier value was shown")
  }

  /// A suite that another tool has removed begins again with lower versions.
  @Test func aSuiteThatWasRemovedByHandIsFollowed() async throws {
    let model = ObservableDefaults(defaults)
    for value in 1...3 { try model.set(value, forKey: "volume") }
    try await becomes("the model follows") { model["volume"] == 3 }
    // The directory is not empty at once: the last value is saved meanwhile.
    try await becomes("the suite is removed") {
      try run("rm", ["-rf", meeting.path + "/system/defaults.app"]).status == .exited(0)
    }
    let other = try meeting.another().defaults("app")
    try await becomes("the model follows") {
      try other.set(Int.random(in: 4...100), forKey: "volume")
      return model["volume"] != 3
    }
  }

  /// Another tool replaces the file by a file with a lower version and a later time.
  ///
  /// At this moment the watch has still to report a value that is older than the model's.
  @Test func aFileThatWasReplacedByHandIsFollowedFromItsFirstVersion() async throws {
    let model = ObservableDefaults(defaults)
    let heard = Heard<Int?>()
    let watch = try defaults.watch("volume", of: Int.self) { heard.add($0) }
    defer { watch.stop() }
    for value in 1...2 { try model.set(value, forKey: "volume") }
    // This thread waits, and so does the report of the second value, which the main queue makes.
    try heard.waitForLast(2)
    let _: Void? = Monitor(0).wait(until: .now + .milliseconds(50)) { _ in nil }
    try model.set(3, forKey: "volume")
    try heard.waitForLast(3)
    let other = try Meeting()
    try await other.container.defaults("app").set(7, forKey: "volume")
    let file = "system/defaults.app/value.plist"
    let folder = try meeting.folder("system/defaults.app")
    try folder.open("made", [.writeOnly, .create], mode: 0o600).write(other.bytes(of: file))
    try folder.rename("made", to: folder, "value.plist")
    try await becomes("the model follows") { model["volume"] == 7 }
  }

  /// A key whose first read fails for lack of descriptors is watched later all the same.
  @Test func aKeyThatCouldNotBeWatchedIsWatchedLater() async throws {
    try await defaults.set(1, forKey: "volume")
    let log = Heard<LogEntry>()
    let other = try meeting.another { $0.log = { log.add($0) } }
    let model = ObservableDefaults(other.defaults("app"))
    let changes = Heard<Int>()
    let rule = FaultRule(.open, persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) {
      withObservationTracking {
        #expect(model["volume"] == nil)
      } onChange: {
        changes.add(1)
      }
    }
    #expect(log.all.contains { $0.level == .error })
    try await becomes("it is read") { model["volume"] == 1 }
    #expect(changes.all == [1], "who has read it is told")
    try await defaults.set(2, forKey: "volume")
    try await becomes("it is watched") { model["volume"] == 2 }
  }

  /// The model reads the value after the change, and the system may refuse this read alone.
  @Test func aSetThatThrowsHasChangedNothing() async throws {
    let model = ObservableDefaults(defaults)
    try model.set(0, forKey: "volume")
    var last = 0
    for number in 1...5 {
      let rule = FaultRule(
        .open, path: "defaults.app/value.plist", number: number, persistent: true,
        .fail(.tooManyOpenFiles))
      var isSet = false
      FaultPoints.with([rule]) { isSet = (try? model.set(number, forKey: "volume")) != nil }
      if isSet { last = number }
      #expect(try defaults.integer(forKey: "volume") == last, "\(number)")
    }
    #expect(last == 5, "no call opens the file so often")
    try await becomes("the model follows") { model["volume"] == 5 }
  }
}
