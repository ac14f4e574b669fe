internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeRelay
internal import WormholeSyscalls

/// The rights of the machine, and the bridges of the other machines, which it takes to try some.
extension BridgeDoctor {
  /// How many machines are asked at a time whether they answer.
  private static let mostAsked = 64
  /// How long the heartbeats of two machines may take to arrive: a quiet machine sends one every
  /// five seconds.
  private static let heartbeatTime = Heartbeat.quietInterval * 2
  private static let answerTime = Duration.seconds(5)

  private static let sending = "send heartbeats"
  private static let hearing = "receive heartbeats"
  private static let asking = "confirm, and ask other machines"
  private static let listening = "receive confirmations and questions"
  private static let replying = "reply to other machines"

  /// Tries the rights that the machine can try alone.
  mutating func tryRights(
    _ rights: MachineRights, _ place: Place, _ subjects: Subjects, _ dialog: ServerDialog,
    _ proof: inout RightsProof
  ) throws {
    let check = RightsCheck(dialog.jetStream, subjects, place.machine, rights)
    try dialog.turn(until: { check.isDone }, within: .seconds(60)) { check.proceed($0) }
    for (right, verdict) in check.verdicts {
      switch verdict {
      case .works: proof.works(right.purpose)
      case .missing(let reason):
        add(
          .problem, "rights", "the machine may not \(right.purpose): \(reason)",
          advice: Self.advice(right))
      case .unknown(let reason):
        add(
          .problem, "rights", "no reply to the attempt to \(right.purpose): \(reason)",
          advice: "run this command again when the servers have a leader; then look for "
            + "\"\(right.subject)\" in the rights of the machine")
      }
    }
  }

  private static func advice(_ right: MachineRights.Right) -> String {
    "add \"\(right.subject)\" to the list '\(right.action.rawValue)' of the machine on all servers"
  }

  mutating func report(_ proof: RightsProof) {
    add(.fine, "rights", "\(proof.working.count) of \(proof.count) rights were tried and work")
    for (right, reason) in proof.open {
      add(
        .note, "rights", "could not try to \(right.purpose), \"\(right.subject)\": \(reason)")
    }
  }

  // MARK: Other machines

  /// The replies of the other machines.
  private final class Replies {
    var answered: [String: Bool] = [:]
    /// Whether a machine receives the heartbeats of this one, and the reply of this one's bridge.
    var (isHeard, hasReply) = (false, false)
    /// Whether a heartbeat of another machine has arrived.
    var hears = false
    var hasAnswers: Bool { answered.values.contains(true) }
  }

  /// Asks the bridge of every other machine for a reply, which takes the rights of both machines.
  mutating func askMachines(
    _ records: GroupRecords, _ place: Place, _ subjects: Subjects, _ dialog: ServerDialog,
    _ proof: inout RightsProof
  ) throws {
    let machines = records.machines.filter {
      $0.key != place.machine && $0.value.record.fate == nil
    }
    .keys.sorted()
    let replies = Replies()
    dialog.connection.subscribe(subjects.heartbeats) { message in
      if message.subject != subjects.heartbeat(place.machine) { replies.hears = true }
    }
    let end = Instant.now + Self.heartbeatTime
    dialog.extend(to: end + Self.answerTime * 2)
    while true {
      for first in stride(from: 0, to: machines.count, by: Self.mostAsked) {
        try ask(machines[first...].prefix(Self.mostAsked), place, dialog, replies)
      }
      // Heartbeats that are missing may be on their way.
      let isOver = replies.hears && (replies.isHeard && replies.hasReply || !isServed)
      guard replies.hasAnswers, !isOver, .now < end else { break }
      try dialog.turn(until: { false }, within: .milliseconds(500))
    }
    for machine in machines {
      if replies.answered[machine] == true {
        add(.fine, "machine \(machine)", "its bridge answers")
      } else {
        add(
          .note, "machine \(machine)", "its bridge does not answer",
          advice: "start its bridge; if it runs, compare the rights of both machines with those "
            + "that 'wormhole bridge rights' prints")
      }
    }
    judge(replies, &proof)
  }

  /// Asks machines at the same time, and waits for each reply or its timeout.
  private func ask(
    _ machines: ArraySlice<String>, _ place: Place, _ dialog: ServerDialog, _ replies: Replies
  ) throws {
    // The servers have answered: a machine that is late is no trouble of the servers.
    dialog.extend(to: .now + Self.answerTime * 2)
    var waiting = Set(machines)
    for machine in machines {
      ask(machine, place, dialog) { reply in
        waiting.remove(machine)
        replies.answered[machine] = reply != nil || replies.answered[machine] == true
        if reply?[Bridge.HereKey.isHeard]?.boolValue == true { replies.isHeard = true }
        if reply?[Bridge.HereKey.hasReply]?.boolValue == true { replies.hasReply = true }
      }
    }
    try dialog.turn(until: { waiting.isEmpty })
  }

  private func ask(
    _ machine: String, _ place: Place, _ dialog: ServerDialog,
    _ handler: @escaping (PropertyListValue?) -> Void
  ) {
    let question: PropertyListValue = [Bridge.HereKey.wantsReply: .boolean(isServed)]
    dialog.connection.request(
      Subjects.word(.here, to: machine, from: place.machine),
      (try? BinaryEncoder().encode(question)) ?? [], within: Self.answerTime
    ) { result in
      handler((try? result.get()).map { (try? BinaryPropertyList.decode($0.payload)) ?? [:] })
    }
  }

  private mutating func judge(_ replies: Replies, _ proof: inout RightsProof) {
    guard replies.hasAnswers else {
      for purpose in [Self.sending, Self.hearing, Self.asking, Self.listening, Self.replying] {
        proof.cannotTry(purpose, because: "no bridge of another machine answers")
      }
      return
    }
    proof.works(Self.asking)
    judge(
      replies.hears, [Self.hearing], "no heartbeat arrives from the bridges of the group", &proof)
    guard isServed else {
      for purpose in [Self.sending, Self.listening, Self.replying] {
        proof.cannotTry(purpose, because: "no bridge of this machine runs")
      }
      return
    }
    judge(
      replies.isHeard, [Self.sending], "no bridge of the group receives this machine's heartbeats",
      &proof)
    judge(
      replies.hasReply, [Self.listening, Self.replying],
      "the bridge of this machine does not reply to other machines", &proof)
  }

  private mutating func judge(
    _ works: Bool, _ purposes: [String], _ trouble: String, _ proof: inout RightsProof
  ) {
    guard !works else { return purposes.forEach { proof.works($0) } }
    add(
      .problem, "rights", trouble,
      advice: purposes.compactMap { proof.right($0).map(Self.advice) }.joined(separator: "; "))
  }
}
