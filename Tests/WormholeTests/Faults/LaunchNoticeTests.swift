import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Registrations of launch commands whose last steps fail.
@Suite(.blocking) struct LaunchNoticeTests {
  /// The new file is in its place when the sync of its name fails.
  @Test func aRegistrationWhoseSyncFailsIsToldOf() throws {
    let meeting = try Meeting()
    let heard = Heard<Int>()
    let watch = try meeting.container.watchLaunches { heard.add(1) }
    let rule = FaultRule(.fsync, path: "members/watch", .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      let error = try failure {
        try meeting.container.registerLaunch(of: "watch", program: "true")
      }
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
    #expect(try meeting.container.launchCommand(of: "watch") != nil)
    try heard.wait("it is told") { !$0.isEmpty }
    watch.stop()
  }

  /// Otherwise a power cut would bring the registration back, and a wake would start the program.
  @Test func aRemovalIsSyncedAndToldOfThoughItsSyncFails() throws {
    let meeting = try Meeting()
    try meeting.container.registerLaunch(of: "watch", program: "true")
    let heard = Heard<Int>()
    let watch = try meeting.container.watchLaunches { heard.add(1) }
    let rule = FaultRule(.fsync, path: "members/watch", .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      let error = try failure { _ = try meeting.container.removeLaunch(of: "watch") }
      #expect(error.errno == Errno.inputOutput.rawValue && error.subject == "watch")
    }
    #expect(try meeting.container.launchCommand(of: "watch") == nil)
    try heard.wait("it is told") { !$0.isEmpty }
    // The repetition finds no command, and syncs the removal.
    var hasRemoved = true
    let calls = try FaultPoints.with {
      hasRemoved = try meeting.container.removeLaunch(of: "watch")
    }
    #expect(!hasRemoved)
    #expect(calls.contains { $0.hasPrefix("fsync ") && $0.hasSuffix("members/watch") }, "\(calls)")
    watch.stop()
  }

  @Test func aRemovalIsToldOf() throws {
    let meeting = try Meeting()
    try meeting.container.registerLaunch(of: "watch", program: "true")
    let heard = Heard<Int>()
    let watch = try meeting.container.watchLaunches { heard.add(1) }
    #expect(try meeting.container.removeLaunch(of: "watch"))
    try heard.wait("it is told") { !$0.isEmpty }
    watch.stop()
  }

  /// The registration may have made the member's directory, whose name a power cut would remove.
  @Test func theNameOfAMemberIsSyncedWithItsLaunchCommand() throws {
    let meeting = try Meeting()
    let rules = [FaultRule(.fsync, path: "/members", number: 2, .fail(.inputOutput))]
    try FaultPoints.with(rules) {
      let error = try failure {
        try meeting.container.registerLaunch(of: "watch", program: "true")
      }
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
  }
}
