import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let lock = Verb(
    "lock", "run a command while holding a lock",
    [Operand("NAME", .one, .names(.locks)), Operand("CMD", .command)],
    [.timeout, .conflictStatus, .takeOverAfter],
    [
      "Waits for the lock, runs CMD with its arguments, releases the lock, and ends with the "
        + "status of CMD, or with 128 plus the number of the signal that ended CMD. Exits with 75 "
        + "if the lock is busy until the time limit, or with the status in --conflict-exit-code; "
        + "with 127 if the program was not found, with 126 if the program "
        + "cannot be executed, and with 125 if CMD was not run for another reason. The "
        + "lock is free as soon as its holder has ended, even if the holder was killed.",
      "A suspended holder keeps the lock, and a waiter prints which process holds the lock. With "
        + "--take-over, a waiter takes over the lock from a holder that was suspended for D. "
        + "When the old holder resumes, two commands may overlap. "
        + "WORMHOLE_LOCK_GENERATION is a fencing token for CMD: a number that rises with each "
        + "takeover, by which a resource can refuse the older command.",
      "SIGINT and SIGTERM are passed to CMD. If this command is killed by SIGKILL, CMD continues "
        + "to run, and the lock is free.",
    ],
    [
      Example("wormhole lock build -- make", "run one build at a time"),
      Example("wormhole lock build --timeout 10s -- make", "wait at most ten seconds"),
      Example(
        "wormhole lock build --timeout 0 --conflict-exit-code 0 -- make",
        "run nothing, and report success, if another process has the lock"),
      Example(
        "wormhole lock build --take-over 60 -- make",
        "take over from a holder suspended for 60 seconds"),
    ]
  ) { invocation in
    try invocation.runCommand { status in
      let deadline = try invocation.deadline(.timeout)
      let takeOverAfter = try invocation.seconds(.takeOverAfter)
      // A lock with an empty name would be shared by all callers that mean another name.
      _ = try Container.escape(invocation.operands[0])
      let container = try invocation.open(create: true)
      let within = EnclosingLock(.lock(invocation.operands[0]), of: container)
      try within.refuseNesting("lock", invocation.operands[0])
      let wasSuperseded = try invocation.hold(in: container, takeOverAfter, until: deadline) {
        generation in
        status = try Programs.run(
          invocation.command, ["WORMHOLE_LOCK_GENERATION=\(generation)", within.setting]
        ).code
      }
      if wasSuperseded {
        invocation.output.warn(
          "lock '\(invocation.operands[0])' was taken over while the command ran; "
            + "another command may have run at the same time")
      }
    }
  }
}

extension Invocation {
  /// Holds the lock; after a second of waiting, reports the holder.
  fileprivate func hold(
    in container: SharedContainer, _ takeOverAfter: Duration?, until deadline: Instant?,
    _ body: (_ generation: Int) throws -> Void
  ) throws -> Bool {
    let name = operands[0]
    do {
      let slot = try container.storage.slot(.system, Container.Folder.lockPrefix + name)
      return try hold(slot, takeOverAfter, until: deadline, body)
    } catch let error as WormholeError {
      throw error.named(name)
    }
  }

  private func hold(
    _ slot: Slot, _ takeOverAfter: Duration?, until deadline: Instant?,
    _ body: (_ generation: Int) throws -> Void
  ) throws -> Bool {
    let second = Instant.now + .seconds(1)
    do {
      return try slot.hold(
        "lock", takeOverAfter: takeOverAfter,
        patience: Patience(until: min(second, deadline ?? second)),
        body
      ).wasSuperseded
    } catch let error as WormholeError where error.code == .timedOut {
      if let deadline, deadline <= second { throw error }
      let holder = error.reason.firstRange(of: ", held by ").map { error.reason[$0.lowerBound...] }
      output.tell(
        "waiting for lock '\(operands[0])'\(holder ?? "")" + (error.hint.map { "; " + $0 } ?? ""))
    }
    return try slot.hold(
      "lock", takeOverAfter: takeOverAfter, patience: Patience(until: deadline), body
    ).wasSuperseded
  }
}

extension Invocation {
  /// Returns the status of CMD, which the body runs under a lock or an access.
  ///
  /// An error before the start of CMD is thrown, with the status for a conflict if a time limit has
  /// passed. A later error is only reported.
  func runCommand(_ body: (inout Int32?) throws -> Void) throws -> Int32 {
    try Interruption.prepare()
    var status: Int32?
    let busy = try conflictStatus()
    do {
      try body(&status)
      return status ?? ExitCode.neverRan.rawValue
    } catch {
      guard let status else {
        var failure = Failure(neverRan: error)
        if (error as? WormholeError)?.code == .timedOut { failure.status = busy }
        throw failure
      }
      output.tell(Failure(error))
      return status
    }
  }

  /// Returns the exit status for a time limit that passes while another process holds a lock.
  ///
  /// The status is not 1, which most programs use for their own failures.
  private func conflictStatus() throws(Failure) -> Int32 {
    let status = try number(.conflictStatus, most: 255)
    return status.map { Int32($0) } ?? ExitCode.tryAgain.rawValue
  }
}

extension Option {
  static let takeOverAfter = Option(
    "take-over", .any("D"), "suspension after which to take over from the holder")
}
