#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// A mover, a presenter and a writer share a file.
  ///
  /// Each write adds its own digit in a single call, so a killed process leaves whole content.
  extension Scenario {
    private struct Paths {
      let old: String
      let new: String

      init(_ folder: String) { (old, new) = ("\(folder)/old", "\(folder)/new") }

      /// The old path is 1, the new path 2, and both are 3.
      func number(of path: String) -> Int { path == old ? 1 : 2 }
    }

    private enum Digit {
      static let presenter = 1
      /// The presenter's addition after the move.
      static let followed = 10
      static let mover = 100
      static let writer = 1000
      static let all = [presenter, followed, mover, writer]
    }

    private struct Presented {
      var path: String
      var unsaved = Digit.presenter
      /// Accesses before the race only read: the presenter saves nothing.
      var saves = false
    }

    // MARK: The processes

    func move(_ number: Int, _ folder: String) throws {
      let paths = Paths(folder)
      if number == 0 {
        for folder in [folder, "\(folder)/groups"] {
          try Descriptor.makeDirectory(path: folder, mode: 0o700)
        }
        let file = try Descriptor.open(path: paths.old, .writeOnlyNew, mode: 0o600)
        try Self.write(0, to: file)
      }
      let coordinator = Coordinator(purpose: "part \(number)", Self.arbiters(folder))
      let presenting = number == 0 ? try presentMoved(paths, coordinator) : nil
      try coordinator.read(paths.old) { _ in }
      Turnstile.begin()
      do {
        switch number {
        case 0:
          Self.pause(.seconds(40))
          try Self.notePresented(paths, in: folder)
        case 1: try moveFile(paths, folder, coordinator)
        default: try writeWhereItIs(paths, coordinator)
        }
      } catch let error as WormholeError where error.code == .stopped {
        // The conflicting process is suspended inside its access.
        Note.refused.write(number)
      } catch {
        Turnstile.setText("\(error)")
      }
      if number > 0 { Self.waitForRetries() }
      Turnstile.finish()
      presenting?.stop()
    }

    static func arbiters(_ folder: String) -> Arbiters {
      var options = ContainerOptions()
      options.lease = .milliseconds(80)
      return Arbiters(options, root: "\(folder)/groups")
    }

    private func moveFile(
      _ paths: Paths, _ folder: String, _ coordinator: Coordinator
    ) throws {
      try coordinator.access([.writing(paths.old), .writing(paths.new)]) { access in
        try Self.inside(3) {
          Note.first.write(try Self.content(of: paths.old))
          Self.pause(.milliseconds(1))
          let parent = try Descriptor.open(path: folder, [.readOnly, .directory])
          try parent.rename("old", to: parent, "new")
          Note.partly.write(1)
          try access.moved(paths.old, to: paths.new)
          Note.told.write(1)
        }
      }
      try coordinator.write(paths.new) { path in
        try Self.inside(2) { _ = try Self.add(Digit.mover, to: path) }
      }
    }

    /// Writes at the old path, or at the new path after the move.
    private func writeWhereItIs(_ paths: Paths, _ coordinator: Coordinator) throws {
      for path in [paths.old, paths.new] {
        let isThere = try coordinator.write(path) { path in
          try Self.inside(paths.number(of: path)) {
            guard Self.isThere(path) else { return false }
            _ = try Self.add(Digit.writer, to: path)
            return true
          }
        }
        if isThere { return }
      }
      Note.problem.write(1)
    }

    private func presentMoved(
      _ paths: Paths, _ coordinator: Coordinator
    ) throws -> Subscription {
      let state = Monitor(Presented(path: paths.old))
      var presenter = Coordinator.Presenter()
      presenter.relinquish = { use, goOn in
        if use == .writing { state.withLock { $0.saves = true } }
        Note.asked.write(0)
        goOn { Note.resumed.write(0) }
      }
      presenter.save = { done in
        let now = state.withLock { $0 }
        if now.saves, now.unsaved > 0 {
          Self.unlessStopped {
            try coordinator.write(now.path) { path in
              try Self.inside(paths.number(of: path)) {
                guard Self.isThere(path) else { return }
                Note.shown.write(try Self.add(now.unsaved, to: path))
                state.withLock { $0.unsaved -= now.unsaved }
              }
            }
          }
        }
        done()
      }
      presenter.didMove = { move in
        Note.moved.write(paths.number(of: move.to))
        state.withLock { state in
          state.path = move.to
          state.unsaved += Digit.followed
        }
      }
      presenter.didChange = { _ in
        let path = state.withLock { $0.path }
        Self.unlessStopped {
          try coordinator.read(path) { path in
            try Self.inside(paths.number(of: path), writes: false) {
              Note.shown.write(Self.isThere(path) ? try Self.content(of: path) : -1)
            }
          }
        }
      }
      Note.shown.write(0)
      return try coordinator.present(paths.old, as: presenter)
    }

    static func unlessStopped(_ body: () throws -> Void) {
      do {
        try body()
      } catch let error as WormholeError where error.code == .stopped {
        // The suspended access notifies the presenter again at its end.
        Note.refused.write(0)
      } catch {
        Turnstile.setText("\(error)")
      }
    }

    func checkMove(_ folder: String) throws {
      let paths = Paths(folder)
      let both = [Coordinator.Intent.writing(paths.old), .writing(paths.new)]
      try Coordinator(purpose: "check", Self.arbiters(folder)).access(both) { _ in
        let places = [paths.old, paths.new].filter { Self.isThere($0) }
        Note.place.write(places.map { paths.number(of: $0) }.reduce(0, +))
        for path in places { Note.first.write(try Self.content(of: path)) }
      }
      try Self.notePresented(paths, in: folder)
    }

    private static func notePresented(_ paths: Paths, in folder: String) throws {
      let room = try arbiters(folder).room(for: AccessPath.resolve(paths.old)[0])
      for path in try room.everyPresenter().values.flatMap(\.paths) {
        Note.presented.write(paths.number(of: path.text))
      }
    }

    // MARK: The file

    private static func isThere(_ path: String) -> Bool {
      (try? Descriptor.status(ofPath: path)) != nil
    }

    private static func content(of path: String) throws -> Int {
      Int(try ScheduledRounds.text(of: path)) ?? -1
    }

    private static func write(_ number: Int, to file: borrowing Descriptor) throws {
      let digits = String(number)
      let bytes = Array((String(repeating: "0", count: 4 - digits.count) + digits).utf8)
      try file.writeFully(bytes.span.bytes, at: 0)
    }

    /// Returns the content after the addition.
    private static func add(_ number: Int, to path: String) throws -> Int {
      let before = try content(of: path)
      Note.first.write(before)
      // Gives the turn to the rest of the processes.
      pause(.milliseconds(1))
      let file = try Descriptor.open(path: path, .writeOnly)
      Note.attempted.write(number)
      try write(before + number, to: file)
      Note.done.write(number)
      return before + number
    }

    /// Runs the body of an access, and notes its paths, its begin and its end.
    private static func inside<Result>(
      _ places: Int, writes: Bool = true, _ body: () throws -> Result
    ) rethrows -> Result {
      var moment: Int { Int(Instant.now.nanoseconds / 1000) * 8 }
      Note.began.write(moment + places + (writes ? 4 : 0))
      defer { Note.ended.write(moment) }
      return try body()
    }

    // MARK: The promises

    /// The body of an access.
    private struct Body {
      let process: Int
      let places: Int
      let writes: Bool
      let begin: Int
      var end: Int?
      /// The content found by a writer.
      var found: Int?

      func conflicts(with other: Body) -> Bool {
        guard process != other.process, places & other.places != 0, writes || other.writes,
          let end, let otherEnd = other.end
        else { return false }
        return max(begin, other.begin) < min(end, otherEnd)
      }
    }

    private static func bodies(_ notes: [[Pair]]) -> [Body] {
      var bodies: [Body] = []
      for (process, notes) in notes.enumerated() {
        for (note, value) in notes {
          switch note {
          case .began:
            bodies.append(
              Body(
                process: process, places: value & 3, writes: value & 4 != 0, begin: value / 8))
          case .ended: bodies[bodies.count - 1].end = value / 8
          case .first where process < 3: bodies[bodies.count - 1].found = value
          default: break
          }
        }
      }
      return bodies
    }

    func brokenMove(_ notes: [[Pair]]) -> String? {
      let bodies = Self.bodies(notes)
      for (index, one) in bodies.enumerated() {
        if let other = bodies[..<index].first(where: { $0.conflicts(with: one) }) {
          return "together: \(other) and \(one)"
        }
      }
      if Self.hasFailed(on: ["old", "new"]) { return nil }
      guard let place = values(.place, in: notes[3]).first else {
        return "blocked: no access to both paths afterwards"
      }
      let contents = values(.first, in: notes[3])
      guard contents.count == 1 else { return "half: the file is at \(contents.count) paths" }
      if count(.problem, notes) > 0 { return "half: an access has found the file at no path" }
      let isMoved = count(.partly, notes) > 0
      if place != (isMoved ? 2 : 1), !Turnstile.wasKilled(1) {
        return "half: the file is at place \(place), and moved is \(isMoved)"
      }
      let isDisturbed =
        !Turnstile.failedSteps.isEmpty
        || (0..<Turnstile.stepCount).contains { Turnstile.choice(at: $0).suspended != 0 }
      if !isDisturbed, count(.refused, notes) > 0 { return "refused: no process is suspended" }
      return brokenContent(contents[0], notes)
        ?? brokenPresenter(contents[0], at: place, notes)
        ?? (isDisturbed ? nil : unasked(bodies, notes))
    }

    private func brokenContent(_ content: Int, _ notes: [[Pair]]) -> String? {
      let all = Array(notes.joined())
      let (attempted, done) = (values(.attempted, in: all), values(.done, in: all))
      for digit in Digit.all {
        func times(_ numbers: [Int]) -> Int { numbers.map { $0 / digit % 10 }.reduce(0, +) }
        let times = (times([content]), times(done), times(attempted))
        if times.0 < times.1 || times.0 > times.2 {
          return "lost: the content is \(content), \(attempted) was attempted and \(done) done"
        }
      }
      return nil
    }

    private func brokenPresenter(
      _ content: Int, at place: Int, _ notes: [[Pair]]
    ) -> String? {
      // The access afterwards removes the presenters of ended processes.
      if count(.presented, [notes[3]]) > 0 { return "left: the presenter of an ended process" }
      guard !Turnstile.wasKilled(0), !Self.hasUnknownPresenters else { return nil }
      let (presented, moves) = (values(.presented, in: notes[0]), values(.moved, in: notes[0]))
      // A killed process may have moved the file without a notice, and a request may have failed.
      let isSure =
        Turnstile.failedSteps.isEmpty && (!Turnstile.wasKilled(1) || count(.told, notes) > 0)
      let isKnown = count(.partly, notes) > 0
      if isSure ? moves != (isKnown ? [2] : []) : moves.count > 1 || !isKnown && !moves.isEmpty {
        return "untold: the presenter was notified of moves to \(moves)"
      }
      if presented != [moves.isEmpty ? 1 : 2] {
        return "misplaced: it presents \(presented) after moves to \(moves)"
      }
      let (asked, resumed) = (count(.asked, notes), count(.resumed, notes))
      if asked != resumed { return "paused: asked \(asked) times, resumed \(resumed) times" }
      let shown = values(.shown, in: notes[0]).last
      if presented == [place], shown != content {
        return "unnoticed: the presenter shows \(shown ?? -1), and the content is \(content)"
      }
      return nil
    }

    /// Returns a violation if a writer has missed unsaved content of the presenter.
    private func unasked(_ bodies: [Body], _ notes: [[Pair]]) -> String? {
      guard !Turnstile.wasKilled(0) else { return nil }
      for body in bodies where body.process > 0 {
        guard let found = body.found else { continue }
        if found / Digit.presenter % 10 == 0 { return "unsaved: \(body)" }
        if body.places == 2, count(.told, notes) > 0, found / Digit.followed % 10 == 0 {
          return "unsaved: \(body)"
        }
      }
      return nil
    }
  }
#endif
