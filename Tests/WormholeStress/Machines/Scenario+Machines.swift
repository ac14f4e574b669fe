#if FAULT_POINTS
  import Wormhole
  import WormholeBridge
  import WormholeContainerStorage
  import WormholeRelay
  import WormholeSyscalls

  /// Two machines with bridges, which a hub connects.
  ///
  /// Two containers stand for the machines. Process 0 is the hub. The processes 1 and 2 are the
  /// bridges, with the successors 3 and 4. The processes 5 and 6 are programs of the machines.
  extension Scenario {
    enum MachinePart {
      static let hub = 0
      static let bridges = 1...2
      static let (here, there) = (5, 6)
      static let programs = [here, there]
      static let folders = ["here", "there"]
    }

    /// Whether the processes are those above.
    var hasMachines: Bool {
      switch self {
      case .homes, .changes, .talk, .state, .rivals, .lent: true
      case .pieces, .losses, .evict, .follow, .wake: true
      default: false
      }
    }

    /// The longest time of a bridge and of a program.
    static var longestRace: Duration { Turnstile.isScheduled ? .seconds(90) : .seconds(1) }
    /// The seconds for which a bridge carries after the programs have ended.
    ///
    /// The bridge may be suspended for longer, so the bridge waits for each second. The time is
    /// longer than a suspension of the hub, too. Without a schedule, time is real, and no process
    /// is suspended.
    private static var settling: Int { Turnstile.isScheduled ? 6 : 1 }

    // MARK: The processes

    func playWithMachines(_ number: Int, _ path: String) throws {
      if Turnstile.isScheduled { ScheduledTasks.begin() }
      for folder in [path] + MachinePart.folders.map({ "\(path)/\($0)" }) {
        _ = try? Descriptor.makeDirectory(path: folder, mode: 0o700)
      }
      switch number {
      case MachinePart.hub: try serveHub(path)
      case MachinePart.here, MachinePart.there:
        let container = try Self.container(number - MachinePart.here, path, options())
        try playProgram(number, container, path)
        Self.noteEnd(of: number, path)
        Turnstile.finish()
      default:
        let machine = (number + 1) % 2
        if self == .evict, machine == 0 { return try serveLostMachine(path) }
        let container = try Self.container(machine, path, options())
        try serveBridge(1 + machine, container, path)
      }
    }

    private func playProgram(
      _ number: Int, _ container: SharedContainer, _ path: String
    ) throws {
      let isHere = number == MachinePart.here
      switch self {
      case .homes: try useQueue(number, container, path)
      case .changes: try changeChannel(number, container, path)
      case .rivals: try changeFromAfar(number, container, path)
      case .lent: try lend(number, container, path)
      case .state: try isHere ? watchState(container) : setState(container)
      case .pieces, .losses:
        try isHere ? takeParcels(container, path) : sendParcels(container, path)
      case .evict: try isHere ? handleUntilLost(container) : giveUpMachine(container, path)
      case .follow: try isHere ? moveMember(container, path) : joinAfterMove(container, path)
      case .wake: try isHere ? leaveToBeWoken(container, path) : wakeTwice(container)
      default: try isHere ? hear(container, path) : talk(container)
      }
    }

    static func container(
      _ machine: Int, _ path: String, _ options: Options
    ) throws -> SharedContainer {
      try SharedContainer(directory: "\(path)/\(MachinePart.folders[machine])", options: options)
    }

    private func serveHub(_ path: String) throws {
      let hub = try ScheduledHub(losesData: self == .losses)
      let end = Instant.now + Self.longestRace * 2
      let serving = try Thread("hub") {
        do throws(Errno) {
          try hub.serve(until: end)
        } catch {
          Turnstile.setText("\(error)")
        }
      }
      Turnstile.begin()
      Self.wait(until: end) { Self.hasEnded(path, Array(MachinePart.bridges)) }
      Turnstile.finish()
      serving.join()
    }

    static func bridgeSettings() throws -> Bridge.Settings {
      var settings = Bridge.Settings(
        group: "g", address: try RelayAddress(ScheduledHub.address))
      settings.allowsOpenServer = true
      settings.mayWake = ["bob"]
      return settings
    }

    func serveBridge(_ number: Int, _ container: SharedContainer, _ path: String) throws {
      let news = try BridgeNews()
      guard let lock = try BridgeLock.take(container, news) else { throw Errno.busy }
      let settings = try Self.bridgeSettings()
      let isReady = Monitor(false)
      let carrying = try Thread("bridge") {
        do {
          try Bridge(container, settings, news, lock) { isReady.signal { $0 = true } }.run()
        } catch {
          Turnstile.setText("\(error)")
        }
      }
      let end = Instant.now + Self.longestRace
      let _: Bool? = isReady.wait(until: end) { $0 ? true : nil }
      Turnstile.begin()
      Self.wait(until: end) { Self.hasEnded(path) }
      for _ in 0..<Self.settling { Self.pause(.seconds(1)) }
      Self.noteEnd(of: number, path)
      // The next step of the bridge is no part of the race.
      Turnstile.finish()
      news.stop()
      carrying.join()
    }

    // MARK: The ends

    private static func noteEnd(of process: Int, _ path: String) {
      _ = try? Descriptor.makeDirectory(path: "\(path)/over.\(process)", mode: 0o700)
    }

    /// Whether the programs have ended, or the bridges, with the numbers of the first ones.
    static func hasEnded(_ path: String, _ processes: [Int] = MachinePart.programs) -> Bool {
      processes.allSatisfy { number in
        MachinePart.programs.contains(number) && Turnstile.wasKilled(number)
          || (try? Descriptor.status(ofPath: "\(path)/over.\(number)")) != nil
      }
    }

    /// Checks a condition each second, until it is true or the time is up.
    @discardableResult
    static func wait(until end: Instant, _ condition: () throws -> Bool) rethrows -> Bool {
      while try !condition() {
        guard Instant.now < end else { return false }
        pause(.seconds(1))
      }
      return true
    }

    /// The end of the waits of a program.
    static var programEnd: Instant { .now + limited(.seconds(60)) }

    // MARK: Messages

    /// Sends a message whose sender wants the outcome.
    static func post(_ number: Int, to peer: Peer, file: String? = nil) throws -> Sent {
      var options = SendOptions()
      options.wantsOutcome = true
      Note.attempted.write(number)
      let sent =
        if let file {
          try peer.send(file: file, metadata: number, options)
        } else {
          try peer.send(number, options)
        }
      Note.sent.write(number)
      return sent
    }

    /// Waits for the outcome of a message, and notes it.
    static func awaitOutcome(of number: Int, _ sent: Sent, until end: Instant) {
      guard let status = sent.waitForEnd(until: end) else { return }
      Note.outcome.write(number * 2 + (status == .delivered ? 1 : 0))
    }

    /// Joins as soon as the name is free on the machine; nil after the end of the time.
    static func join(
      as name: String, of container: SharedContainer, until end: Instant
    ) throws -> Member? {
      var member: Member?
      try wait(until: end) {
        member = try joined(as: name, of: container)
        return member != nil
      }
      return member
    }

    private static func joined(as name: String, of container: SharedContainer) throws -> Member? {
      do {
        return try container.join(as: name)
      } catch let error where error.code == .nameTaken {
        return nil
      }
    }

    /// Notes and acknowledges each message; the handler is called after the acknowledgement.
    static func handleAll(
      as member: Member, _ handler: @escaping @Sendable (Int) -> Void = { _ in }
    ) throws -> Subscription {
      try member.receive(acknowledging: .explicit) { message in
        let number = try message.value(as: Int.self)
        (message.isRedelivered ? Note.redelivered : .received).write(number)
        Note.acknowledging.write(number)
        try message.acknowledge()
        Note.acknowledged.write(number)
        handler(number)
      }
    }

    // MARK: The check

    func checkMachines(_ path: String) throws {
      switch self {
      case .homes: try checkHomes(path)
      case .changes, .rivals: try checkChanges(path)
      case .pieces: try checkParcels(path)
      case .follow: try checkHomeMove(path)
      default: try checkTalk(path)
      }
    }

    /// Whether a schedule has killed a program.
    var isProgramKilled: Bool { MachinePart.programs.contains { Turnstile.wasKilled($0) } }

    /// Notes the problems of the containers; the bridges have ended as if they were killed.
    static func noteProblems(_ containers: [SharedContainer]) throws {
      for container in containers {
        for finding in try container.storage.inspect() + container.inspectMail()
        where finding.severity == .problem {
          // The next change removes it.
          if finding.what == "left by an ended process" { continue }
          Turnstile.setText("doctor: \(finding)")
        }
      }
    }

    /// The records of messages between the machines that remain although all is settled.
    static func leftRecords(in path: String) -> [String] {
      func files(_ folder: String) -> [String] {
        ((try? ServerFiles.names(in: "\(path)/\(folder)")) ?? []).map { "\(folder)/\($0)" }
      }
      return MachinePart.folders.flatMap { files("\($0)/bridge/out") + files("\($0)/bridge/in") }
        .flatMap(files).filter { !$0.hasSuffix("/flow.plist") && !$0.hasSuffix("/cursor.plist") }
    }

    /// Whether a process was killed or suspended, or a call has failed.
    var isDisturbed: Bool {
      (0..<processes).contains { Turnstile.wasKilled($0) } || !Turnstile.failedSteps.isEmpty
        || (0..<Turnstile.stepCount).contains { Turnstile.choice(at: $0).suspended != 0 }
    }
  }
#endif
