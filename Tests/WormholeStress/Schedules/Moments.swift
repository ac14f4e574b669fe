#if FAULT_POINTS
  import WormholeSyscalls

  /// The steps of one thread in a row before which a schedule can make the same move.
  ///
  /// An order with the move before an earlier step leads to the same results as the order with the
  /// move before a later step, if what the thread does in between does not conflict with what the
  /// other threads do until the thread continues. Only the orders behind a conflict are run.
  struct Moments {
    struct Moment {
      let step: Int
      /// What the thread does from this step until the next moment.
      var effects: [Effect]
    }

    let move: Turnstile.Move
    let player: Int
    /// The step of the move, or the step at which the thread waits and the usual choice has the
    /// same effect as the move.
    var step: Int
    /// Whether the schedule has the move.
    var isMade: Bool
    /// The earlier moments that lead to the results of this order, the latest first.
    var equal: [Moment] = []
    /// The moments before these, the latest first.
    var earlier: [Moment]

    /// Tests the moments by an order that was run.
    ///
    /// - Returns: the moments for orders that must be run, because their results may differ, and
    ///   the number of the moments that were found to be equal.
    mutating func test(_ trace: Trace) -> (different: [Moments], equal: Int) {
      let others = trace.others(from: step, until: player)
      var different: [Moments] = []
      if let index = equal.firstIndex(where: { differs($0, others) }) {
        different.append(moved(to: equal[index].step, earlier: Array(equal[(index + 1)...])))
        equal.removeSubrange(index...)
        // What comes earlier belongs to that order.
        earlier = []
        return (different, 0)
      }
      let index = earlier.firstIndex { differs($0, others) } ?? earlier.count
      if index < earlier.count {
        different.append(moved(to: earlier[index].step, earlier: Array(earlier[(index + 1)...])))
      }
      equal += earlier[..<index]
      earlier = []
      return (different, index)
    }

    private func moved(to step: Int, earlier: [Moment]) -> Moments {
      Moments(move: move, player: player, step: step, isMade: true, earlier: earlier)
    }

    private func differs(_ moment: Moment, _ others: ArraySlice<Effect>) -> Bool {
      switch move {
      // What a dead process has left is found.
      case .kill: !moment.effects.allSatisfy(\.onlyReads)
      case .go, .suspend:
        move.takesTime && moment.effects.contains(where: \.usedClock)
          || moment.effects.contains { effect in others.contains { $0.conflicts(with: effect) } }
      case .fail, .loseNotices: true
      }
    }

    /// The same moments in an order with fewer steps before them.
    func shifted(by count: Int) -> Moments {
      func shift(_ moments: [Moment]) -> [Moment] {
        moments.map { Moment(step: $0.step - count, effects: $0.effects) }
      }
      var shifted = self
      shifted.step -= count
      (shifted.equal, shifted.earlier) = (shift(equal), shift(earlier))
      return shifted
    }
  }

  extension Turnstile.Move {
    fileprivate var takesTime: Bool {
      if case .suspend = self { true } else { false }
    }
  }
#endif
