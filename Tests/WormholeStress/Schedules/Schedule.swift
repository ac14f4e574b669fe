#if FAULT_POINTS
  import WormholeSyscalls

  /// An order of the steps of a scenario's processes: what happens at which step, in place of the
  /// same thread going on.
  ///
  /// As a line: `mail 1 12:go3 40:kill0 55:stop0=3000 60:fail1=EIO 70:lose0`, the scenario, the
  /// seed, and the moves.
  struct Schedule: Hashable, Sendable {
    struct Entry: Hashable, Sendable {
      var step: Int
      var move: Turnstile.ScheduleMove
    }

    var scenario: Scenario
    var seed: UInt64 = 1
    var entries: [Entry] = []

    /// Whether a call fails, and its error may reach the caller.
    var hasFailures: Bool {
      entries.contains { if case .fail = $0.move { true } else { false } }
    }

    func adding(_ move: Turnstile.ScheduleMove, at step: Int) -> Schedule {
      var longer = self
      longer.entries.append(Entry(step: step, move: move))
      return longer
    }
  }

  extension Schedule: LosslessStringConvertible {
    init?(_ text: String) {
      let words = text.split(separator: " ")
      guard words.count >= 2, let scenario = Scenario(rawValue: String(words[0])),
        let seed = UInt64(words[1])
      else { return nil }
      (self.scenario, self.seed) = (scenario, seed)
      for word in words.dropFirst(2) {
        let sides = word.split(separator: ":")
        guard sides.count == 2, let step = Int(sides[0]),
          let move = Turnstile.ScheduleMove(sides[1])
        else { return nil }
        entries.append(Entry(step: step, move: move))
      }
    }

    var description: String {
      (["\(scenario.rawValue)", "\(seed)"] + entries.map { "\($0.step):\($0.move.text)" })
        .joined(separator: " ")
    }
  }

  extension Turnstile.ScheduleMove {
    fileprivate init?(_ text: Substring) {
      let sides = text.split(separator: "=")
      guard let first = sides.first else { return nil }
      let verb = String(first.prefix { $0.isLetter })
      guard let number = Int(first.dropFirst(verb.count)) else { return nil }
      switch (verb, sides.count) {
      case ("go", 1): self = .go(player: number)
      case ("kill", 1): self = .kill(process: number)
      case ("lose", 1): self = .loseNotices(process: number)
      case ("stop", 2):
        guard let time = Int(sides[1]) else { return nil }
        self = .suspend(process: number, .milliseconds(time))
      case ("fail", 2):
        guard let error = Errno(name: sides[1]) else { return nil }
        self = .fail(process: number, error)
      default: return nil
      }
    }

    fileprivate var text: String {
      switch self {
      case .go(let player): "go\(player)"
      case .kill(let process): "kill\(process)"
      case .suspend(let process, let time): "stop\(process)=\(Int(time / .milliseconds(1)))"
      case .fail(let process, let error): "fail\(process)=\(error.name)"
      case .loseNotices(let process): "lose\(process)"
      }
    }
  }
#endif
