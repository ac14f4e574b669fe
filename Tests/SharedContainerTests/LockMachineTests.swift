import SharedContainer
import TestSupport
import TestTraits
import Testing

/// P3: no order of steps, no death and no takeover, loses an update.
@Suite(.blocking) struct LockMachineTests {
  /// Walks through every world that can be reached; the number of worlds, or nil at a violation.
  private func explore(_ start: LockModel, limit: Int = 2_000_000) -> Int? {
    var seen: Set<LockModel> = [start]
    var open = [start]
    while let world = open.popLast() {
      for next in world.successors() where seen.insert(next).inserted {
        if next.isViolated { return nil }
        if seen.count > limit { return seen.count }
        open.append(next)
      }
    }
    return seen.count
  }

  @Test func twoProcessesInEveryOrderLoseNothing() throws {
    var rules = LockModel.Rules()
    rules.generations = 2
    let worlds = try #require(explore(LockModel(processes: 2, rules)))
    #expect(worlds > 1000, "the model reaches too little to mean anything")
    #expect(worlds < 2_000_000, "the walk was cut short")
  }

  @Test func withoutTheFenceAnUpdateIsLost() {
    var rules = LockModel.Rules()
    rules.generations = 2
    rules.fence = false
    #expect(explore(LockModel(processes: 2, rules)) == nil)
  }

  @Test func withoutTheRemovalAnUpdateIsLost() {
    var rules = LockModel.Rules()
    rules.generations = 2
    rules.removal = false
    #expect(explore(LockModel(processes: 2, rules)) == nil)
  }

  @Test func stealingWithoutAGenerationLosesAnUpdate() {
    var rules = LockModel.Rules()
    rules.generations = 2
    rules.steals = true
    #expect(explore(LockModel(processes: 2, rules)) == nil)
  }

  /// Three processes, more generations and updates than can be walked through: at random.
  @Test func threeProcessesAtRandomLoseNothing() {
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededRandom(seed: seed)
    var rules = LockModel.Rules()
    rules.generations = 6
    for _ in 0..<2_000 {
      var world = LockModel(processes: 3, updates: 2, rules)
      for _ in 0..<400 where !world.isOver {
        guard let next = world.successors().randomElement(using: &random) else { break }
        world = next
        if world.isViolated {
          Issue.record("an update was lost; seed \(seed)")
          return
        }
      }
    }
  }

  @Test func endsAfterAHundredReruns() {
    var machine = LockMachine()
    var action = machine.next(.begin)
    var runs = 0
    while true {
      switch action {
      case .find(let lowest): action = machine.next(.found(lowest))
      case .tryLock: action = machine.next(.locked)
      case .openStaging: action = machine.next(.opened)
      case .removeStaging: action = machine.next(.removed)
      case .look: action = machine.next(.newest)
      case .mark: action = machine.next(.marked)
      case .run:
        runs += 1
        action = machine.next(.changed)
      case .commit: action = machine.next(.superseded)
      case .unlock: action = machine.next(.unlocked)
      case .finish(let ending):
        #expect(ending == .superseded)
        #expect(runs == LockMachine.rerunLimit + 1)
        return
      case .wait, .make:
        Issue.record("nobody is in the way")
        return
      }
    }
  }
}
