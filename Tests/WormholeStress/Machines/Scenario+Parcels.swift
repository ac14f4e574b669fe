#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// A member sends messages to a member of another machine: with files, or over a server with
  /// losses.
  extension Scenario {
    private static let parcels = 1...3

    /// The size of a message's file: two pieces for the first message, no bytes for the last.
    private func fileSize(of number: Int) -> Int? {
      self == .pieces ? [1: 300_000, 3: 0][number] : nil
    }

    /// Returns blocks of equal letters, so that a missing piece shows.
    private static func content(_ size: Int) -> String {
      let letters = Array("abcdefghijklmnopqrstuvwxyz")
      return (0..<size / 1000).map { String(repeating: letters[$0 % 26], count: 1000) }.joined()
    }

    // MARK: The processes

    /// The receiver.
    func takeParcels(_ container: SharedContainer, _ path: String) throws {
      let bob = try container.join(as: "bob")
      let listening = try bob.receive(acknowledging: .explicit) { message in
        let number = try message.value(as: Int.self)
        (message.isRedelivered ? Note.redelivered : .received).write(number)
        if !isIntact(message, number) { Note.problem.write(number) }
        Note.acknowledging.write(number)
        try message.acknowledge()
        Note.acknowledged.write(number)
      }
      Turnstile.begin()
      Self.wait(until: Self.programEnd) { Self.hasEnded(path, [MachinePart.there]) }
      // A sender that was killed has not waited for the messages in transit.
      for _ in 0..<(Turnstile.wasKilled(MachinePart.there) ? 15 : 0) { Self.pause(.seconds(1)) }
      listening.stop()
    }

    private func isIntact(_ message: Message, _ number: Int) -> Bool {
      guard let size = fileSize(of: number) else { return message.file == nil }
      guard let file = message.file else { return false }
      return (try? ScheduledRounds.text(of: file.path)) == Self.content(size)
    }

    /// The sender.
    func sendParcels(_ container: SharedContainer, _ path: String) throws {
      let end = Self.programEnd
      let files = try Self.parcels.map { number in
        try fileSize(of: number).map { try Self.makeFile("\(path)/file.\(number)", $0) }
      }
      let peer = try container.join(as: "al").peer("bob")
      try Self.wait(until: end) { try peer.profile?.isRunning == true }
      _ = try Self.post(0, to: peer).waitForEnd(until: end)
      Turnstile.begin()
      var sent: [Sent] = []
      for (number, file) in zip(Self.parcels, files) {
        sent.append(try Self.post(number, to: peer, file: file))
        // Each one has a bundle of its own, which the server may lose.
        if self == .losses { Self.pause(.seconds(1)) }
      }
      for (number, one) in zip(Self.parcels, sent) {
        Self.awaitOutcome(of: number, one, until: end)
      }
    }

    private static func makeFile(_ path: String, _ size: Int) throws -> String {
      let file = try Descriptor.open(path: path, .writeOnlyNew, mode: 0o600)
      try file.writeFully(Array(content(size).utf8))
      return path
    }

    // MARK: The check

    func checkParcels(_ path: String) throws {
      // A program that is killed may leave a file without a message.
      let files = isProgramKilled ? [] : Self.leftFiles(in: path)
      for file in files { Turnstile.setText("left: \(file)") }
      try checkTalk(path)
    }

    /// The files that remain although their messages are settled.
    private static func leftFiles(in path: String) -> [String] {
      MachinePart.folders.map { "\($0)/members/bob/files" }.flatMap { folder in
        ((try? ServerFiles.names(in: "\(path)/\(folder)")) ?? []).filter { $0 != "room" }
          .map { "\(folder)/\($0)" }
      }
    }

    // MARK: The promises

    func brokenParcels(_ notes: [[Pair]]) -> String? {
      let (own, heard) = (notes[MachinePart.there], notes[MachinePart.here])
      if let number = values(.problem, in: heard).first { return "damaged: message \(number)" }
      let received = values(.received, in: heard)
      if Set(received).count < received.count || count(.redelivered, [heard]) > 0 {
        return "twice: the messages \(received)"
      }
      if received != received.sorted() { return "order: \(received)" }
      guard !Turnstile.wasKilled(MachinePart.here) else { return nil }
      let (sent, done) = (values(.sent, in: own), values(.acknowledged, in: heard))
      if !Set(sent).isSubset(of: done) { return "lost: of \(sent), \(done)" }
      let outcomes = values(.outcome, in: own)
      guard Turnstile.wasKilled(MachinePart.there) || outcomes == Self.parcels.map({ $0 * 2 + 1 })
      else { return "blocked: the outcomes \(outcomes)" }
      return nil
    }
  }
#endif
