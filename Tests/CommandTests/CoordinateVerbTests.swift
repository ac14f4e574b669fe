import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `wormhole coordinate` among several processes, and the doctor's findings about accesses.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct CoordinateVerbTests {
  private static let root = "export WORMHOLE_ROOT=\"$STAGE/groups\";"

  /// Prints a line, and holds an access to `file` until a process writes to `pipe`.
  private func hold(
    _ stage: Stage, _ kind: String, _ line: String = "echo held; read -r x <pipe; echo over"
  ) throws -> Running {
    _ = try stage.run("[ -p pipe ] || mkfifo pipe")
    let holder = try stage.start(
      "wormhole coordinate \(kind) file -- sh -c '\(line)'",
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
      outcome.errors == "wormhole: cannot coordinate 'file': \(who) has a conflicting access and "
        + "is suspended; resume the process with 'kill -CONT \(holder.child.process)', or end the "
        + "process\n")
    let past = try stage.run(
      "\(Self.root) wormhole coordinate write file --take-over 1 -- echo past")
    #expect(past.output == "past\n", "\(past.errors)")
    let doctor = try stage.run(
      "\(Self.root) wormhole --group wormhole.user doctor | grep running; "
        + "wormhole --group wormhole.user doctor | grep overtaken")
    #expect(
      doctor.output.contains("\(who) was overtaken, and may still write '"),
      "\(doctor.output)")
    try holder.child.send(.go)
    _ = try stage.run("echo go >pipe")
    let end = try holder.outcome()
    #expect(end.status == .exited(0))
    #expect(end.output == "held\nover\n")
    let cause = "another access overtook this one while its process was suspended"
    #expect(end.errors.contains(cause), "\(end.errors)")
  }

  /// The bound is longer than the lease, after which the holder counts as suspended.
  @Test func aTakeoverWaitsAtLeastForTheGivenTime() throws {
    let stage = try Stage()
    let holder = try hold(stage, "write")
    try holder.child.send(.stop)
    try holder.waitUntilStopped()
    let begin = Instant.now
    let past = try stage.run(
      "\(Self.root) wormhole coordinate write file --take-over 4 -- echo past")
    #expect(past.output == "past\n", "\(past.errors)")
    #expect(Instant.now - begin >= .seconds(4))
    try holder.child.send(.kill)
    #expect(try holder.outcome().status == .signalled(9))
  }

  /// So it is with kernels before 5.6, and in sandboxes that refuse what they do not know.
  @Test(arguments: ["ENOSYS", "EPERM"])
  func withoutTheCallThatOpensBelowADirectoryAllIsAsEver(_ error: String) throws {
    guard Programs.installed("strace") != nil else {
      skip("a kernel without openat2", missing: "strace")
      return
    }
    let stage = try Stage()
    let holder = try hold(stage, "read")
    let words = "strace -f -qq -o calls -e trace=openat2 -e inject=openat2:error=\(error)"
    func coordinate(_ use: String, within seconds: Double) throws -> ProcessOutcome {
      try stage.run(
        "\(Self.root) \(words) wormhole coordinate \(use) file --timeout \(seconds) -- echo in")
    }
    let read = try coordinate("read", within: 60)
    if read.errors.hasPrefix("strace: ") {
      skip("a kernel without openat2", because: read.errors)
      return
    }
    #expect(read.output == "in\n", "\(read.errors)")
    let write = try coordinate("write", within: 0.3)
    #expect(write.output == "")
    #expect(write.errors.contains("(process \(holder.child.process), running)"), "\(write.errors)")
    #expect(try stage.directory.read("calls").contains("(INJECTED)"))
    try holder.child.send(.kill)
    _ = try holder.outcome()
    let next = try coordinate("write", within: 60)
    #expect(next.output == "in\n", "\(next.errors)")
  }

  /// What would wait for itself is refused long before the time is up.
  @Test func oneInsideAnotherIsSeen() throws {
    let stage = try Stage()
    let outer = "\(Self.root) mkdir d; wormhole coordinate"
    let nested = try stage.run(
      "\(outer) write d -- sh -c 'wormhole coordinate write d/a --timeout 300 -- echo never'")
    #expect(nested.status == .exited(125))
    #expect(nested.output == "")
    #expect(
      stage.normal(nested.errors) == "wormhole: cannot coordinate 'd/a': the calling thread is "
        + "inside a conflicting access to 'STAGE/d'; use the outer command's access to the file\n")
    // Not only of the innermost.
    let deep = try stage.run(
      "\(outer) read a -- wormhole coordinate write b -- wormhole coordinate write a -- echo never")
    #expect(deep.status == .exited(125))
    #expect(deep.errors.contains("inside a conflicting access to"), "\(deep.errors)")
    let free = try stage.run(
      "\(outer) read a -- wormhole coordinate write b -- wormhole coordinate read a -- echo c")
    #expect(free.output == "c\n", "\(free.errors)")
  }

  /// The inner reader does not wait for a writer that waits for the outer reader.
  @Test func aReaderInsideAReaderGetsPastAWriter() throws {
    let stage = try Stage()
    let reader = try hold(
      stage, "read", "echo held; read -r x <pipe; wormhole coordinate read file -- echo inner")
    let writer = try stage.start(
      "wormhole coordinate write file -- echo written",
      environment: ["WORMHOLE_ROOT=\(stage.directory.path)/groups"])
    try eventually("it waits") {
      try stage.run("ls groups/wormhole.user/.wormhole/system/coordination/waiting").output != ""
    }
    _ = try stage.run("echo go >pipe")
    let hasEnded: Void? = try? eventually("the reader ends") { reader.hasEnded }
    try #require(hasEnded != nil, "the reader waits behind the writer")
    #expect(try reader.outcome().output == "held\ninner\n")
    #expect(try writer.outcome().output == "written\n")
  }

  /// Whatever the variable contains, coordinated accesses are kept apart.
  @Test func aForeignWordOfWhereItRunsChangesNothing() throws {
    let stage = try Stage()
    let holder = try hold(stage, "write")
    let id = try stage.run(
      "\(Self.root) cd groups/wormhole.user/.wormhole/system/coordination && ls running"
    ).output
    for word in [
      "x", "/", ":::", "a/b/c", "../../x/y", "/\(id)", String(repeating: "a/b:", count: 10_000),
    ] {
      let outcome = try stage.run(
        "\(Self.root) WORMHOLE_INSIDE='\(word.replacing("\n", with: ""))' "
          + "wormhole coordinate read file --timeout 0.1 -- echo never")
      #expect(outcome.status == .exited(75), "\(word.prefix(40)) \(outcome.errors)")
    }
    _ = try stage.run("echo go >pipe")
    _ = try holder.outcome()
    // An access that has ended is no reason to refuse.
    let later = try stage.run(
      "\(Self.root) wormhole coordinate write file -- sh -c 'echo $WORMHOLE_INSIDE' >inside; "
        + "WORMHOLE_INSIDE=$(cat inside) wormhole coordinate write file -- cat inside")
    #expect(later.status == .exited(0), "\(later.errors)")
    #expect(later.output.contains("/"))
  }

  /// Other accesses skip it.
  @Test func aStoppedWaiterIsNoProblem() throws {
    let stage = try Stage()
    let holder = try hold(stage, "write")
    let waiter = try stage.start(
      "wormhole coordinate write file -- echo written",
      environment: ["WORMHOLE_ROOT=\(stage.directory.path)/groups"])
    try eventually("it waits") {
      try stage.run("ls groups/wormhole.user/.wormhole/system/coordination/waiting").output != ""
    }
    let found = try eventually("it is stopped without the lock") { () -> ProcessOutcome? in
      try waiter.child.send(.stop)
      try waiter.waitUntilStopped()
      let found = try stage.run("\(Self.root) wormhole --group wormhole.user doctor")
      guard found.output.contains("coordination/lock/") else { return found }
      try waiter.child.send(.go)
      return nil
    }
    let who = "'wormhole' (process \(waiter.child.process), stopped)"
    let line = found.output.split(separator: "\n").first {
      $0.contains("\(who) waits to write '")
    }
    #expect(line?.hasPrefix("note ") == true, "\(found.output)")
    #expect(found.status == .exited(0), "\(found.output)")
    try waiter.child.send(.go)
    _ = try stage.run("echo go >pipe")
    #expect(try holder.outcome().status == .exited(0))
    #expect(try waiter.outcome().output == "written\n")
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
    #expect(dead.output.contains("left by an ended process"), "\(dead.output)")
    let mended = try stage.run("\(Self.root) wormhole --group wormhole.user doctor --repair")
    #expect(mended.status == .exited(0), "\(mended.output)")
  }
}
