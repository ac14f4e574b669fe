import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The errors of settings name the suite, and not the file that contains the suite.
@Suite(.blocking) struct DefaultsErrorTests {
  private let meeting: Meeting
  private let defaults: Defaults

  init() throws {
    meeting = try Meeting()
    defaults = meeting.container.defaults("app")
  }

  @Test func anUpdateThatDoesNotBeginNamesTheSuite() throws {
    let channel = meeting.container.channel("film", of: Int.self)
    let error = try failure {
      try channel.update { _ in try defaults.update { $0["a"] = 1 } }
    }
    #expect(error.code == .nested)
    #expect(error.operation == "write defaults" && error.subject == "app")
    let other = try failure {
      try channel.update { _ in _ = try defaults.change("a", to: 1) }
    }
    #expect(other.code == .nested)
    #expect(other.operation == "write defaults" && other.subject == "app")
  }

  @Test func anUpdateThatTheSystemRefusesNamesTheSuite() throws {
    try defaults.set(1, forKey: "a")
    let rule = FaultRule(.rename, path: "value.plist", .fail(.noSpace))
    try FaultPoints.with([rule]) {
      let error = try failure { try defaults.update { $0["a"] = 2 } }
      #expect(error.code == .full)
      #expect(error.operation == "write defaults" && error.subject == "app")
    }
    #expect(try defaults.integer(forKey: "a") == 1)
  }

  /// The body's own error concerns something else.
  @Test func anErrorOfTheBodyStaysAsTheBodyHasThrownTheError() throws {
    let error = try failure {
      try defaults.update { _ in
        throw WormholeError(.notFound, "find", "the film", because: "there is none")
      }
    }
    #expect(error.code == .notFound)
    #expect(error.operation == "find" && error.subject == "the film")
  }

  @Test func theFailureOfAKeysWatchNamesTheSuite() throws {
    try defaults.set(1, forKey: "a")
    let folder = try Descriptor.open(
      path: meeting.path + "/system/defaults.app", [.readOnly, .directory])
    try folder.unlink("value.plist")
    try folder.makeDirectory("value.plist", mode: 0o700)
    let failures = Heard<String>()
    let watch = try defaults.watch("a", of: Int.self) { _ in
    } failure: {
      failures.add("\($0.operation) \($0.subject)")
    }
    try failures.wait("a failure") { !$0.isEmpty }
    watch.stop()
    #expect(failures.all == ["read defaults app"])
  }
}
