#if FAULT_POINTS
  import WormholeContainerStorage
  import WormholeSyscalls

  /// Rounds of one scenario: real processes in the order of a schedule, and the check afterwards.
  ///
  /// Each round has a container of its own, always under the same path.
  final class ScheduledRounds {
    let scenario: Scenario
    private let folder: String
    private(set) var count = 0
    private(set) var steps = 0
    private var oldest = 0

    /// The part of the players; each process has one scenario at a time.
    // Set before the keeper is forked; the players only read it.
    private nonisolated(unsafe) static var part: (scenario: Scenario, path: String)?

    init(_ scenario: Scenario, in folder: String) throws {
      self.scenario = scenario
      self.folder = folder
      Self.part = (scenario, "\(folder)/now")
      try Turnstile.make()
      if scenario.hasMachines { ScheduledTasks.begin() }
      try Self.warmUp(scenario, in: folder)
      try Turnstile.start { number in
        guard let part = ScheduledRounds.part else { return }
        do {
          if UnseenWait.isWanted { return try UnseenWait.play(Int(number)) }
          try part.scenario.play(Int(number), in: part.path)
        } catch {
          Turnstile.setText("\(error)")
        }
      }
    }

    deinit { Turnstile.end() }

    /// Plays all parts once, without a schedule.
    ///
    /// The first use of a type takes the runtime longer than the calls of a round. The players
    /// inherit the results, and no object: each object belongs to the process that has made it.
    private static func warmUp(_ scenario: Scenario, in folder: String) throws {
      let (path, last) = ("\(folder)/warm", scenario.processes - 1)
      if scenario.canPlayInTurn {
        for number in 0...last { try scenario.play(number, in: path) }
      } else {
        let others = (1..<last).filter { number in
          !scenario.replacements.contains { $0.by == number }
        }
        let playing = try others.map { number in
          try Thread("player") { try? scenario.play(number, in: path) }
        }
        try scenario.play(0, in: path)
        for thread in playing { thread.join() }
        try scenario.play(last, in: path)
      }
      let _: Void? = Monitor(0).wait(until: .now + .milliseconds(100)) { _ in nil }
    }

    /// Whether another search has found a violation.
    var isStopped: Bool { (try? Descriptor.status(ofPath: "\(folder)/../stop")) != nil }

    static func text(of path: String) throws(Errno) -> String {
      let file = try Descriptor.open(path: path, [.readOnly])
      var bytes = [UInt8](repeating: 0, count: try file.status().size)
      let count = bytes.withUnsafeMutableBytes { try? file.readFully(into: $0) }
      return String(decoding: bytes.prefix(count ?? 0), as: UTF8.self)
    }

    /// Ends the other searches of the scenario.
    func stopOthers() {
      _ = try? Descriptor.open(path: "\(folder)/../stop", .writeOnlyNew, mode: 0o600)
    }

    /// Runs a round; returns the promise that was broken.
    func run(
      _ schedule: Schedule, drawing draw: (() -> Void)? = nil
    ) throws -> String? {
      try clear()
      Turnstile.prepare(scenario.processes, seed: schedule.seed)
      for (former, next) in scenario.replacements { Turnstile.replace(former, by: next) }
      if scenario.hasCuts {
        let channel = "\(folder)/now/\(PowerPromise.channel)"
        Turnstile.observe("\(channel)/value.plist", "\(channel)/kept.plist")
      }
      if scenario.hasMessageCuts {
        // The steps contain the inodes of open files only in a round that observes names.
        Turnstile.observe("\(folder)/now/members/a", "\(folder)/now/members/b")
      }
      for entry in schedule.entries { Turnstile.add(entry.move, at: entry.step) }
      draw?()
      let outcome = Turnstile.round()
      count += 1
      steps += Turnstile.stepCount
      return scenario.violation(outcome, hasFailures: schedule.hasFailures)
    }

    /// Removes the container of the last round.
    private func clear() throws {
      let parent = try Descriptor.open(following: folder, [.readOnly, .directory])
      try? Self.remove("now", in: parent)
    }

    private static func remove(_ name: String, in parent: borrowing Descriptor) throws {
      let folder = try parent.open(name, [.readOnly, .directory])
      for name in try folder.names() {
        if (try? folder.unlink(name)) == nil { try remove(name, in: folder) }
      }
      try parent.removeDirectory(name)
    }
  }
#endif
