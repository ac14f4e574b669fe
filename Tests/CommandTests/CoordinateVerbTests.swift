import Syscalls
import TestSupport
import TestTraits
import Testing

/// `wormhole coordinate` among several processes, and what the doctor says of it.
@Suite(.blocking) struct CoordinateVerbTests {
  private static let root = "export WORMHOLE_ROOT=\"$STAGE/groups\";"

  /// Holds an access to `file` until somebody writes to `pipe`, having said so.
  private func hold(_ stage: Stage, _ kind: String) throws -> Running {
    _ = try stage.run("[ -p pipe ] || mkfifo pipe")
    let holder = try stage.start(
      "wormhole coordinate \(kind) file -- sh -c 'echo held; read -r x <pipe; echo over'",
      environment: ["WORMHOLE_ROOT=\(stage.directory.path)/groups"])
    try eventually("it is held") { try holder.output == "held\n" }
    return holder
  }

  @Test func aStoppedHolderIsNamedOrTakenOver() throws {
    let stage = try Stage()
    let holder = try hold(stage, "write")
    try holder.child.send(.stop)
    try holder.waitUntilStopped()
    let outcome = try stage.run("\(Self.root) wormhole coordinate read file -- echo never")
    #expect(outcome.status == .exited(125))
    let who = "'wormhole' (process \(holder.child.process), stopped)"
    #expect(
      outcome.errors == "wormhole: cannot coordinate 'file': \(who) is in the way and does not run;"
        + " let it go on with 'kill -CONT \(holder.child.process)', or end it\n")
    let past = try stage.run(
      "\(Self.root) wormhole coordinate write file --take-over 1 -- echo past")
    #expect(past.output == "past\n", "\(past.errors)")
    let doctor = try stage.run(
      "\(Self.root) wormhole --group wormhole.user doctor | grep running; "
        + "wormhole --group wormhole.user doctor | grep overtaken")
    #expect(
      doctor.output.contains("others have gone past \(who), which may still write '"),
      "\(doctor.output)")
    try holder.child.send(.go)
    _ = try stage.run("echo go >pipe")
    let end = try holder.outcome()
    #expect(end.status == .exited(0))
    #expect(end.output == "held\nover\n")
    #expect(end.errors.contains("others went past it while it stood still"), "\(end.errors)")
  }

  @Test func theDoctorListsAccessesAndRemovesWhatTheDeadLeft() throws {
    let stage = try Stage()
    let holder = try hold(stage, "read")
    let found = try stage.run("\(Self.root) wormhole --group wormhole.user doctor")
    #expect(
      found.output.contains(
        "'wormhole' (process \(holder.child.process), running) may read '"), "\(found.output)")
    #expect(found.status == .exited(0), "\(found.output)")
    try holder.child.send(.kill)
    _ = try holder.outcome()
    _ = try stage.run("echo go >pipe &")
    let dead = try stage.run("\(Self.root) wormhole --group wormhole.user doctor")
    #expect(dead.status == .exited(1))
    #expect(dead.output.contains("a process that has ended left it"), "\(dead.output)")
    let mended = try stage.run("\(Self.root) wormhole --group wormhole.user doctor --repair")
    #expect(mended.status == .exited(0), "\(mended.output)")
  }
}
