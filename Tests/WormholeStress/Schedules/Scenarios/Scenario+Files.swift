#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// Accesses to a file outside of the container, and its presenter.
  extension Scenario {
    /// A process writes to a file that another one presents, with unsaved content, and writes.
    func access(_ number: Int, _ path: String) throws {
      let file = "\(path)/file"
      if number == 0 { try Self.makeFile(in: path) }
      let coordinator = Coordinator(purpose: "part \(number)", Self.arbiters(path))
      let presenting = number == 0 ? try present(file, coordinator) : nil
      try coordinator.read(file) { _ = try Self.read($0) }
      Turnstile.begin()
      Note.attempted.write(number + 1)
      Note.began.write(Self.milliseconds)
      do {
        try coordinator.write(file) { path in
          Note.ended.write(Self.milliseconds)
          try Self.add(number + 1, path)
        }
        Note.done.write(number + 1)
      } catch let error as WormholeError where error.code == .stopped {
        // The other process is suspended inside of its access.
        Note.refused.write(number + 1)
      } catch {
        Note.refused.write(number + 1)
        Turnstile.setText("\(error)")
      }
      if number == 0 { Self.pause(.seconds(40)) } else { Self.waitForRetries() }
      Turnstile.finish()
      presenting?.stop()
    }

    private func present(_ file: String, _ coordinator: Coordinator) throws -> Subscription {
      let unsaved = Monitor(10)
      var presenter = Coordinator.Presenter()
      presenter.relinquish = { _, goOn in goOn(nil) }
      presenter.save = { done in
        do {
          try coordinator.write(file) { path in
            let count = unsaved.withLock { count in
              defer { count = 0 }
              return count
            }
            guard count > 0 else { return }
            Note.attempted.write(count)
            do {
              try Self.add(count, path)
            } catch {
              Note.refused.write(count)
              throw error
            }
            Note.done.write(count)
          }
        } catch let error as WormholeError where [.timedOut, .stopped].contains(error.code) {
          // Another access is suspended for longer than the time to respond.
        } catch {
          Turnstile.setText("\(error)")
        }
        done()
      }
      return try coordinator.present(file, as: presenter)
    }

    /// A failed notice is sent again while the process lives.
    static func waitForRetries() {
      if !Turnstile.failedSteps.isEmpty { pause(.seconds(3)) }
    }

    /// Whether a call failed on one of the files, as in the body of an access.
    static func hasFailed(on files: [String]) -> Bool {
      Turnstile.failedSteps.contains { step in
        files.contains { step.path == $0 || step.path.hasSuffix("/\($0)") }
      }
    }

    /// Whether the presenters could not be listed or read: the unknown ones are not notified.
    static var hasUnknownPresenters: Bool {
      Turnstile.failedSteps.contains { step in
        step.path.contains("/presenters") || step.path.hasSuffix(".wormhole")
          || step.path.hasSuffix("groups")
      }
    }

    /// Makes the file, and the directory that orders the accesses.
    static func makeFile(in path: String) throws {
      for folder in [path, "\(path)/groups"] {
        try Descriptor.makeDirectory(path: folder, mode: 0o700)
      }
      try write(0, "\(path)/file")
    }

    static func add(_ number: Int, _ path: String) throws {
      let before = try read(path)
      Note.first.write(before)
      // Gives the other process its turn.
      pause(.milliseconds(1))
      try write(before + number, path)
    }

    static func write(_ number: Int, _ path: String) throws {
      let file = try Descriptor.open(path: path, [.writeOnly, .create, .truncate], mode: 0o600)
      let bytes = Array("\(number)\n".utf8)
      try file.writeFully(bytes)
    }

    static func read(_ path: String) throws -> Int {
      Int(try ScheduledRounds.text(of: path).dropLast()) ?? -1
    }

    func checkAccess(_ path: String) throws {
      Note.first.write(try Self.read("\(path)/file"))
    }

    func brokenAccess(_ notes: [[Pair]]) -> String? {
      guard let final = values(.first, in: notes[2]).last else { return "unreadable: the file" }
      let done = values(.done, in: Array(notes.joined())).reduce(0, +)
      let refused = values(.refused, in: Array(notes.joined())).reduce(0, +)
      let attempted = values(.attempted, in: Array(notes.joined())).reduce(0, +) - refused
      // In place, a process that dies leaves any content.
      let hasKills = (0..<2).contains { Turnstile.wasKilled($0) }
      if hasKills || Self.hasFailed(on: ["file"]) { return nil }
      if final != done || attempted != done {
        return "lost: \(attempted) was begun and \(done) done, and the content is \(final)"
      }
      // An access begins even if its presenters cannot be asked.
      guard Turnstile.failedSteps.isEmpty else { return nil }
      // A presenter that is suspended for longer than its time to respond has not saved.
      let limit = Int(Coordinator.Presenter.responseTimeout / .milliseconds(1))
      guard let began = values(.began, in: notes[1]).first,
        let ended = values(.ended, in: notes[1]).first, ended - began < limit
      else { return nil }
      for before in values(.first, in: notes[1]) where before < 10 {
        return "unsaved: the writer has found \(before)"
      }
      return nil
    }
  }
#endif
