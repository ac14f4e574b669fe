import Foundation
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import WormholeSyscalls

/// An app as developers write apps: made for devices, with the one edit, in the language mode of
/// Swift 5; both sides run.
@Suite(.notSanitized("the apps run in processes of their own")) struct FixtureTests {
  let folder: TemporaryDirectory
  let container: String

  init() throws {
    folder = try TemporaryDirectory()
    container = folder.path + "/container"
  }

  private func start(_ role: String, _ steps: [String] = []) throws -> Running {
    try Running(
      Programs.built(role == "phone" ? "FixturePhone" : "FixtureWatch"), steps,
      environment: [
        "WORMHOLE_ROLE=\(role)", "WORMHOLE_CONTAINER=\(container)", "WORMHOLE_GROUP=",
        "CFFIXED_USER_HOME=\(folder.path)/\(role)", "TMPDIR=\(folder.path)",
      ])
  }

  private func wait(_ program: Running, _ lines: [String]) throws {
    do {
      try eventually("\(lines)") {
        Set(try program.output.split(separator: "\n").map(String.init)).isSuperset(of: lines)
      }
    } catch {
      Issue.record("wanted \(lines), and it wrote: \(try program.output) \(try program.errors)")
    }
  }

  @Test(.blocking) func bothSidesKeepInStep() throws {
    let watch = try start("watch")
    try wait(watch, ["active"])
    let phone = try start("phone", ["now=1", "later=2", "latest=3"])
    try wait(watch, ["purchased [1]", "purchased [1, 2]", "purchased [1, 2, 3]"])
    try wait(phone, ["active", "verified", "delivered"])
  }

  @Test(.blocking) func imagesAreMadeOnThePhoneAndKeptByTheWatch() throws {
    let phone = try start("phone")
    try wait(phone, ["active"])
    let watch = try start("watch", ["images"])
    try wait(watch, (1...3).map { "kept \($0)-code.png: image \($0)" })
    try wait(phone, (1...3).map { "image \($0) arrived" })
  }

  @Test(.blocking) func whatWasBoughtMeanwhileIsKnownLater() throws {
    let phone = try start("phone", ["later=4", "now=5"])
    try wait(phone, ["failed 7007"])
    let watch = try start("watch")
    try wait(watch, ["purchased [4]"])
    try wait(phone, ["delivered", "reachable: true"])
  }

  @Test(.blocking) func thePhoneGoesOnWithAnotherWatch() throws {
    let phone = try start("phone")
    try wait(phone, ["active"])
    try Pairing(directory: container).pair("other")
    try wait(phone, ["inactive", "deactivated"])
    let watch = try Running(
      Programs.built("FixtureWatch"), ["images"],
      environment: [
        "WORMHOLE_ROLE=watch", "WORMHOLE_WATCH=other", "WORMHOLE_CONTAINER=\(container)",
        "WORMHOLE_GROUP=", "CFFIXED_USER_HOME=\(folder.path)/watch", "TMPDIR=\(folder.path)",
      ])
    try wait(watch, ["kept 2-code.png: image 2"])
  }
}
