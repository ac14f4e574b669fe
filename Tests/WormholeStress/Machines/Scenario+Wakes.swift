#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// A program wakes a member of another machine, on which no program is registered for the member.
  ///
  /// A registered program would be a process that no schedule controls: it is executed, and shares
  /// no memory with the schedule.
  extension Scenario {
    /// The longest time in seconds: a wake that no bridge repeats takes 35 s.
    private static let longestWake = 20

    // MARK: The processes

    /// The machine of the member, which does not run.
    func leaveToBeWoken(_ container: SharedContainer, _ path: String) throws {
      try container.join(as: "bob").leave()
      Turnstile.begin()
      Self.wait(until: Self.programEnd) { Self.hasEnded(path, [MachinePart.there]) }
    }

    /// Wakes the member once before the race, which opens what the race needs, and once in it.
    func wakeTwice(_ container: SharedContainer) throws {
      try Self.wait(until: Self.programEnd) {
        try container.storage.existingMember("bob")?.elsewhere != nil
      }
      try Self.noteWake(of: container.peer("bob"))
      Turnstile.begin()
      try Self.noteWake(of: container.peer("bob"))
    }

    private static func noteWake(of peer: Peer) throws {
      let begin = Instant.now
      do {
        try peer.wake(within: limited(.seconds(50)))
        Note.done.write(0)
      } catch {
        guard [.unreachable, .timedOut].contains(error.code) else { throw error }
        Note.refused.write(Int((Instant.now - begin) / .seconds(1)))
      }
    }

    // MARK: The promises

    func brokenWake(_ notes: [[Pair]]) -> String? {
      let own = notes[MachinePart.there]
      if count(.done, [own]) > 0 { return "invented: the member does not run" }
      guard !Turnstile.wasKilled(MachinePart.there) else { return nil }
      let times = values(.refused, in: own)
      guard times.count == 2, times.allSatisfy({ $0 <= Self.longestWake }) else {
        return "blocked: the wakes took \(times) s"
      }
      return nil
    }
  }
#endif
