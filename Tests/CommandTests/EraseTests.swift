import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Erased values cannot be read any more.
@Suite(.blocking, .notSanitized("about what a command prints")) struct EraseTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private func find(_ word: String) throws -> String {
    try stage.run("grep -rla \(word) hole || true").output
  }

  @Test func aClearedValueIsKeptUnlessItIsErased() throws {
    _ = try stage.run("wormhole put key secret --power; wormhole put key secret2 --power")
    let cleared = try stage.run(
      "wormhole clear key", environment: ["WORMHOLE_FAULTS=fsync:before:fail=EIO"])
    #expect(cleared.status == .exited(0) && cleared.output == "")
    #expect(try find("secret") == "hole/channels/key/kept.plist\n")
    let kept = stage.container + "/channels/key/kept.plist"
    #expect(
      cleared.errors == "wormhole: an earlier value of 'key' remains in '\(kept)' until later "
        + "values replace it; remove it with 'wormhole clear key --erase'\n")
    // Nothing is left to say of a channel that has no earlier value.
    #expect(try stage.run("wormhole clear other").errors == "")
    // The clear is saved, and replaces the earlier value.
    _ = try stage.run("wormhole put third secret --power; wormhole put third secret --power")
    #expect(try stage.run("wormhole clear third").errors == "")
    #expect(try find("secret") == "hole/channels/key/kept.plist\n")
    // An already cleared channel keeps the value too.
    let erased = try stage.run("wormhole clear key --erase --json")
    #expect(erased.status == .exited(0) && erased.errors == "", "\(erased.errors)")
    #expect(erased.output == "{\"channel\":\"key\",\"value\":null,\"version\":4}\n")
    #expect(try find("secret") == "")
    #expect(try stage.run("wormhole get key").status == .exited(1))
    #expect(try stage.run("wormhole put key new --json").output.contains("\"version\":5"))
    let doctor = try stage.run("wormhole doctor")
    // Other tests may use all instances of inotify that the user has.
    let isShort = doctor.output.contains("no watch is available")
    #expect(doctor.status == .exited(0) || isShort, "\(doctor.output)\(doctor.errors)")
  }

  @Test func ofADamagedValueNothingIsLeftEither() throws {
    _ = try stage.run(
      "wormhole put key secret --power; wormhole put key secret --power; wormhole put other secret")
    func damage() throws {
      _ = try stage.run("echo secret, damaged >bad; mv bad hole/channels/key/value.plist")
    }
    try damage()
    // The damaged value is set aside, and reported.
    #expect(try stage.run("wormhole put key secret").status == .exited(0))
    try damage()
    #expect(try stage.run("wormhole clear key --erase").status == .exited(0))
    #expect(try find("secret") == "hole/channels/other/value.plist\n")
    #expect(try stage.run("ls hole/damaged").output == "")
  }

  /// A channel and a suite may have the same name; each has damaged files of its own.
  @Test func erasingAChannelKeepsTheDamagedFilesOfASuite() throws {
    let suite = "hole/system/defaults.app"
    _ = try stage.run(
      "wormhole put defaults.app secret; wormhole defaults write app word public")
    for file in ["hole/channels/defaults.app", suite] {
      _ = try stage.run("echo damaged >bad; mv bad \(file)/value.plist")
    }
    _ = try stage.run(
      "wormhole put defaults.app secret; wormhole defaults delete app;"
        + "wormhole defaults write app word public")
    let before = try stage.run("cat hole/damaged/*.reason").output.split(separator: "\n")
    #expect(before.count == 2, "\(before)")
    #expect(try stage.run("wormhole clear defaults.app --erase").status == .exited(0))
    let after = try stage.run("cat hole/damaged/*.reason").output.split(separator: "\n")
    #expect(after == before.filter { $0.hasPrefix("system/") })
    #expect(try stage.run("ls hole/damaged").output.split(separator: "\n").count == 2)
  }

  /// Whatever stands in the way, either it says that something is left, or nothing is.
  @Test func whereItFailsItSaysSo() throws {
    for fault in [
      "unlink~1.d:before:fail=EIO", "link~1.d/kept:before:fail=EIO",
      "rename~kept.plist:before:fail=EIO",
      "write~1.d:before:fail=ENOSPC", "rename~value.plist:before:fail=EIO",
    ] {
      _ = try stage.run("wormhole put key secret --power; wormhole put key secret --power")
      let outcome = try stage.run(
        "wormhole clear key --erase", environment: ["WORMHOLE_FAULTS=\(fault)"])
      #expect(try outcome.status != .exited(0) || find("secret") == "", "\(fault)")
      // The channel is cleared, but the previous value is still readable.
      if fault.contains("kept") {
        #expect(outcome.status == .exited(75), "\(fault)")
        #expect(outcome.errors.contains("the change is done, but the previous value can"))
        #expect(try stage.run("wormhole get key").status == .exited(1))
      }
      let again = try stage.run("wormhole clear key --erase")
      #expect(again.status == .exited(0), "\(again.errors)")
      #expect(try find("secret") == "", "\(fault)")
    }
  }
}
