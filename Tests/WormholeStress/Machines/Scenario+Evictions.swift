#if FAULT_POINTS
  import Wormhole
  import WormholeBridge
  import WormholeContainerStorage
  import WormholeSyscalls

  /// A machine is lost and given up, its messages are received elsewhere, and it reappears.
  ///
  /// The program of the lost machine handles a message, claims another one, and ends. The machine's
  /// bridge ends, too, and starts again once the machine was given up. Then the container becomes
  /// another machine.
  extension Scenario {
    private enum LostMail {
      /// The messages to the lost machine, which handles the first and claims the second.
      static let (handled, claimed, last) = (1, 2, 3)
      static let all = [handled, claimed, last]
      /// The message that the lost machine sends.
      static let letter = 7
    }

    private struct BridgeRun {
      var (isReady, isRefused, isOver) = (false, false, false)
    }

    private static let mark = "given"

    // MARK: The lost machine

    /// The program of the lost machine.
    func handleUntilLost(_ container: SharedContainer) throws {
      let end = Self.programEnd
      let (eve, bob) = (try container.join(as: "eve"), try container.join(as: "bob"))
      let held = Monitor<Message?>(nil)
      let receiving = try bob.receive(acknowledging: .explicit) { message in
        let number = try message.value(as: Int.self)
        (message.isRedelivered ? Note.redelivered : .received).write(number)
        if number == LostMail.claimed { return held.signal { $0 = message } }
        Note.acknowledging.write(number)
        try message.acknowledge()
        Note.acknowledged.write(number)
      }
      Turnstile.begin()
      try eve.peer("al").send(LostMail.letter, SendOptions())
      Note.sent.write(LostMail.letter)
      let message: Message? = held.wait(until: end) { $0 }
      receiving.stop()
      bob.leave()
      eve.leave()
      withExtendedLifetime(message) {}
    }

    /// The bridge of the lost machine, until the machine is another one.
    func serveLostMachine(_ path: String) throws {
      let end = Instant.now + Self.longestRace
      let container = try Self.container(0, path, options())
      var isRefused = try Self.runBridge(of: container, until: end) {
        Self.hasEnded(path, [MachinePart.here])
      }
      Self.wait(until: end) { Self.isGivenUp(path) }
      if !isRefused { isRefused = try Self.runBridge(of: container, until: end) { true } }
      if isRefused {
        Note.refused.write(0)
        try Self.wait(until: end) { try Self.rejoins(container) }
      }
      try serveBridge(1, container, path)
    }

    /// Whether the machine was given up, or the operator has ended.
    private static func isGivenUp(_ path: String) -> Bool {
      (try? Descriptor.status(ofPath: "\(path)/\(mark)")) != nil
        || hasEnded(path, [MachinePart.there])
    }

    /// Runs a bridge until the condition holds, or until the bridge ends by itself.
    ///
    /// - Returns: whether the bridge was refused.
    private static func runBridge(
      of container: SharedContainer, until end: Instant, _ isOver: () -> Bool
    ) throws -> Bool {
      let (news, settings) = (try BridgeNews(), try bridgeSettings())
      let run = Monitor(BridgeRun())
      let carrying = try Thread("bridge") {
        do {
          if let lock = try BridgeLock.take(container, news) {
            let bridge = try Bridge(container, settings, news, lock) {
              run.signal { $0.isReady = true }
            }
            try bridge.run()
          }
        } catch let ended as BridgeEnd where ended.kind == .refused {
          run.signal { $0.isRefused = true }
        } catch {
          Turnstile.setText("\(error)")
        }
        run.signal { $0.isOver = true }
      }
      let _: Bool? = run.wait(until: end) { $0.isReady || $0.isOver ? true : nil }
      Turnstile.begin()
      wait(until: end) { isOver() || run.withLock { $0.isOver } }
      news.stop()
      carrying.join()
      return run.withLock { $0.isRefused }
    }

    /// Makes the container another machine; false while the last bridge still has the lock.
    private static func rejoins(_ container: SharedContainer) throws -> Bool {
      do {
        _ = try MachineRejoin.run(container, drops: false)
        return true
      } catch let error where error.code == .conflict {
        return false
      }
    }

    // MARK: The other machine

    /// The operator, who is also a sender, and the next receiver.
    func giveUpMachine(_ container: SharedContainer, _ path: String) throws {
      let end = Self.programEnd
      let al = try container.join(as: "al")
      let letters = Monitor(0)
      let listening = try al.receive(acknowledging: .explicit) { message in
        let number = try message.value(as: Int.self)
        Note.told.write(number * 2 + (message.isRedelivered ? 1 : 0))
        try message.acknowledge()
        letters.signal { $0 += 1 }
      }
      let lost = try BridgeStatus.identity(of: Self.container(0, path, options())).machine
      let peer = al.peer("bob")
      try Self.wait(until: end) { try peer.profile?.isRunning == true }
      _ = try Self.post(0, to: peer).waitForEnd(until: end)
      Turnstile.begin()
      var sent = try [LostMail.handled, LostMail.claimed].map { try Self.post($0, to: peer) }
      Self.wait(until: end) { Self.hasEnded(path, [MachinePart.here]) }
      if try Self.wait(until: end, { try Self.givesUp(lost) }) { Note.removed.write(0) }
      _ = try? Descriptor.makeDirectory(path: "\(path)/\(Self.mark)", mode: 0o700)
      sent.append(try Self.post(LostMail.last, to: peer))
      let bob = try Self.join(as: "bob", of: container, until: end)
      if bob == nil { Note.late.write(0) }
      let receiving = try bob.map { try Self.handleAll(as: $0) }
      for (number, one) in zip(LostMail.all, sent) {
        Self.awaitOutcome(of: number, one, until: end)
      }
      let _: Bool? = letters.wait(until: end) { $0 > 0 ? true : nil }
      receiving?.stop()
      listening.stop()
    }

    /// Gives the machine up; false while its bridge answers.
    private static func givesUp(_ machine: String) throws -> Bool {
      do {
        _ = try MachineEviction.run(bridgeSettings(), machine, drops: false)
        return true
      } catch let error as WormholeError where error.code == .conflict {
        return false
      }
    }

    // MARK: The promises

    func brokenEviction(_ notes: [[Pair]]) -> String? {
      let (lost, own) = (notes[MachinePart.here], notes[MachinePart.there])
      let there = values(.received, in: lost) + values(.redelivered, in: lost)
      let unmarked = values(.received, in: own)
      let received = own.filter { [.received, .redelivered].contains($0.note) }.map(\.value)
      if Set(received).count < received.count { return "twice: \(received)" }
      if received != received.sorted() { return "order: \(received)" }
      if let number = unmarked.first(where: there.contains) { return "unmarked: message \(number)" }
      // The second copy is that of the machine that reappears.
      let letters = values(.told, in: own)
      if letters.count > 2 || letters.dropFirst().contains(LostMail.letter * 2) {
        return "unmarked: the letters \(letters)"
      }
      // The machine that reappears may have the name first, and the messages, without a receiver.
      guard !Turnstile.wasKilled(MachinePart.there), count(.late, [own]) == 0 else { return nil }
      if !values(.sent, in: lost).isEmpty, letters.isEmpty { return "lost: the letter" }
      var done = Set(values(.acknowledged, in: own) + values(.acknowledged, in: lost))
      // A process that dies in the call may have acknowledged the message.
      if isProgramKilled { done.formUnion(values(.acknowledging, in: lost)) }
      let sent = values(.sent, in: own)
      if !Set(sent).isSubset(of: done) { return "lost: of \(sent), \(done.sorted())" }
      let outcomes = values(.outcome, in: own)
      guard count(.removed, [own]) == 1, outcomes == LostMail.all.map({ $0 * 2 + 1 }) else {
        return "blocked: the outcomes \(outcomes)"
      }
      if count(.refused, notes) == 0 { return "unrefused: the bridge of the lost machine" }
      return nil
    }
  }
#endif
