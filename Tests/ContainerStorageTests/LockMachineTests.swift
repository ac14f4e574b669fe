import WormholeContainerStorage
import TestTraits
import Testing

/// Cases that cannot be explored: `ExplorationTests` walks through all the rest of the machine.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct LockMachineTests {
  @Test func endsAfterAHundredReruns() {
    var machine = LockMachine()
    let runs = supersede(&machine)
    #expect(runs == LockMachine.rerunLimit + 1)
  }

  /// A process that has been overtaken a hundred times in all may be overtaken again.
  @Test func eachChangeHasItsOwnHundredReruns() {
    var machine = LockMachine()
    let runs = (1...3).map { _ in supersede(&machine) }
    #expect(runs == [Int](repeating: LockMachine.rerunLimit + 1, count: 3))
  }

  /// Makes one change, each of whose commits is superseded; returns the number of its runs.
  private func supersede(_ machine: inout LockMachine) -> Int {
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
        return runs
      case .wait, .make:
        Issue.record("nobody is in the way")
        return runs
      }
    }
  }
}
