#if FAULT_POINTS
  import Wormhole
  import WormholeBridge
  import WormholeContainerStorage
  import WormholeSyscalls

  /// The home of a member moves to another machine, with messages that wait and are in transit.
  extension Scenario {
    private enum MovedMail {
      /// The old home handles the first message, and a program of the old home sends the last.
      static let (handled, returned, handedOn, own) = (1, 2, 3, 4)
      static let all = 0...own
    }

    // MARK: The processes

    /// The program of the old home, and the operator.
    func moveMember(_ container: SharedContainer, _ path: String) throws {
      let end = Self.programEnd
      let (bob, cy) = (try container.join(as: "bob"), try container.join(as: "cy"))
      let other = try BridgeStatus.identity(of: Self.container(1, path, options())).machine
      let isHandled = Monitor(false)
      let receiving = try Self.handleAll(as: bob) { number in
        Self.markHandled(number, path)
        guard number == MovedMail.handled else { return }
        isHandled.signal { $0 = true }
        // The program ends meanwhile, so further messages wait.
        Self.pause(.seconds(1))
      }
      Turnstile.begin()
      let _: Bool? = isHandled.wait(until: end) { $0 ? true : nil }
      receiving.stop()
      bob.leave()
      let sent = try Self.post(MovedMail.own, to: cy.peer("bob"))
      Note.partly.write(0)
      if try Self.wait(until: end, { try Self.movesHome(to: other, container) }) {
        Note.moved.write(0)
      }
      Self.awaitOutcome(of: MovedMail.own, sent, until: end)
    }

    /// The sender, and the next receiver.
    func joinAfterMove(_ container: SharedContainer, _ path: String) throws {
      let end = Self.programEnd
      let peer = try container.join(as: "al").peer("bob")
      try Self.wait(until: end) { try peer.profile?.isRunning == true }
      _ = try Self.post(0, to: peer).waitForEnd(until: end)
      Turnstile.begin()
      let sent = try [MovedMail.handled, MovedMail.returned].map { try Self.post($0, to: peer) }
      Note.attempted.write(MovedMail.handedOn)
      try peer.send(MovedMail.handedOn, SendOptions())
      Note.sent.write(MovedMail.handedOn)
      Self.awaitOutcome(of: MovedMail.handled, sent[0], until: end)
      let bob = try Self.join(as: "bob", of: container, until: end)
      let receiving = try bob.map { bob in
        try Self.handleAll(as: bob) { Self.markHandled($0, path) }
      }
      Self.awaitOutcome(of: MovedMail.returned, sent[1], until: end)
      Self.wait(until: end) {
        MovedMail.all.allSatisfy {
          (try? Descriptor.status(ofPath: "\(path)/handled.\($0)")) != nil
        }
      }
      receiving?.stop()
    }

    private static func markHandled(_ number: Int, _ path: String) {
      _ = try? Descriptor.makeDirectory(path: "\(path)/handled.\(number)", mode: 0o700)
    }

    /// Moves the home; false while the member's name is in use.
    private static func movesHome(
      to machine: String, _ container: SharedContainer
    ) throws -> Bool {
      do {
        _ = try HomeMove.run(container, bridgeSettings(), "bob", to: machine)
        return true
      } catch let error as WormholeError where [.nameTaken, .conflict].contains(error.code) {
        return false
      }
    }

    // MARK: The check

    func checkHomeMove(_ path: String) throws {
      for machine in MachinePart.folders.indices {
        let container = try Self.container(machine, path, options())
        let home = try container.storage.existingMember("bob", in: .members)
        if let home, try home.elsewhere == nil { Note.place.write(machine) }
      }
      try checkTalk(path)
    }

    // MARK: The promises

    func brokenHomeMove(_ notes: [[Pair]]) -> String? {
      let (old, new, end) = (
        notes[MachinePart.here], notes[MachinePart.there], notes[processes - 1]
      )
      let race = old + new
      let (received, again) = (values(.received, in: race), values(.redelivered, in: race))
      if Set(received).count < received.count { return "unmarked: \(received), and \(again)" }
      guard !isProgramKilled else { return nil }
      if !again.isEmpty { return "twice: \(again)" }
      let (sent, done) = (values(.sent, in: race), values(.acknowledged, in: race))
      if !Set(sent).isSubset(of: done) { return "lost: of \(sent), \(done)" }
      let outcomes = (values(.outcome, in: old), values(.outcome, in: new))
      let wanted = [MovedMail.handled, MovedMail.returned].map { $0 * 2 + 1 }
      guard count(.moved, [old]) == 1, outcomes == ([MovedMail.own * 2 + 1], wanted) else {
        return "blocked: the outcomes \(outcomes)"
      }
      let homes = values(.place, in: end)
      return homes == [1] ? nil : "homes: the machines \(homes)"
    }
  }
#endif
