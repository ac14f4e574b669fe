#if FAULT_POINTS
  import WormholeSyscalls

  /// The steps of one thread in a row before which a schedule can make the same move.
  ///
  /// A move before an earlier step and a move before a later step lead to the same results if the
  /// calls of the thread between the steps conflict with no call of other threads until the thread
  /// continues. Only orders behind a conflict are run.
  struct Moments {
    struct Moment {
      let step: Int
      /// The effects of the thread from this step until the next moment.
      var effects: [Effect]
    }

    let move: Turnstile.ScheduleMove
    let player: Int
    /// The step of the move, or of a wait at which the usual choice equals the move.
    var step: Int
    /// Whether the schedule has the move.
    var isMade: Bool
    /// The earlier moments with the results of this order, the latest first.
    var equal: [Moment] = []
    /// The untested moments, the latest first.
    var earlier: [Moment]

    /// Tests the moments by an order that was run.
    ///
    /// - Returns: the moments of orders to run, with results that may differ, and the number of
    ///   equal moments.
    mutating func test(_ trace: Trace) -> (different: [Moments], equal: Int) {
      let others = trace.others(from: step, until: player)
      var different: [Moments] = []
      if let index = equal.firstIndex(where: { differs($0, others) }) {
        different.append(moved(to: equal[index].step, earlier: Array(equal[(index + 1)...])))
        equal.removeSubrange(index...)
        // Earlier moments belong to the new order.
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
      // Other processes find the files of a dead process.
      case .kill(let process):
        !moment.effects.allSatisfy {
          $0.process == process ? $0.onlyReads : $0.kind == .nothing
        }
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

  extension Turnstile.ScheduleMove {
    fileprivate var takesTime: Bool {
      if case .suspend = self { true } else { false }
    }
  }
#endif
