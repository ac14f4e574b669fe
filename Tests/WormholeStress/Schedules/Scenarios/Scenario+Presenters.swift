#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// Presenters of a file that reply too late, or register too late to be asked.
  extension Scenario {
    // MARK: A late reply

    /// A process writes twice to a file whose presenter replies long after the time for replies.
    func hang(_ number: Int, _ path: String) throws {
      let file = "\(path)/file"
      if number == 0 { try Self.makeFile(in: path) }
      let coordinator = Coordinator(purpose: "part \(number)", Self.arbiters(path))
      let presenting = number == 0 ? try presentSlowly(file, coordinator) : nil
      try coordinator.read(file) { _ = try Self.read($0) }
      Turnstile.begin()
      if number == 0 {
        Self.pause(.seconds(40))
      } else {
        for addition in 1...2 {
          Note.began.write(Self.milliseconds)
          try coordinator.write(file) { path in
            Note.ended.write(Self.milliseconds)
            try Self.add(addition, path)
          }
        }
        Self.waitForRetries()
      }
      Turnstile.finish()
      presenting?.stop()
    }

    private func presentSlowly(
      _ file: String, _ coordinator: Coordinator
    ) throws -> Subscription {
      var presenter = Coordinator.Presenter()
      presenter.relinquish = { use, goOn in
        guard use == .writing else { return goOn(nil) }
        Note.asked.write(0)
        Self.pause(Coordinator.Presenter.responseTimeout * 5)
        // The access is over by now, so the presenter resumes at once.
        goOn { Note.resumed.write(0) }
      }
      return try coordinator.present(file, as: presenter)
    }

    func brokenHanging(_ notes: [[Pair]]) -> String? {
      let limit = Int(Coordinator.Presenter.responseTimeout / .milliseconds(1))
      let (began, ended) = (values(.began, in: notes[1]), values(.ended, in: notes[1]))
      let times = zip(began, ended).map { $1 - $0 }
      // The presenter has not replied to the first access, so the second one does not ask.
      if !isDisturbed, times.count != 2 || times[1] >= limit {
        return "blocked: the accesses have waited for \(times) ms"
      }
      guard !Turnstile.wasKilled(0) else { return nil }
      let (asked, resumed) = (count(.asked, notes), count(.resumed, notes))
      if asked != resumed || asked == 0 && !isDisturbed {
        return "paused: asked \(asked) times, resumed \(resumed) times"
      }
      return nil
    }

    // MARK: A late registration

    /// A presenter registers after a process has asked the presenters, and before it writes.
    ///
    /// The process is killed, and another one reads the file.
    func appear(_ number: Int, _ path: String) throws {
      let file = "\(path)/file"
      if number == 0 { try Self.makeFile(in: path) }
      let arbiters = Self.arbiters(path)
      let coordinator = Coordinator(purpose: "part \(number)", arbiters)
      let presenting =
        number == 0
        ? try presentTwice(file, coordinator, Coordinator(purpose: "late", arbiters)) : nil
      try coordinator.read(file) { _ = try Self.read($0) }
      Turnstile.begin()
      switch number {
      case 0: Self.pause(.seconds(40))
      case 1:
        Self.unlessStopped { try coordinator.write(file) { try Self.add(1, $0) } }
        Self.waitForRetries()
      default:
        // By now the writer has ended: its access is removed here if it was killed.
        Self.pause(.seconds(10))
        Self.unlessStopped { try coordinator.read(file) { _ = try Self.read($0) } }
      }
      Turnstile.finish()
      presenting?.stop()
    }

    /// The first presenter registers the second one when the first writer asks.
    private func presentTwice(
      _ file: String, _ coordinator: Coordinator, _ late: Coordinator
    ) throws -> Subscription {
      let hasAsked = Monitor(false)
      var presenter = Coordinator.Presenter()
      presenter.relinquish = { use, goOn in
        let isFirst = hasAsked.withLock { hasAsked in
          guard use == .writing, !hasAsked else { return false }
          hasAsked = true
          return true
        }
        if isFirst { Self.presentLate(file, late) }
        goOn(nil)
      }
      return try coordinator.present(file, as: presenter)
    }

    private static func presentLate(_ file: String, _ coordinator: Coordinator) {
      let show: @Sendable () -> Void = {
        unlessStopped {
          try coordinator.read(file) { path in Note.shown.write(try read(path)) }
        }
      }
      var presenter = Coordinator.Presenter()
      presenter.didChange = { _ in show() }
      do {
        try coordinator.present(file, as: presenter)
      } catch {
        Turnstile.setText("\(error)")
      }
      // The writer may have ended before the registration, if this process was suspended.
      show()
    }

    func brokenAppearance(_ notes: [[Pair]]) -> String? {
      guard let final = values(.first, in: notes[3]).last else { return "unreadable: the file" }
      // Process 2 notifies the presenters in place of a writer that was killed.
      guard !Turnstile.wasKilled(0), !Turnstile.wasKilled(2) else { return nil }
      if Self.hasUnknownPresenters || Self.hasFailed(on: ["file"]) { return nil }
      guard let shown = values(.shown, in: notes[0]).last else {
        return isDisturbed ? nil : "unasked: the second presenter was not registered"
      }
      return shown == final
        ? nil : "unnoticed: the presenter shows \(shown), and the content is \(final)"
    }
  }
#endif
