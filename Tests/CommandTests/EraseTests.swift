import Syscalls
import TestSupport
import TestTraits
import Testing

/// What is erased cannot be read any more.
@Suite(.blocking) struct EraseTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private func find(_ word: String) throws -> String {
    try stage.run("grep -rla \(word) hole || true").output
  }

  @Test func aClearedValueIsKeptUnlessItIsErased() throws {
    _ = try stage.run("wormhole put key secret --power; wormhole put key secret2 --power")
    #expect(try stage.run("wormhole clear key").status == .exited(0))
    #expect(try find("secret") == "hole/channels/key/kept.plist\n")
    // A channel that is clear already keeps it too.
    let erased = try stage.run("wormhole clear key --erase --json")
    #expect(erased.status == .exited(0), "\(erased.errors)")
    #expect(erased.output == "{\"channel\":\"key\",\"value\":null,\"version\":4}\n")
    #expect(try find("secret") == "")
    #expect(try stage.run("wormhole get key").status == .exited(1))
    #expect(try stage.run("wormhole put key new --json").output.contains("\"version\":5"))
    #expect(try stage.run("wormhole doctor").status == .exited(0))
  }

  @Test func ofADamagedValueNothingIsLeftEither() throws {
    _ = try stage.run(
      "wormhole put key secret --power; wormhole put key secret --power; wormhole put other secret")
    func damage() throws {
      _ = try stage.run("echo secret, damaged >bad; mv bad hole/channels/key/value.plist")
    }
    try damage()
    // It is set aside, and told of.
    #expect(try stage.run("wormhole put key secret").status == .exited(0))
    try damage()
    #expect(try stage.run("wormhole clear key --erase").status == .exited(0))
    #expect(try find("secret") == "hole/channels/other/value.plist\n")
    #expect(try stage.run("ls hole/damaged").output == "")
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
      let again = try stage.run("wormhole clear key --erase")
      #expect(again.status == .exited(0), "\(again.errors)")
      #expect(try find("secret") == "", "\(fault)")
    }
  }
}
