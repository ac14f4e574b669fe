import TestTraits
import Testing

/// Every order of the steps of a lent message, with deaths, lost time and late arrivals.
///
/// The steps are those of the article *Between machines*: the home's file decides by its one name,
/// and each claim has an ID of its own.
@Suite(.blocking) struct LoanModelTests {
  private struct Model: Hashable {
    enum Home: Hashable {
      /// It waits; `attempts` were counted.
      case waiting(attempts: Int)
      /// Claimed for the other machine, or by a worker of the home.
      case lent(id: Int, attempt: Int)
      case own(attempt: Int)
      case settled
    }

    enum Away: Hashable {
      case waits
      case begun
      case ended(End)
    }

    enum End: Hashable { case acknowledged, undone, failed }

    struct Copy: Hashable {
      let id: Int
      let isMarked: Bool
      var place: Away
    }

    struct Arrival: Hashable {
      let id: Int
      let end: End
    }

    var home = Home.waiting(attempts: 0)
    var claims = 0
    /// In the flow to the other machine, in order.
    var out: [Copy] = []
    var away: [Copy] = []
    /// In the flow to the home, in order; an entry may arrive again after a kill.
    var back: [Arrival] = []
    var unmarked = 0
    var handled = 0
    /// Whether an end has ended a later claim than its own.
    var isConfused = false

    /// Whether the order of the steps has broken a promise.
    var fault: String? {
      if unmarked > 1 { return "two attempts are not marked" }
      if home == .settled, handled == 0 { return "lost: settled, and nobody has handled it" }
      if isConfused { return "an end has ended another claim" }
      return nil
    }

    static let mostClaims = 3

    /// The states after each possible step.
    func next(refusingLate: Bool = true, marking: Bool = true) -> [Model] {
      var found: [Model] = []
      func step(_ change: (inout Model) -> Void) {
        var model = self
        change(&model)
        found.append(model)
      }
      switch home {
      case .waiting(let attempts) where claims < Self.mostClaims:
        step {
          $0.claims += 1
          $0.home = .lent(id: $0.claims, attempt: attempts + 1)
          $0.out.append(Copy(id: $0.claims, isMarked: marking && attempts > 0, place: .waits))
        }
        step {
          $0.claims += 1
          $0.home = .own(attempt: attempts + 1)
          $0.begin(isMarked: marking && attempts > 0)
        }
      case .lent(_, let attempt):
        // The deadline has passed, or the home's bridge has died.
        step { $0.home = .waiting(attempts: attempt) }
      case .own(let attempt):
        step { $0.home = .waiting(attempts: attempt) }
        step {
          $0.handled += 1
          $0.home = .settled
        }
      case .waiting, .settled: break
      }
      if !out.isEmpty {
        step { $0.away.append($0.out.removeFirst()) }
        // Late: dropped on arrival.
        step { $0.out.removeFirst() }
      }
      for index in away.indices {
        switch away[index].place {
        case .waits:
          step {
            $0.away[index].place = .begun
            $0.begin(isMarked: $0.away[index].isMarked)
          }
          step { $0.away[index].place = .ended(.undone) }
        case .begun:
          step {
            $0.handled += 1
            $0.away[index].place = .ended(.acknowledged)
          }
          // The worker has died, and the machine has no other worker.
          step { $0.away[index].place = .ended(.failed) }
        case .ended(let end):
          let arrival = Arrival(id: away[index].id, end: end)
          if !back.contains(arrival) { step { $0.back.append(arrival) } }
          step {
            $0.away.remove(at: index)
            if !$0.back.contains(arrival) { $0.back.append(arrival) }
          }
        }
      }
      if let arrival = back.first {
        step {
          $0.back.removeFirst()
          guard case .lent(let id, let attempt) = $0.home, id == arrival.id || !refusingLate
          else { return }
          $0.isConfused = id != arrival.id
          switch arrival.end {
          case .acknowledged: $0.home = .settled
          case .undone: $0.home = .waiting(attempts: attempt - 1)
          case .failed: $0.home = .waiting(attempts: attempt)
          }
        }
      }
      return found
    }

    private mutating func begin(isMarked: Bool) {
      if !isMarked { unmarked += 1 }
    }
  }

  /// Returns the faults, the number of states, and whether the message can still be settled in
  /// each.
  private func explore(
    refusingLate: Bool = true, marking: Bool = true
  ) -> (faults: Set<String>, states: Int) {
    var seen: Set<Model> = [Model()]
    var open = [Model()]
    var faults: Set<String> = []
    while let model = open.popLast() {
      if let fault = model.fault {
        faults.insert(fault)
        continue
      }
      let next = model.next(refusingLate: refusingLate, marking: marking)
      // Nothing is under way any more, and the home has the message all the same.
      if next.isEmpty, model.home != .settled, model.claims < Model.mostClaims {
        faults.insert("stuck")
      }
      for one in next where seen.insert(one).inserted { open.append(one) }
    }
    return (faults, seen.count)
  }

  @Test func noOrderLosesAMessageOrHidesADuplicate() {
    let (faults, states) = explore()
    #expect(faults == [])
    #expect(states > 1000, "\(states) states")
  }

  /// The model finds what goes wrong without each mechanism.
  @Test func eachMechanismIsNeeded() {
    #expect(explore(refusingLate: false).faults == ["an end has ended another claim"])
    #expect(explore(marking: false).faults == ["two attempts are not marked"])
  }
}
