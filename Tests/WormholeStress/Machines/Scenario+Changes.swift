#if FAULT_POINTS
  import Wormhole
  import WormholeBridge
  import WormholeContainerStorage
  import WormholeSyscalls

  /// Programs of two machines add to a channel, whose home moves to the other machine.
  extension Scenario {
    private static let channel = "sum"
    /// The additions of each program in the race.
    private static let additions = 2

    // MARK: The processes

    func changeChannel(_ number: Int, _ container: SharedContainer, _ path: String) throws {
      let sum = container.channel(Self.channel, of: Int.self)
      if number == MachinePart.here {
        _ = try Bridge.addChannel(Self.channel, of: container)
        try sum.put(0)
      } else {
        // The addition opens everything that the race needs.
        try Self.wait(until: Self.programEnd) { try sum.value != nil }
        try Self.add(to: sum, until: Self.programEnd)
      }
      let other = try BridgeStatus.identity(of: Self.container(1, path, options())).machine
      Turnstile.begin()
      for addition in 1...Self.additions {
        try Self.add(to: sum, until: Self.programEnd)
        guard number == MachinePart.here, addition == 1 else { continue }
        Note.attempted.write(0)
        try Bridge.moveChannel(Self.channel, to: other, of: container)
        Note.moved.write(0)
      }
      if number == MachinePart.here {
        try Self.wait(until: Self.programEnd) { try sum.metadata?.home != nil }
      }
    }

    /// Both programs add on the machine that is not the home.
    ///
    /// The home stores the ID of a machine's last change only. So no change of one program may be
    /// made between a change of the other one and its repetition by the next bridge.
    func changeFromAfar(
      _ number: Int, _ container: SharedContainer, _ path: String
    ) throws {
      if number == MachinePart.here {
        _ = try Bridge.addChannel(Self.channel, of: container)
        try container.channel(Self.channel, of: Int.self).put(0)
      }
      let sum = try Self.container(1, path, options()).channel(Self.channel, of: Int.self)
      try Self.wait(until: Self.programEnd) { try sum.value != nil }
      // The addition opens everything that the race needs.
      try Self.add(to: sum, until: Self.programEnd)
      Turnstile.begin()
      for _ in 1...(2 * Self.additions) { try Self.add(to: sum, until: Self.programEnd) }
    }

    /// Adds one, as often as the addition has certainly failed.
    private static func add(to sum: Channel<Int>, until end: Instant) throws {
      while true {
        Note.attempted.write(1)
        do {
          let after = try sum.updateVersionIfNeeded { value in
            value = (value ?? 0) + 1
            return .commit
          }
          Note.added.write(after.value ?? -1)
          Note.version.write(after.version)
          return
        } catch let error as WormholeError where error.code == .unreachable {
          Note.refused.write(1)
          guard Instant.now < end else { return Note.late.write(0) }
          pause(.milliseconds(500))
        } catch let error as WormholeError where [.timedOut, .conflict].contains(error.code) {
          // The home may have made the change before it moved here.
          return
        }
      }
    }

    // MARK: The check

    func checkChanges(_ path: String) throws {
      let containers = try [0, 1].map { try Self.container($0, path, options()) }
      for (machine, container) in containers.enumerated() {
        let snapshot = try container.channel(Self.channel, of: Int.self).latest
        Note.place.write(snapshot.map { $0.metadata.home == nil ? machine : 2 } ?? 3)
        Note.added.write(snapshot?.value ?? -1)
        Note.version.write(snapshot?.version ?? -1)
      }
      try Self.noteProblems(containers)
      Turnstile.finish()
    }

    // MARK: The promises

    func brokenChanges(_ notes: [[Pair]]) -> String? {
      let race = Array(MachinePart.programs.map { notes[$0] }.joined())
      let (made, end) = (values(.added, in: race), notes[processes - 1])
      let attempted = values(.attempted, in: race).count { $0 == 1 }
      let possible = attempted - count(.refused, [race])
      let homes = values(.place, in: end)
      let (final, versions) = (values(.added, in: end), values(.version, in: end))
      guard homes.count == 2, final.count == 2 else { return "unreadable: \(homes), \(final)" }
      if Set(made).count < made.count { return "lost: two additions returned the same \(made)" }
      if final[0] != final[1] || versions[0] != versions[1] {
        return "apart: the values are \(final), and the versions \(versions)"
      }
      if final[0] < made.count || final[0] < made.max() ?? 0 {
        return "lost: \(made.count) additions were made, and the sum is \(final[0])"
      }
      if final[0] > possible { return "double: \(possible) additions, and the sum is \(final[0])" }
      let isOrdered = count(.moved, notes) > 0
      let mayMove = values(.attempted, in: notes[MachinePart.here]).contains(0)
      guard homes == [2, 1] || homes == [0, 2] && !isOrdered, isOrdered || mayMove || homes[0] == 0
      else { return "homes: \(homes), and a move was ordered: \(isOrdered)" }
      if count(.late, notes) > 0 { return "blocked: a program could add nothing within its time" }
      return nil
    }
  }
#endif
