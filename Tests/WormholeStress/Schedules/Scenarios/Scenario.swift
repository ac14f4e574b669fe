#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// What real processes do in every order that a schedule can give them.
  ///
  /// The last process checks the container once the others have ended, with the library as they.
  enum Scenario: String, CaseIterable {
    case updaters, power, mail, takeover, cancel, several, names, repair, batch, members, late, ask,
      left
    case queue, present, moved, carry, homes, changes, talk
    case hung, appear, guest, file, state, rivals, lent
    case pieces, losses, evict, follow, wake, saves, keys, delivered

    var purpose: String {
      switch self {
      case .updaters: "two processes add to a number"
      case .takeover: "two processes add to a number, one is suspended"
      case .power: "two processes add to a number for good"
      case .mail: "a sender and a receiver, of two messages"
      case .cancel: "a sender and a receiver, and a cancelled message"
      case .several: "two processes change two channels, a third one reads them"
      case .names: "a channel is removed, changed and watched"
      case .repair: "a damaged value is repaired and changed"
      case .batch: "a batch to each of two members, a process is killed"
      case .members: "a member leaves and is removed, one joins, and one sends"
      case .late: "two contexts for a member that starts, a process is killed"
      case .ask: "a request to a member that is killed, and its successor"
      case .left: "a request to a member that leaves and joins again"
      case .queue: "two workers of a queue, one is killed or suspended"
      case .present: "two accesses to a file, and its presenter with unsaved content"
      case .moved: "a file is moved, presented and written"
      case .carry: "two messages to another machine, and the bridges of both"
      case .homes: "workers of a queue on two machines, and its home moves"
      case .changes: "two machines add to a channel, and its home moves"
      case .talk: "a request, a context and a large message to another machine"
      case .hung: "two accesses to a file, and a presenter that replies too late"
      case .appear: "a presenter registers while another process writes, and is killed"
      case .guest: "as carry, from a guest, and without space for outcomes"
      case .file: "as carry, with a file, and the sender is killed"
      case .state: "contexts to another machine, one after the other"
      case .rivals: "two programs of a machine add to a channel of another one"
      case .lent: "a worker of another machine takes long for two jobs"
      case .pieces: "messages with files to another machine"
      case .losses: "messages to another machine, and the server loses its data"
      case .evict: "a machine is given up and reappears, and its messages go elsewhere"
      case .follow: "messages to a member, and its home moves to another machine"
      case .wake: "a member of another machine is woken, without a program for it"
      case .saves: "three processes add to a number, and two of them save it"
      case .keys: "two workers of a queue refuse jobs of a key, and one is killed"
      case .delivered: "two threads send at the same time, and the power is cut"
      }
    }

    /// All processes, including the checker.
    var processes: Int {
      switch self {
      case .updaters, .takeover, .power, .repair, .left, .present, .hung: 3
      case .carry, .guest, .file: 7
      case _ where hasMachines: 8
      default: 4
      }
    }

    /// The processes that are killed, and their successors.
    var replacements: [(of: Int, by: Int)] {
      switch self {
      case .mail, .cancel, .batch, .late, .ask, .delivered: [(0, 2)]
      case .carry, .guest, .file: [(0, 4), (1, 5)]
      case _ where hasMachines: [(1, 3), (2, 4)]
      default: []
      }
    }

    /// What happens to a process at each of its steps, unless the command line says otherwise.
    var harm: ScheduleSearch.Harm {
      switch self {
      case .takeover, .several, .repair: .suspensions
      case .names: [.suspensions, .losses]
      case .batch, .late, .ask, .appear, .file, .keys: .kills
      case .queue, .saves: [.kills, .suspensions]
      default: []
      }
    }

    /// What happens to processes in orders that the seed draws, unless the command line says
    /// otherwise.
    ///
    /// The checks of the scenarios with machines take some consequence of a failed call for a
    /// broken promise: a record is carried later.
    var drawnHarm: ScheduleSearch.Harm {
      hasMachines
        ? [.kills, .suspensions, .losses] : [.kills, .suspensions, .losses, .failures]
    }

    /// The process that only waits, and is killed while the other ones take steps.
    var victim: Int? { self == .ask ? 0 : nil }

    /// Whether each order with a harm of the process is run.
    ///
    /// The workers of a queue are alike; of those in `keys` the one that claims first is killed. In
    /// `batch` a sender is killed. In `moved` the mover is killed; drawn orders kill the presenter
    /// and the writer too. In `carry` the bridges are killed, and in `file` the sender; drawn
    /// orders kill the others too.
    func isHarmed(_ process: Int) -> Bool {
      switch self {
      case .queue, .keys, .moved, .appear: process == 1
      case .carry, .guest: process < 2
      case .file: process == CarryPart.sender
      case _ where hasMachines: MachinePart.bridges.contains(process)
      default: true
      }
    }

    /// The most preemptions in an order, unless the command line says otherwise.
    var preemptions: Int {
      switch self {
      case .updaters, .power, .mail, .takeover, .cancel: 2
      // All orders with one preemption would take longer than those of the other scenarios.
      case .moved, .hung, .appear, .carry, .guest, .file, .keys: 0
      case _ where hasMachines: 0
      default: 1
      }
    }

    /// A scenario with long rounds runs a part of the wanted number of drawn orders.
    var drawnShare: Int {
      switch self {
      case .keys: 4
      case .hung: 8
      default: hasMachines ? 8 : 1
      }
    }

    /// Whether the outcomes of a power cut under a channel are checked, after each step.
    var hasCuts: Bool { [.updaters, .takeover, .power, .saves].contains(self) }

    /// Whether the outcomes of a power cut under a member's messages are checked, after each step.
    var hasMessageCuts: Bool { self == .delivered }

    /// Whether the processes can play one after the other.
    var canPlayInTurn: Bool {
      switch self {
      case .updaters, .takeover, .power, .saves, .several, .names, .repair: true
      case .present, .moved, .hung, .appear: true
      default: false
      }
    }

    /// The time for which a process is suspended: longer than any lease here.
    static let suspension = Duration.seconds(3)

    func options() -> Options {
      var options = Options()
      if self == .power { options.durability = .power }
      options.lease = .milliseconds(80)
      options.mailbox.attempts = 63
      options.mailbox.retryDelay = .milliseconds(10)
      return options
    }

    // MARK: The processes

    /// Plays the part of a process, in that process.
    func play(_ number: Int, in path: String) throws {
      if number == processes - 1 { return try check(path) }
      switch self {
      case .updaters, .takeover, .power, .saves: try add(number, path)
      case .mail, .cancel:
        if number == 1 { try send(path) } else { try receive(path) }
      case .delivered:
        if number == 1 { try sendTogether(path) } else { try receive(path) }
      case .several: try changeSeveral(number, path)
      case .names: try changeNames(number, path)
      case .repair: try changeDamaged(number, path)
      case .batch:
        if number == 1 { try sendBatches(path) } else { try receive(path) }
      case .members: try joinAndRemove(number, path)
      case .late:
        if number == 1 { try setContexts(path) } else { try receiveContexts(path) }
      case .ask, .left:
        if number == 1 { try request(path) } else { try reply(number, path) }
      case .queue:
        if number == 0 { try sendJobs(path) } else { try work(path, for: .seconds(1)) }
      case .keys:
        if number == 0 {
          try sendKeyedJobs(path)
        } else {
          try workInOrder(number, path, for: .seconds(1))
        }
      case .present: try access(number, path)
      case .moved: try move(number, path)
      case .hung: try hang(number, path)
      case .appear: try appear(number, path)
      case .carry, .guest, .file: try carry(number, path)
      case .homes, .changes, .talk, .state, .rivals, .lent: try playWithMachines(number, path)
      case .pieces, .losses, .evict, .follow, .wake: try playWithMachines(number, path)
      }
    }

    private func add(_ number: Int, _ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      let sum = container.channel("sum", of: Int.self)
      if number == 0 { try sum.put(0) }
      // The reading opens what the race needs.
      _ = try sum.value
      Turnstile.begin()
      // A synced value between two others, while another process saves an earlier one.
      if self == .saves, number == 2 { try Self.addOne(to: sum, number, durability: .power) }
      try Self.addOne(to: sum, number)
      if self == .saves, number < 2 { container.storage.finishSaving() }
      // The closing of files at the end of a process is no part of the race.
      Turnstile.finish()
    }

    private static func addOne(
      to sum: Channel<Int>, _ number: Int, durability: Durability? = nil
    ) throws {
      Note.attempted.write(number)
      let after = try sum.updateVersionIfNeeded(durability: durability) { value in
        value = (value ?? 0) + 1
        return .commit
      }
      Note.added.write(after.value ?? -1)
      Note.version.write(after.version)
    }

    /// Sends a message before the race, which opens what the race needs, and two in the race.
    private func send(_ path: String) throws {
      let member = try SharedContainer(directory: path, options: options()).join(as: "a")
      let peer = member.peer("b")
      var options = SendOptions()
      options.wantsOutcome = self == .cancel
      Note.attempted.write(0)
      try peer.send(0, SendOptions())
      Note.sent.write(0)
      Self.pause(.seconds(1))
      Turnstile.begin()
      Note.attempted.write(1)
      let first = try peer.send(1, options)
      Note.sent.write(1)
      if self == .cancel {
        Note.cancelling.write(1)
        Note.cancelled.write(try first.cancel() == .cancelled ? 1 : 0)
      }
      Note.attempted.write(2)
      try peer.send(2, SendOptions())
      Note.sent.write(2)
      if self == .cancel, let end = first.waitForEnd(until: .now + .seconds(60)) {
        Note.outcome.write(end == .delivered ? 1 : end == .cancelled ? 0 : 2)
      }
      Turnstile.finish()
      member.leave()
    }

    /// Sends two messages from two threads, which share the syncs of the inbox, and a last one.
    private func sendTogether(_ path: String) throws {
      let member = try SharedContainer(directory: path, options: options()).join(as: "a")
      let peer = member.peer("b")
      Self.send(0, to: peer)
      Self.pause(.seconds(1))
      Turnstile.begin()
      let sending = try Thread("sender") { Self.send(2, to: peer) }
      Self.send(1, to: peer)
      sending.join()
      Self.send(lastMessage, to: peer)
      Turnstile.finish()
      member.leave()
    }

    private var lastMessage: Int { self == .delivered ? 3 : 2 }

    private static func send(_ number: Int, to peer: Peer) {
      Note.attempted.write(number)
      do {
        try peer.send(number, SendOptions())
        Note.sent.write(number)
      } catch {
        Turnstile.setText("\(error)")
      }
    }

    /// Waits until each thread waits: the clock is the schedule's.
    static func pause(_ time: Duration) {
      let _: Void? = Monitor(0).wait(until: .now + limited(time)) { _ in nil }
    }

    /// Without a schedule, time is real.
    static func limited(_ time: Duration) -> Duration {
      Turnstile.isScheduled ? time : min(time, .milliseconds(200))
    }

    private func receive(_ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      let member = try container.join(as: "b")
      let receiving = try Self.receive(
        as: member, beginning: true, for: .seconds(20), last: lastMessage)
      receiving.stop()
      Turnstile.finish()
      member.leave()
    }

    /// Receives until the last message has been acknowledged, or the time is up.
    ///
    /// - Parameter prepare: called before each acknowledgement.
    static func receive(
      as member: Member, beginning begins: Bool, for time: Duration, last: Int = 2,
      preparing prepare: @escaping @Sendable () throws -> Void = {}
    ) throws -> Subscription {
      let isOver = Monitor(false)
      let receiving = try member.receive(acknowledging: .explicit) { message in
        let number = try message.value(as: Int.self)
        (message.isRedelivered ? Note.redelivered : .received).write(number)
        try prepare()
        Note.acknowledging.write(number)
        do {
          try message.acknowledge()
        } catch {
          Note.unacknowledged.write(number)
          throw error
        }
        Note.acknowledged.write(number)
        if number == last { isOver.signal { $0 = true } }
      }
      if begins { Turnstile.begin() }
      let _: Bool? = isOver.wait(until: .now + time) { $0 ? true : nil }
      return receiving
    }

    // MARK: The check

    private func check(_ path: String) throws {
      if [.present, .hung, .appear].contains(self) { return try checkAccess(path) }
      if self == .moved { return try checkMove(path) }
      if isCarried { return try checkCarried(path) }
      if hasMachines { return try checkMachines(path) }
      if self == .queue { return try work(path, for: .seconds(8)) }
      if self == .keys { return try workInOrder(processes - 1, path, for: .seconds(8)) }
      let container = try SharedContainer(directory: path, options: options())
      var members: [Member] = []
      let time = Turnstile.isScheduled ? Duration.seconds(5) : .zero
      switch self {
      case .updaters, .takeover, .power, .saves, .repair:
        let latest = try container.channel("sum", of: Int.self).latest
        Note.added.write(latest?.value ?? -1)
        Note.version.write(latest?.metadata.version ?? -1)
      case .several: try checkSeveral(container)
      case .names: try checkNames(container)
      case .mail, .cancel, .members, .batch, .delivered:
        members.append(try container.join(as: "b"))
        try Self.receive(as: members[0], beginning: false, for: time, last: lastMessage).stop()
        guard self == .batch else { break }
        members.append(try container.join(as: "c"))
        try Self.receive(as: members[1], beginning: false, for: time, last: 12).stop()
      case .late:
        members.append(try container.join(as: "b"))
        try Self.receiveContexts(as: members[0], for: time)
      default: break
      }
      let findings = try container.storage.inspect() + container.inspectMail()
      let isHarmed =
        (0..<processes).contains { Turnstile.wasKilled($0) } || !Turnstile.failedSteps.isEmpty
      for finding in findings where finding.severity == .problem {
        if self == .repair, finding.subject.hasPrefix("damaged/") { continue }
        // The next change removes it. A save waits for a suspended holder no longer than a second.
        let isSave = finding.subject.hasSuffix(".d/save")
        if isHarmed || isSave, finding.what == "left by an ended process" { continue }
        Note.problem.write(0)
        Turnstile.setText("doctor: \(finding)")
      }
      Turnstile.finish()
      for member in members { member.leave() }
    }
  }

  /// What a process notes for the check: a pair of numbers, the kind and the value.
  enum Note: Int {
    case attempted = 1
    case added, version, sent, received, redelivered, acknowledging, acknowledged, cancelling
    case cancelled, outcome, problem, done, partly, first, second, removed, refused, replied, late
    case began, ended, asked, resumed, moved, told, shown, presented, place, returned
    case unacknowledged

    func write(_ value: Int) {
      Turnstile.note(rawValue)
      Turnstile.note(value)
    }
  }
#endif
