#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// A member sets contexts for a member of another machine, one after the other.
  ///
  /// In `talk` both contexts are set before the bridge looks, so only the second one travels.
  extension Scenario {
    private static let states = 1...2

    // MARK: The processes

    /// The receiver.
    func watchState(_ container: SharedContainer) throws {
      let latest = Monitor(0)
      let member = try container.join(as: "bob")
      let watching = try member.watchContexts { context in
        guard let number = try? context.value(as: Int.self) else { return }
        Note.told.write(number)
        latest.signal { $0 = number }
      }
      Turnstile.begin()
      let end = Instant.now + Self.limited(.seconds(30))
      let _: Void? = latest.wait(until: end) { $0 == Self.states.upperBound ? () : nil }
      withExtendedLifetime(member) { watching.stop() }
    }

    /// The sender.
    func setState(_ container: SharedContainer) throws {
      let peer = try container.join(as: "al").peer("bob")
      try Self.wait(until: Self.programEnd) { try peer.profile?.isRunning == true }
      // The bridges carry it before the race.
      try peer.setContext(0)
      for _ in 0..<2 { Self.pause(.seconds(1)) }
      Turnstile.begin()
      for number in Self.states {
        Note.first.write(number)
        try peer.setContext(number)
        Note.second.write(number)
        // The bridge claims and publishes the context, in the order without a preemption.
        Self.pause(.microseconds(20))
      }
    }

    // MARK: The promises

    func brokenState(_ notes: [[Pair]]) -> String? {
      let (own, told) = (notes[MachinePart.there], values(.told, in: notes[MachinePart.here]))
      if told != told.sorted() { return "order: the contexts \(told)" }
      let attempted = values(.first, in: own).max() ?? 0
      if let latest = told.last, latest > attempted { return "invented: context \(latest)" }
      guard !Turnstile.wasKilled(MachinePart.here) else { return nil }
      let latest = values(.second, in: own).max() ?? 0
      return told.last ?? 0 < latest ? "lost: context \(latest), and \(told) arrived" : nil
    }
  }
#endif
