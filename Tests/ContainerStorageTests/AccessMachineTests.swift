import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// No order of steps, no death, no stop and no takeover lets two conflicting accesses run together,
/// leaves an access waiting for ever, or lets a superseded access change a file.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct AccessMachineTests {
  private static let isLong = TestRun.isLong

  /// Walks through the states that can be reached; returns their number, and the first violation.
  private func explore(
    _ start: AccessModel, limit: Int
  ) -> (worlds: Int, violation: String?) {
    var seen: Set<Int> = [start.hashValue]
    var open = [start]
    while let world = open.popLast() {
      for next in world.successors() {
        if let violation = next.violation { return (seen.count, violation) }
        // By hash alone, as storing the states takes more memory than is available: among some
        // millions of states, the chance that one is missed is one in a million.
        if seen.insert(next.hashValue).inserted { open.append(next) }
        if seen.count > limit { return (seen.count, nil) }
      }
    }
    return (seen.count, nil)
  }

  /// Goes from state to state at random, many times; returns the first violation.
  private func wander(_ start: AccessModel, times: Int, seed: UInt64) -> String? {
    var random = SeededRandom(seed: seed)
    for _ in 0..<times {
      var world = start
      while !world.isOver {
        guard let next = world.successors().randomElement(using: &random) else { break }
        world = next
        if let violation = world.violation { return violation }
      }
    }
    return nil
  }

  struct Scene: Sendable, CustomStringConvertible {
    let description: String
    let processes: Int
    var rules = AccessModel.Rules()

    init(
      _ description: String, of processes: Int = 3, _ adjust: (inout AccessModel.Rules) -> Void
    ) {
      (self.description, self.processes) = (description, processes)
      adjust(&rules)
    }
  }

  static let scenes = [
    Scene("two writers and a reader") {
      $0.writers = [0, 1]; $0.takeovers = 2
    },
    Scene("a writer and two readers") {
      $0.writers = [0]; $0.takeovers = 2
    },
    Scene("three writers, one asks to overtake") {
      $0.takers = [1]; $0.takeovers = 2
    },
    Scene("a folder and two files in it") {
      $0.isFolder = true; $0.takeovers = 2
    },
    Scene("two writers that replace nothing, and one that does") {
      $0.plain = [0, 1]; $0.takeovers = 2
    },
    Scene("each comes twice") {
      $0.plain = [0, 1]; $0.rounds = 2; $0.takeovers = 2
    },
    Scene("each comes twice, and one cannot look") {
      $0.plain = [0, 1]; $0.rounds = 2; $0.failures = 1; $0.takeovers = 1
    },
    Scene("the word of a death comes early, and who sleeps looks now and then") {
      $0.tellsOfDeathEarly = true; $0.looksNowAndThen = true
    },
    Scene("one cannot be fenced") {
      $0.failures = 1; $0.takeovers = 2
    },
    Scene("one is stopped, one dies") { $0.stops = 1 },
    Scene("one is stopped, nobody asks to overtake") {
      $0.takers = []; $0.stops = 1
    },
    Scene("one is stopped, readers wait") {
      $0.writers = [1]; $0.takers = [2]; $0.stops = 1
    },
  ]

  @Test(arguments: scenes) func threeProcesses(_ scene: Scene) {
    let start = AccessModel(scene.processes, scene.rules)
    let limit = Self.isLong ? 8_000_000 : 8_000
    #expect(explore(start, limit: limit).violation == nil)
    let seed = TestRun.seed
    let times = Self.isLong ? 100_000 : 60
    #expect(wander(start, times: times, seed: seed) == nil, "seed \(seed)")
  }

  @Test func twoProcessesInEveryOrder() {
    for writers in [[0, 1], [0]] as [Set<Int>] {
      var rules = AccessModel.Rules()
      (rules.writers, rules.takeovers, rules.deaths) = (writers, Self.isLong ? 2 : 1, 1)
      let (worlds, violation) = explore(AccessModel(2, rules), limit: 1_000_000)
      #expect(violation == nil)
      #expect(worlds > 500 && worlds < 1_000_000)
      (rules.takeovers, rules.stops) = (0, 1)
      #expect(explore(AccessModel(2, rules), limit: 1_000_000).violation == nil)
      (rules.takeovers, rules.stops, rules.deaths) = (1, 0, 0)
      (rules.plain, rules.rounds) = ([0, 1], 3)
      #expect(explore(AccessModel(2, rules), limit: 1_000_000).violation == nil)
      rules.failures = 1
      #expect(explore(AccessModel(2, rules), limit: 1_000_000).violation == nil)
    }
  }

  /// However many blockers have ended, the waiter drops them in one step.
  @Test func endedBlockersAreDroppedTogether() {
    var machine = AccessMachine<Int>(.init())
    var action = machine.next(.begin, after: .lock)
    let events: [AccessMachine<Int>.Event] = [
      .locked, .listed([3, 2, 1]), .listed([]), .listed([]), .arrived, .unlocked, .watched,
    ]
    for event in events { action = machine.next(event, after: action) }
    #expect(action == .look(1))
    action = machine.next(.ended(2), after: action)
    #expect(action == .look(3))
    #expect(machine.blockers == [3])
    action = machine.next(.ended(1), after: action)
    #expect(action == .enter)
  }

  static let mutants = [
    Scene("no fence of the lock") {
      $0.isLockUnfenced = true; $0.takeovers = 2
    },
    Scene("a listing in the other order") { $0.flaws = .listsBackwards },
    Scene("states renamed in one directory") { $0.listsWhileRenaming = true },
    Scene("who was passed over enters") {
      $0.flaws = .entersAnyway; $0.takeovers = 1
    },
    Scene("an overtaken one is free for all") { rules in
      (rules.isLenient, rules.takers, rules.takeovers) = (true, [2], 2)
      (rules.slow, rules.deaths) = ([1], 0)
    },
    Scene("no hidden directory is removed") {
      $0.flaws = .nobodyClears; $0.takeovers = 1
    },
    Scene("the hidden directory is emptied, and stays") {
      $0.leavesDirectory = true; $0.takeovers = 1
    },
    Scene("the directory is made late") {
      $0.flaws = .hidesLate; $0.takeovers = 1
    },
    Scene("only the overtaker removes it") { rules in
      (rules.flaws, rules.takeovers) = (.onlyTakerClears, 2)
      (rules.slow, rules.mortals) = ([2], [1])
    },
    Scene("who could not look trusts what it has found before", of: 2) { rules in
      (rules.plain, rules.rounds, rules.deaths) = ([0, 1], 3, 0)
      (rules.failures, rules.keepsOldFinding) = (1, true)
    },
    Scene("the word of a death comes early, and nobody looks again") {
      $0.tellsOfDeathEarly = true
    },
    Scene("a watch after the look") { $0.flaws = .watchesLate },
    Scene("the end of a blocker drops all of them") {
      $0.flaws = .dropsAll; $0.deaths = 0
    },
    Scene("readers go past waiting writers") {
      $0.writers = [0]; $0.readersJump = true
    },
  ]

  /// Each mechanism is needed: without it the walk finds a state in which a promise breaks.
  @Test(arguments: mutants) func withoutItAPromiseBreaks(_ scene: Scene) {
    let found = explore(AccessModel(scene.processes, scene.rules), limit: 1_000_000)
    #expect(found.violation != nil, "\(found.worlds) worlds")
  }
}
