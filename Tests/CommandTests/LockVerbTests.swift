import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `wormhole lock` among several processes.
@Suite(.blocking, .notSanitized("about what a command prints")) struct LockVerbTests {
  /// Prints a line, and holds a lock until a process writes to `pipe`.
  private func hold(_ stage: Stage, _ options: String = "") throws -> Running {
    _ = try stage.run("[ -p pipe ] || mkfifo pipe")
    let holder = try stage.start(
      "wormhole lock build \(options) -- sh -c 'echo held; read -r x <pipe; echo over'")
    try eventually("the lock is held") { try holder.output == "held\n" }
    return holder
  }

  private func release(_ stage: Stage) throws { _ = try stage.run("echo go >pipe") }

  @Test func oneRunsAtATime() throws {
    let stage = try Stage()
    let command = """
      for i in 1 2 3 4 5 6; do
        wormhole lock build -- sh -c 'mkdir inside && rmdir inside && echo one >>log' &
      done; wait; wc -l <log
      """
    let outcome = try stage.run(command)
    #expect(outcome.output.filter { $0 != " " } == "6\n")
    #expect(outcome.errors == "")
  }

  /// The command waits for a second before it prints a notice, but never past its time limit.
  @Test func aTimeLimitBelowASecondIsShorterThanASecond() throws {
    let stage = try Stage()
    let holder = try hold(stage)
    // A busy machine may delay a single run.
    #expect(throws: Never.self) {
      try eventually("a run shorter than a second") {
        let begun = Instant.now
        let outcome = try stage.run("wormhole lock build --timeout 0.05 -- echo never")
        #expect(outcome.status == .exited(75))
        return .now < begun + .seconds(1)
      }
    }
    try release(stage)
    #expect(try holder.outcome().status == .exited(0))
  }

  @Test func aStoppedHolderIsNamed() throws {
    let stage = try Stage()
    let holder = try hold(stage)
    try holder.child.send(.stop)
    try holder.waitUntilStopped()
    let process = holder.child.process
    let outcome = try stage.run("wormhole lock build --timeout 0.05 -- echo never")
    #expect(outcome.status == .exited(75))
    #expect(outcome.output == "")
    #expect(
      outcome.errors == "wormhole: cannot lock 'build': the deadline passed while waiting for "
        + "the lock, held by 'wormhole' (process \(process), stopped); resume the process with "
        + "'kill -CONT \(process)', or end the process\n")
    // A waiter without a deadline prints a notice after a second, and gets the lock in the end.
    let waiter = try stage.start("wormhole lock build -- echo mine")
    try eventually("the holder is named") {
      try waiter.errors.contains("waiting for lock 'build'") && waiter.errors.contains("stopped")
    }
    try holder.child.send(.go)
    try release(stage)
    #expect(try holder.outcome().output == "held\nover\n")
    #expect(try waiter.outcome().output == "mine\n")
  }

  @Test func aStoppedHoldersLockIsBroken() throws {
    let stage = try Stage()
    let holder = try hold(stage)
    try holder.child.send(.stop)
    try holder.waitUntilStopped()
    let other = try stage.run(
      "wormhole lock build --take-over 1 -- sh -c 'echo $WORMHOLE_LOCK_GENERATION'")
    #expect(other.output == "2\n")
    #expect(other.status == .exited(0))
    try holder.child.send(.go)
    try release(stage)
    let outcome = try holder.outcome()
    #expect(outcome.status == .exited(0))
    #expect(
      outcome.errors
        == "wormhole: lock 'build' was taken over while the command ran; another command may have "
        + "run at the same time\n")
  }

  @Test func aRunningHoldersLockIsNotBroken() throws {
    let stage = try Stage()
    let holder = try hold(stage, "--take-over 60")
    let other = try stage.run("wormhole lock build --take-over 2 --timeout 4 -- echo mine")
    #expect(other.status == .exited(75))
    #expect(other.output == "")
    #expect(other.errors.contains("running"), "\(other.errors)")
    try release(stage)
    let outcome = try holder.outcome()
    #expect(outcome.output == "held\nover\n")
    #expect(outcome.errors == "")
  }

  @Test func aKilledHoldersLockIsFree() throws {
    let stage = try Stage()
    let holder = try hold(stage)
    try holder.child.send(.kill)
    #expect(try holder.outcome().status == .signalled(9))
    let outcome = try stage.run("wormhole lock build --timeout 20 -- echo mine")
    #expect(outcome.output == "mine\n")
    // The command of the killed holder runs on, as no process ended it.
    try release(stage)
  }

  @Test(arguments: [(Processes.Signal.interrupt, Int32(2)), (.terminate, 15)])
  func aSignalGoesToTheCommand(_ signal: Processes.Signal, _ number: Int32) throws {
    let stage = try Stage()
    let holder = try stage.start("wormhole lock build -- sh -c 'echo held; exec sleep 600'")
    try eventually("the lock is held") { try holder.output == "held\n" }
    try holder.child.send(signal)
    #expect(try holder.outcome().status == .exited(128 + number))
    #expect(try stage.run("wormhole lock build --timeout 0 -- echo free").output == "free\n")
  }

  /// A terminal signals its whole process group: the tool must not forward the signal again.
  @Test func aTerminalsSignalReachesTheCommandOnce() throws {
    guard Programs.installed("python3") != nil else {
      return skip("signals of a terminal", because: "there is no python3")
    }
    let stage = try Stage()
    // Python calls a handler only between two calls: a signal just before a read would be told
    // after it. The pipe has the byte of each signal at once.
    let command = """
      import os, select, signal
      signals, end = os.pipe2(os.O_NONBLOCK)
      signal.set_wakeup_fd(end)
      signal.signal(signal.SIGINT, lambda *_: None)
      os.write(1, b"ready\\n")
      ready = []
      while 0 not in ready:
          ready = select.select([0, signals], [], [])[0]
          if signals in ready: os.write(1, b"told\\n" * len(os.read(signals, 64)))
      """
    let typist = """
      import os
      process, terminal = os.forkpty()
      if process == 0: os.execvp("sh", ["sh", "-c", os.environ["LINE"]])
      said = b""
      def more():
          global said
          try: part = os.read(terminal, 65536)
          except OSError: part = b""
          said += part
          return part
      def wait(word, count):
          while said.count(word) < count:
              if not more(): break
      wait(b"ready", 1)
      for number in range(10):
          os.write(terminal, b"\\x03")
          wait(b"told", number + 1)
      os.write(terminal, b"\\n")
      while more(): pass
      os.waitpid(process, 0)
      print(said.count(b"ready"), said.count(b"told"))
      """
    let outcome = try stage.run(
      "exec python3 -c \"$TYPIST\"",
      environment: [
        "TYPIST=\(typist)", "COMMAND=\(command)",
        "LINE=exec wormhole lock build -- python3 -c \"$COMMAND\"",
      ])
    #expect(outcome.errors == "")
    #expect(outcome.output == "1 10\n")
  }

  @Test func aSignalEndsTheWait() throws {
    let stage = try Stage()
    let holder = try hold(stage)
    let waiter = try stage.start("wormhole lock build -- echo never")
    // Once the waiter has printed the holder's name, it is in the queue.
    try eventually("it waits") { try waiter.errors.contains("waiting for lock") }
    try waiter.child.send(.terminate)
    let outcome = try waiter.outcome()
    #expect(outcome.status == .signalled(15))
    #expect(outcome.output == "")
    try release(stage)
    #expect(try holder.outcome().status == .exited(0))
  }

  /// Leftovers of the command are not waited for: other processes wait for the lock.
  @Test func anInterruptedUpdateEndsThoughItsOutputIsOpen() throws {
    let stage = try Stage()
    _ = try stage.run("wormhole put speed slow")
    let update = try stage.start(
      "wormhole update speed --exec 'sleep 600 & echo $! >left; echo begun >&2; wait'")
    try eventually("the command runs") { try update.errors == "begun\n" }
    try update.child.send(.terminate)
    #expect(try update.outcome().status == .signalled(15))
    #expect(try stage.run("wormhole get speed").output == "slow\n")
    _ = try stage.run("kill $(cat left)")
  }

  @Test func whyItsCommandDidNotRunIsToldByTheStatus() throws {
    let stage = try Stage()
    _ = try stage.run("echo words >words; chmod +x words; ln -s loop loop")
    for (words, status) in [
      ("--container none/x lock l -- true", 125), ("coordinate read '' -- true", 125),
      ("lock l -- ./words", 126), ("lock l -- ./words/program", 126), ("lock l -- ./loop", 126),
      ("lock l -- .", 126), ("lock l -- ./none", 127),
    ] as [(String, Int32)] {
      let outcome = try stage.run("wormhole \(words)")
      #expect(outcome.status == .exited(status), "\(words): \(outcome.errors)")
    }
  }

  @Test func whatHasNoNameIsRefused() throws {
    let stage = try Stage()
    for words in [
      "lock '' -- true", "defaults write '' key value", "defaults read ''", "defaults delete ''",
      "defaults watch '' --timeout 0",
    ] {
      let outcome = try stage.run("wormhole put a 1; wormhole \(words)")
      #expect(outcome.status == .exited(64), "\(words)")
    }
    let long = String(repeating: "l", count: 240)
    for name in [long, "l"] {
      let outcome = try stage.run(
        """
        mkdir -p hole/system/lock.l && cd hole/system/lock.l && rm -rf lock && touch lock
        wormhole lock \(name) -- true
        """)
      #expect(!outcome.errors.contains("'lock."), "\(outcome.errors)")
      #expect(outcome.errors.contains("'\(name)'"), "\(outcome.errors)")
    }
  }

  @Test func anInterruptedUpdateChangesNothing() throws {
    let stage = try Stage()
    _ = try stage.run("mkfifo pipe; wormhole put speed slow")
    let update = try stage.start(
      "wormhole update speed --exec 'echo begun >&2; echo half; exec sleep 600'")
    try eventually("the command runs") { try update.errors == "begun\n" }
    try update.child.send(.terminate)
    #expect(try update.outcome().status == .exited(143))
    #expect(try stage.run("wormhole update speed --exec 'tr a-z A-Z'").status == .exited(0))
    #expect(try stage.run("wormhole get speed").output == "SLOW\n")
  }
}
