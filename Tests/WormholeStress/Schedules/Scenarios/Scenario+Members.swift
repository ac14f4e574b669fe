#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// Members: batches, joining and leaving, contexts, requests.
  extension Scenario {
    // MARK: Batches

    /// Sends a batch to each of two members.
    func sendBatches(_ path: String) throws {
      let member = try SharedContainer(directory: path, options: options()).join(as: "a")
      let peers = [member.peer("b"), member.peer("c")]
      for (index, peer) in peers.enumerated() {
        Note.attempted.write(10 * index)
        try peer.send(10 * index, SendOptions())
        Note.sent.write(10 * index)
      }
      Self.pause(.seconds(1))
      Turnstile.begin()
      for (index, peer) in peers.enumerated() {
        let numbers = [1, 2].map { 10 * index + $0 }
        for number in numbers { Note.attempted.write(number) }
        try peer.send(contentsOf: numbers, SendOptions())
        for number in numbers { Note.sent.write(number) }
      }
      Turnstile.finish()
      member.leave()
    }

    /// Each batch has arrived as a whole, or not at all.
    func brokenBatch(_ notes: [[Pair]]) -> String? {
      if let broken = brokenMail(notes) { return broken }
      let seen = Set(
        (notes[0] + notes[2] + notes[3])
          .filter { $0.note == .received || $0.note == .redelivered }.map(\.value))
      for batch in [[1, 2], [11, 12]] where seen.intersection(batch).count == 1 {
        return "half: of the batch \(batch), only \(seen.intersection(batch))"
      }
      return nil
    }

    // MARK: Joining and removal

    /// A process removes a member, a process sends to it, and a process joins under its name.
    func joinAndRemove(_ number: Int, _ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      switch number {
      case 0: try sendOne(container)
      case 1: try remove(container)
      default: try joinLate(container)
      }
    }

    private func remove(_ container: SharedContainer) throws {
      let former = try container.join(as: "b")
      try Self.receive(as: former, beginning: false, for: .seconds(5), last: 0).stop()
      former.leave()
      Turnstile.begin()
      do {
        Note.removed.write(try container.removeMember("b") ? 1 : 0)
      } catch let error where [.refused, .nameTaken, .conflict].contains(error.code) {
        Note.refused.write(1)
      }
      Turnstile.finish()
    }

    private func joinLate(_ container: SharedContainer) throws {
      Turnstile.begin()
      let member: Member
      do {
        member = try container.join(as: "b")
      } catch let error where error.code == .nameTaken {
        Note.refused.write(2)
        Turnstile.finish()
        return
      }
      try Self.receive(as: member, beginning: false, for: .seconds(1), last: 1).stop()
      Turnstile.finish()
      member.leave()
    }

    private func sendOne(_ container: SharedContainer) throws {
      let member = try container.join(as: "a")
      let peer = member.peer("b")
      for number in [0, 1] {
        if number == 1 {
          Turnstile.begin()
          // The removal begins, in the order without a preemption.
          Self.pause(.microseconds(20))
        }
        Note.attempted.write(number)
        try peer.send(number, SendOptions())
        Note.sent.write(number)
      }
      Turnstile.finish()
      member.leave()
    }

    // MARK: Contexts

    /// Receives the contexts from the moment on at which the race begins.
    func receiveContexts(_ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      // Makes the directory.
      try container.join(as: "b").leave()
      Turnstile.begin()
      let member = try container.join(as: "b")
      try Self.receiveContexts(as: member, for: .seconds(20))
      Turnstile.finish()
      member.leave()
    }

    static func receiveContexts(as member: Member, for time: Duration) throws {
      let isOver = Monitor(false)
      let watching = try member.watchContexts { context in
        guard let number = try? context.value(as: Int.self) else { return }
        Note.received.write(number)
        if number == 2 { isOver.signal { $0 = true } }
      }
      let _: Bool? = isOver.wait(until: .now + limited(time)) { $0 ? true : nil }
      member.settle()
      watching.stop()
    }

    func setContexts(_ path: String) throws {
      let member = try SharedContainer(directory: path, options: options()).join(as: "a")
      let peer = member.peer("b")
      try peer.setContext(0)
      Turnstile.begin()
      for number in [1, 2] {
        Note.attempted.write(number)
        try peer.setContext(number)
        Note.sent.write(number)
      }
      Turnstile.finish()
      member.leave()
    }

    func brokenContexts(_ notes: [[Pair]]) -> String? {
      var (latest, isSure) = (-1, false)
      for number in [0, 2, 3] {
        for value in values(.received, in: notes[number]) {
          if value < latest { return "order: context \(value) after context \(latest)" }
          if value == latest, isSure { return "twice: context \(value)" }
          (latest, isSure) = (value, true)
        }
        // A killed process may have received a message that it did not record.
        if Turnstile.wasKilled(number) { isSure = false }
      }
      let sent = values(.sent, in: notes[1]).max() ?? 0
      if latest < sent { return "lost: context \(sent), and the latest one is \(latest)" }
      let attempted = values(.attempted, in: notes[1]).max() ?? 0
      return latest > attempted ? "invented: context \(latest)" : nil
    }

    // MARK: Requests

    /// Replies to requests: until it is killed, or it leaves and joins under the same name again.
    func reply(_ number: Int, _ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      func join(_ incarnation: Int) throws -> Member {
        let member = try container.join(as: "b")
        member.respond(to: Int.self) { question in
          Note.received.write(100 * incarnation + question)
          return 100 * incarnation + question
        }
        return member
      }
      var member = try join(number + 1)
      if number == 0 {
        Turnstile.begin()
        if self == .left {
          member.leave()
          member = try join(2)
        }
      }
      // The process that asks has a reply or an error by then.
      Self.pause(.seconds(30))
      Turnstile.finish()
      member.leave()
    }

    func request(_ path: String) throws {
      let member = try SharedContainer(directory: path, options: options()).join(as: "a")
      let peer = member.peer("b")
      _ = try peer.request(0, as: Int.self)
      Turnstile.begin()
      Note.attempted.write(1)
      do {
        Note.replied.write(try peer.request(1, as: Int.self, within: .seconds(10)))
      } catch let error where [.unreachable, .rejected].contains(error.code) {
        // The peer has ended, or has joined and has no handler yet, or cannot write its reply.
        Note.refused.write(error.code == .rejected ? 2 : 1)
      } catch let error where error.code == .timedOut {
        Note.late.write(1)
      }
      Turnstile.finish()
      member.leave()
    }

    func brokenRequest(_ notes: [[Pair]]) -> String? {
      // The incarnation, and the number of the request.
      let received = notes[0] + (replacements.isEmpty ? [] : notes[2])
      let handled = values(.received, in: received).filter { $0 % 100 == 1 }
      if handled.count > 1 { return "twice: a request was handled by \(handled)" }
      guard !Turnstile.wasKilled(1) else { return nil }
      // A successor that cannot store its profile is taken for the receiver of the request. All
      // that the main thread of a member writes beside its presence is the profile.
      let isNameless = Turnstile.failedSteps.contains { step in
        step.path.hasSuffix("profile.plist")
          || step.process != 1 && step.thread == "main" && step.path.hasPrefix("staging/")
      }
      if count(.late, notes) > 0 {
        return isNameless ? nil : "blocked: the request had no end before its deadline"
      }
      // A call that has failed is the error of the request.
      if count(.refused, notes) > 0 || !Turnstile.text(of: 1).isEmpty {
        // The incarnation that was asked may have ended while it handled the request; in `left`,
        // the second one ends only if it is killed.
        let hasLaterEnded = self == .left && Turnstile.wasKilled(0)
        let isUnwritten =
          values(.refused, in: notes[1]) == [2] && !Turnstile.failedSteps.isEmpty
        return handled.contains { $0 > 200 } && !hasLaterEnded && !isUnwritten
          ? "later: \(handled) has received a request that has failed" : nil
      }
      guard let reply = values(.replied, in: notes[1]).first else { return "unreplied: no end" }
      return handled == [reply] ? nil : "invented: reply \(reply), handled \(handled)"
    }
  }
#endif
