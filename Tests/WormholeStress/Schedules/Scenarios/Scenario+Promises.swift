#if FAULT_POINTS
  import WormholeSyscalls

  extension Scenario {
    /// Returns the promise that a round has broken; nil if all were kept.
    func violation(_ outcome: Turnstile.RoundOutcome, hasFailures: Bool) -> String? {
      switch outcome {
      case .over: break
      case .deadlock: return "deadlock: each thread waits"
      case .tooLong: return "endless: more steps than a round can have"
      case .crash, .stuck: return "\(outcome): \(Turnstile.trouble)"
      case .astray: return "astray: a move of the schedule cannot be made"
      }
      for number in 0..<processes {
        let text = Turnstile.text(of: number)
        guard text.isEmpty || hasFailures && number < processes - 1 else {
          return "error: process \(number): \(text)"
        }
      }
      if hasCuts, let broken = PowerPromise.violation() { return broken }
      if hasMessageCuts, let broken = DeliveryPromise.violation() { return broken }
      let notes = (0..<processes).map { Self.pairs(Turnstile.notes(of: $0)) }
      return switch self {
      case .updaters, .takeover, .power, .saves: brokenSum(notes)
      case .mail, .cancel, .delivered: brokenMail(notes)
      case .members: brokenMail(notes, sender: 0)
      case .several: brokenSeveral(notes)
      case .names: brokenNames(notes)
      case .repair: brokenRepair(notes)
      case .batch: brokenBatch(notes)
      case .late: brokenContexts(notes)
      case .ask, .left: brokenRequest(notes)
      case .queue: brokenQueue(notes)
      case .keys: brokenKeys(notes)
      case .present: brokenAccess(notes)
      case .moved: brokenMove(notes)
      case .hung: brokenHanging(notes)
      case .appear: brokenAppearance(notes)
      case .carry, .guest, .file: brokenCarrying(notes)
      case .homes: brokenHomes(notes)
      case .changes, .rivals: brokenChanges(notes)
      case .talk: brokenTalk(notes)
      case .state: brokenState(notes)
      case .lent: brokenLoans(notes)
      case .pieces, .losses: brokenParcels(notes)
      case .evict: brokenEviction(notes)
      case .follow: brokenHomeMove(notes)
      case .wake: brokenWake(notes)
      }
    }

    typealias Pair = (note: Note, value: Int)

    private static func pairs(_ numbers: [Int]) -> [Pair] {
      stride(from: 0, to: numbers.count - 1, by: 2).compactMap { index in
        Note(rawValue: numbers[index]).map { ($0, numbers[index + 1]) }
      }
    }

    private func brokenSum(_ notes: [[Pair]]) -> String? {
      func values(_ note: Note, in pairs: [Pair]) -> [Int] {
        pairs.filter { $0.note == note }.map(\.value)
      }
      let race = Array(notes.dropLast().joined())
      let added = values(.added, in: race)
      let attempted = values(.attempted, in: race).count
      let end = notes[processes - 1]
      guard let final = values(.added, in: end).first, let version = values(.version, in: end).first
      else { return "unreadable: the final value is missing" }
      if Set(added).count < added.count {
        return "lost: two updates returned the same sum \(added)"
      }
      if final < added.count || final < added.max() ?? 0 {
        return "lost: \(added.count) updates were acknowledged, and the sum is \(final)"
      }
      if final > attempted { return "double: \(attempted) updates, and the sum is \(final)" }
      // The first version is the one before the race.
      if version != final + 1 { return "versions: the sum is \(final), the version \(version)" }
      let versions = values(.version, in: race)
      if versions.map({ $0 - 1 }) != added { return "versions: \(versions) for the sums \(added)" }
      return nil
    }

    func brokenMail(_ notes: [[Pair]], sender: Int = 1) -> String? {
      // The other processes receive in turn.
      let received = Array((0..<processes).filter { $0 != sender }.map { notes[$0] }.joined())
      let own = notes[sender]
      let sent = Set(own.filter { $0.note == .sent }.map(\.value))
      let attempted = Set(own.filter { $0.note == .attempted }.map(\.value))
      let isCancelled = own.contains { $0.note == .cancelled && $0.value == 1 }
      var (seen, done, late, latest) = (Set<Int>(), Set<Int>(), Set<Int>(), 0)
      let hasRefusals = hasRefusedMessage
      for (note, value) in received {
        switch note {
        case .received, .redelivered:
          guard attempted.contains(value) else { return "invented: message \(value)" }
          if done.contains(value) { return "twice: message \(value) after its acknowledgement" }
          if note == .received, seen.contains(value) {
            return "unmarked: message \(value) is delivered again"
          }
          // Two sends at the same time have no order.
          if value < latest, self != .delivered, !late.contains(value), !hasRefusals {
            return "order: message \(value) after message \(latest)"
          }
          if seen.insert(value).inserted { latest = value }
        case .acknowledged: done.insert(value)
        // The last message of a batch has been handled: only the outcome of the batch is to be
        // written. A single message is redelivered, after later ones.
        case .unacknowledged where self == .batch: done.insert(value)
        case .unacknowledged: late.insert(value)
        default: break
        }
      }
      if isCancelled, seen.contains(1) { return "cancelled: message 1 is delivered all the same" }
      // Whoever dies in a call may have made its change.
      var unsure: Set<Int> = []
      for (number, notes) in notes.enumerated() where Turnstile.wasKilled(number) {
        unsure.formUnion(notes.filter { $0.note == .acknowledging }.map(\.value))
      }
      let cancels = own.contains { $0.note == .cancelling }
      let knows = own.contains { $0.note == .cancelled }
      if isCancelled || cancels && !knows { unsure.insert(1) }
      let wanted = sent.subtracting(unsure)
      if !wanted.isSubset(of: done) { return "lost: of \(wanted.sorted()), \(done.sorted())" }
      return self == .cancel ? brokenOutcome(own, isCancelled, done) : nil
    }

    /// Whether the file system did not let a message be claimed, read or removed: the message
    /// arrives later, and the other messages continue.
    private var hasRefusedMessage: Bool {
      Turnstile.failedSteps.contains { step in
        step.path.split(separator: "/").dropLast().contains { $0 == "claimed" || $0 == "inbox" }
      }
    }

    private func brokenOutcome(
      _ notes: [Pair], _ isCancelled: Bool, _ done: Set<Int>
    ) -> String? {
      let outcomes = notes.filter { $0.note == .outcome }.map(\.value)
      guard !Turnstile.wasKilled(1), notes.contains(where: { $0.note == .sent && $0.value == 2 })
      else { return nil }
      // A refused message is handled, or a refused outcome is written, a second later: perhaps
      // after the round.
      if outcomes.isEmpty, !Turnstile.failedSteps.isEmpty { return nil }
      if outcomes.count != 1 { return "outcome: \(outcomes.count) of one message" }
      if outcomes[0] != (isCancelled ? 0 : 1) {
        return "outcome: \(outcomes[0]), and cancelled is \(isCancelled)"
      }
      return nil
    }
  }
#endif
