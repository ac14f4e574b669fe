#if FAULT_POINTS
  import WormholeSyscalls

  /// The effects of all threads in the last round, in order.
  struct Trace {
    let choices: [Turnstile.Choice]
    /// The effect of the chosen thread at each step, until the next step.
    let effects: [Effect]

    /// - Parameter countsSyncs: whether a sync is an effect.
    init(countsSyncs: Bool) {
      choices = (0..<Turnstile.stepCount).map { Turnstile.choice(at: $0) }
      var latest = [Effect?](repeating: nil, count: Turnstile.playerLimit)
      var effects: [Effect] = []
      effects.reserveCapacity(choices.count)
      for (number, choice) in choices.enumerated() {
        if choice.player >= 0 {
          latest[choice.player] = Effect(choice, countsSyncs: countsSyncs)
        }
        // The chosen thread makes the call, sometimes several steps later.
        var effect = Effect(process: nil)
        if choice.chosen >= 0 { effect = latest[choice.chosen] ?? effect }
        if number + 1 < choices.count, choices[number + 1].player == choice.chosen {
          effect.locks = choices[number + 1].usedLocks
          effect.usedClock = choices[number + 1].usedClock
        }
        effects.append(effect)
      }
      self.effects = effects
    }

    /// The effects of other threads from a step on, until the thread continues.
    func others(from step: Int, until player: Int) -> ArraySlice<Effect> {
      guard step < choices.count else { return [] }
      let end = choices[step...].firstIndex { $0.chosen == player } ?? choices.count
      return effects[step..<end]
    }

    /// A number: equal for two orders with different places of effects without conflicts only.
    var fingerprint: UInt64 {
      func mix(_ left: UInt64, _ right: UInt64) -> UInt64 {
        let word = (left ^ right &* 0xbf58_476d_1ce4_e5b9) &* 0x94d0_49bb_1331_11eb
        return word ^ word >> 29
      }
      var (hashes, sum) = ([UInt64](), UInt64(0))
      var latest: [Int: UInt64] = [:]
      for (number, effect) in effects.enumerated() {
        let player = choices[number].chosen
        var hash = mix(latest[player, default: 0], UInt64(truncatingIfNeeded: player))
        for word in effect.written + effect.read { hash = mix(hash, word) }
        // A wait is no effect.
        guard player >= 0, effect.kind != .nothing else {
          hashes.append(0)
          continue
        }
        let before = (0..<number).reduce(UInt64(0)) { before, other in
          guard hashes[other] != 0, choices[other].chosen != player,
            effects[other].conflicts(with: effect)
          else { return before }
          return before &+ mix(hashes[other], 1)
        }
        hash = mix(hash, before)
        hashes.append(hash)
        latest[player] = hash
        sum = sum &+ mix(hash, 2)
      }
      return sum
    }
  }
#endif
