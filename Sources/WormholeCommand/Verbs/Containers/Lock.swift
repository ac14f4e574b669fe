import CommandLine
import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let lock = Verb(
    "lock", "run a command while nobody else holds a lock of that name",
    [Operand("NAME", .one, .names(.locks)), Operand("CMD", .command)], [.timeout, .breakAfter],
    [
      "Waits for the lock, runs CMD with its arguments, releases the lock and passes on the status "
        + "of CMD, or 128 and the number of the signal that ended it. Exits with 1 if time was up, "
        + "with 127 if there is no such program, with 126 if it cannot be run, and with 125 if CMD "
        + "was not run for another reason. A lock is free as soon as its holder is gone, however "
        + "it went.",
      "A holder that is stopped keeps the lock, and whoever waits is told who it is. With "
        + "--break-after the lock is taken over from a holder that has not run for so long: when "
        + "that one goes on, two commands may overlap. CMD gets a number in "
        + "WORMHOLE_LOCK_GENERATION that rises with each such takeover, so that what it changes "
        + "can refuse the older one.",
      "SIGINT and SIGTERM go to CMD. If the command itself is killed by SIGKILL, CMD runs on, and "
        + "the lock is free.",
    ],
    [
      Example("wormhole lock build -- make", "one at a time"),
      Example("wormhole lock build --timeout 10 -- make", "wait ten seconds at most"),
      Example("wormhole lock build --break-after 60 -- make", "do not wait for the stopped"),
    ]
  ) { invocation in
    try Interruption.prepare()
    var status: Int32?
    do {
      let deadline = try invocation.deadline(.timeout)
      let breakAfter = try invocation.seconds(.breakAfter)
      // The lock of no name would be shared by all who mean another.
      _ = try Container.escape(invocation.operands[0])
      let hole = try invocation.open(create: true)
      let within = Enclosure(.lock(invocation.operands[0]), of: hole)
      try within.refuseNesting("lock", invocation.operands[0])
      let wasSuperseded = try invocation.hold(in: hole, breakAfter, until: deadline) {
        generation in
        status = try Programs.run(
          invocation.command, ["WORMHOLE_LOCK_GENERATION=\(generation)", within.setting]
        ).code
      }
      if wasSuperseded {
        invocation.output.tell("the lock was taken over while the command ran")
      }
      return status ?? ExitCode.neverRan.rawValue
    } catch {
      guard let status else { throw Failure(neverRan: error) }
      invocation.output.tell(Failure(error))
      return status
    }
  }
}

extension Invocation {
  /// After a second of waiting, says for whom.
  fileprivate func hold(
    in hole: Wormhole, _ breakAfter: Duration?, until deadline: Instant?,
    _ body: (_ generation: Int) throws -> Void
  ) throws -> Bool {
    let name = operands[0]
    do {
      let slot = try hole.container.slot(.system, "lock." + name)
      return try hold(slot, breakAfter, until: deadline, body)
    } catch let error as WormholeError {
      // Under the name that the caller knows.
      var named = error
      named.subject = name
      throw named
    }
  }

  private func hold(
    _ slot: Slot, _ breakAfter: Duration?, until deadline: Instant?,
    _ body: (_ generation: Int) throws -> Void
  ) throws -> Bool {
    let second = Instant.now + .seconds(1)
    do {
      return try slot.hold(
        "lock", breakAfter: breakAfter, patience: Patience(until: min(second, deadline ?? second)),
        body
      ).wasSuperseded
    } catch let error as WormholeError where error.code == .timedOut {
      if let deadline, deadline <= second { throw error }
      let holder = error.reason.firstRange(of: ", which ").map { error.reason[$0.lowerBound...] }
      output.tell(
        "waiting for lock '\(operands[0])'\(holder ?? "")" + (error.hint.map { "; " + $0 } ?? ""))
    }
    return try slot.hold(
      "lock", breakAfter: breakAfter, patience: Patience(until: deadline), body
    ).wasSuperseded
  }
}

extension Option {
  static let breakAfter = Option(
    "break-after", .any("S"), "take the lock over from a holder that stood still for S seconds")
}
