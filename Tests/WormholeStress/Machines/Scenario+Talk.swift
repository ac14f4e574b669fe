#if FAULT_POINTS
  import Wormhole
  import WormholeBridge
  import WormholeContainerStorage
  import WormholeSyscalls

  /// A member sends a request, contexts and a message in pieces to a member of another machine.
  extension Scenario {
    private enum Size {
      /// A message that travels in pieces.
      static let large = 1_000_000
      static let small = 1
      /// The small message follows the large one.
      static let all = [large, small]
    }

    private static let contexts = 1...2
    private static let requestTime = Duration.seconds(10)

    // MARK: The processes

    /// The receiver.
    func hear(_ container: SharedContainer, _ path: String) throws {
      let member = try container.join(as: "bob")
      member.respond(to: Int.self) { question in
        Note.asked.write(question)
        return question + 1
      }
      let listening = try [
        member.receive(acknowledging: .explicit) { message in
          let size = try message.value(as: String.self).utf8.count
          (message.isRedelivered ? Note.redelivered : .received).write(size)
          Note.acknowledging.write(size)
          try message.acknowledge()
          Note.acknowledged.write(size)
        },
        member.watchContexts { context in
          if let number = try? context.value(as: Int.self) { Note.told.write(number) }
        },
      ]
      Turnstile.begin()
      Self.wait(until: Self.programEnd) { Self.hasEnded(path, [MachinePart.there]) }
      // The last context may still be in transit.
      for _ in 0..<2 { Self.pause(.seconds(1)) }
      for one in listening { one.stop() }
    }

    /// The sender.
    func talk(_ container: SharedContainer) throws {
      let end = Self.programEnd
      let peer = try container.join(as: "al").peer("bob")
      try Self.wait(until: end) { try peer.profile?.isRunning == true }
      _ = try peer.request(0, as: Int.self, within: Self.requestTime)
      var options = SendOptions()
      options.wantsOutcome = true
      Turnstile.begin()
      Note.attempted.write(Size.large)
      let large = try peer.send(String(repeating: "x", count: Size.large), options)
      Note.sent.write(Size.large)
      for number in Self.contexts {
        Note.first.write(number)
        try peer.setContext(number)
        Note.second.write(number)
      }
      try Self.ask(peer)
      Note.attempted.write(Size.small)
      let small = try peer.send(String(repeating: "x", count: Size.small), options)
      Note.sent.write(Size.small)
      for (size, sent) in zip(Size.all, [large, small]) {
        guard let status = sent.waitForEnd(until: end) else { continue }
        Note.outcome.write(size * 2 + (status == .delivered ? 1 : 0))
      }
    }

    private static func ask(_ peer: Peer) throws {
      do {
        Note.replied.write(try peer.request(1, as: Int.self, within: requestTime))
      } catch {
        guard [.unreachable, .rejected, .timedOut].contains(error.code) else { throw error }
        (error.code == .timedOut ? Note.late : .refused).write(1)
      }
    }

    // MARK: The check

    func checkTalk(_ path: String) throws {
      let containers = try [0, 1].map { try Self.container($0, path, options()) }
      for file in Self.leftRecords(in: path) { Turnstile.setText("left: \(file)") }
      try Self.noteProblems(containers)
      Turnstile.finish()
    }

    // MARK: The promises

    func brokenTalk(_ notes: [[Pair]]) -> String? {
      let (own, heard) = (notes[MachinePart.there], notes[MachinePart.here])
      let (isSenderKilled, isReceiverKilled) = (
        Turnstile.wasKilled(MachinePart.there), Turnstile.wasKilled(MachinePart.here)
      )
      let asked = values(.asked, in: heard).count { $0 == 1 }
      if asked > 1 { return "twice: the request was handled \(asked) times" }
      if let reply = values(.replied, in: own).first, reply != 2 || asked != 1 {
        return "invented: the reply \(reply), and the request was handled \(asked) times"
      }
      if !isDisturbed, count(.refused, [own]) + count(.late, [own]) > 0 {
        return "unreplied: no process was killed"
      }
      let received = values(.received, in: heard)
      if Set(received).count < received.count || count(.redelivered, [heard]) > 0 {
        return "twice: the messages \(received)"
      }
      if received != Size.all.filter(received.contains) { return "order: \(received)" }
      let told = values(.told, in: heard)
      if told != told.sorted() { return "order: the contexts \(told)" }
      guard !isReceiverKilled else { return nil }
      let sent = values(.sent, in: own)
      let done = values(.acknowledged, in: heard)
      if !Set(sent).isSubset(of: done) { return "lost: of \(sent), \(done)" }
      let latest = values(.second, in: own).max() ?? 0
      if told.last ?? 0 < latest { return "lost: context \(latest), and \(told) arrived" }
      let outcomes = values(.outcome, in: own)
      guard isSenderKilled || outcomes == Size.all.map({ $0 * 2 + 1 }) else {
        return "blocked: the outcomes \(outcomes)"
      }
      return nil
    }
  }
#endif
