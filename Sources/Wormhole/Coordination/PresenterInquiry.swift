internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The presenters of an access: asked before the access arrives, and notified when it has ended.
///
/// While the access waits for presenters, it is in no queue and blocks no other access. So a
/// presenter can save with an ordinary access, and no access in a queue waits for a presenter.
/// Every wait ends: with the reply, with the end or the suspension of the presenter's process, or
/// at the deadline.
final class PresenterInquiry: Sendable {
  typealias Place = (room: AccessDirectory, parts: [PathUse])

  private struct AskedPresenter {
    let room: AccessDirectory
    let desk: PresenterEndpoint
    let name: PresenterName
    let entry: PresenterEntry
  }

  private struct State {
    var asked: [AskedPresenter] = []
    /// The presenters that have not paused and need no notice when the access is over.
    var careless: Set<PresenterName> = []
    /// The presenters to which a request of the access was sent.
    var requested: Set<PresenterName> = []

    /// Whether a presenter may have paused for the access.
    func mayPause(_ name: PresenterName) -> Bool {
      requested.contains(name) && !careless.contains(name)
    }
    var access = ""
    /// Whether each written path existed before the access; empty if no presenter is asked.
    var present: [AccessPath: Bool] = [:]
  }

  private let places: [Place]
  /// Presenters of these purposes are neither asked nor notified.
  private let purposes: Set<String>
  private let state = Monitor(State())

  init(_ places: [Place], but purposes: Set<String>) {
    self.purposes = purposes
    self.places = places.map { room, parts in
      (room, parts.filter { $0.manner != .unnoticed })
    }.filter { !$0.parts.isEmpty }
  }

  // MARK: Before the access

  /// Asks all presenters, and waits until each has replied or further waiting is useless.
  func ask(_ patience: Patience) {
    var asked: [AskedPresenter] = []
    for (room, parts) in places {
      do throws(WormholeError) {
        let written = parts.filter(\.writes).map(\.path)
        let found = try look(room, parts.map(\.path), but: purposes).filter { _, entry in
          entry.mindsReaders || entry.isRelated(to: written)
        }
        guard !found.isEmpty else { continue }
        let desk = try PresenterEndpoint.of(room)
        asked += found.map { AskedPresenter(room: room, desk: desk, name: $0, entry: $1) }
      } catch {
        // The access continues even if its presenters cannot be asked.
        room.container.log(.warning, error)
      }
    }
    guard !asked.isEmpty else { return }
    let access = Environment().randomName()
    state.withLock { state in
      (state.asked, state.access) = (asked, access)
      for part in places.flatMap(\.parts) where part.writes {
        state.present[part.path] = Self.isThere(part.path)
      }
    }
    askEach(asked, access, patience)
  }

  private static func isThere(_ path: AccessPath) -> Bool {
    (try? Descriptor.status(ofPath: path.text)) != nil
  }

  private func look(
    _ room: AccessDirectory, _ paths: [AccessPath], but purposes: Set<String>
  ) throws(WormholeError) -> [PresenterName: PresenterEntry] {
    do throws(Errno) {
      return try room.presenters(of: paths, but: purposes) { PresenterEndpoint.knows($0, in: room) }
    } catch {
      throw WormholeError(
        error, "list the presenters in", room.container.path, in: room.container,
        "system/coordination", ["presenters"])
    }
  }

  private func askEach(_ asked: [AskedPresenter], _ access: String, _ patience: Patience) {
    wait(for: asked, patience) { one, end in
      guard let process = try? one.room.showProcess() else { return false }
      let parts = parts(of: one)
      let deleted = parts.filter { $0.manner == .deleting }.map(\.path)
      let question = PresenterQuestion(
        presenter: one.name.number, access: access, process: process,
        writes: parts.contains { $0.writes } ? true : nil,
        saves: parts.contains { $0.manner == .usual } ? true : nil,
        deletes: deleted.contains { path in one.entry.paths.contains { path.isAtOrAbove($0) } }
          ? true : nil,
        deleted: deleted.isEmpty ? nil : deleted.map(\.text))
      let isRequested = one.desk.ask(question, one.name, one.entry) { [state] holdsOff in
        if !holdsOff { state.withLock { _ = $0.careless.insert(one.name) } }
        end()
      }
      if isRequested { state.withLock { _ = $0.requested.insert(one.name) } }
      return isRequested
    } giveUp: { one in
      one.desk.giveUp(one.name, access: access)
    }
  }

  /// - Parameter ask: sends a request to a presenter, and passes on the closure to call when the
  ///   presenter has replied; returns whether the closure will be called.
  private func wait(
    for asked: [AskedPresenter], _ patience: Patience,
    _ ask: (AskedPresenter, @escaping @Sendable () -> Void) -> Bool,
    giveUp: (AskedPresenter) -> Void
  ) {
    let end = min(
      .now + Coordinator.Presenter.responseTimeout, patience.deadline ?? .distantFuture)
    let open = Monitor<Set<PresenterName>>([])
    for one in asked {
      open.withLock { _ = $0.insert(one.name) }
      let isAsked = ask(one) { open.signal { _ = $0.remove(one.name) } }
      if !isAsked { open.withLock { _ = $0.remove(one.name) } }
    }
    var processes: [ObjectIdentifier: AskedProcesses] = [:]
    while true {
      let left = open.withLock { $0 }
      let now = Instant.now
      if left.isEmpty || now >= end || patience.cancellation?.isCancelled == true { break }
      var tick = Duration.milliseconds(25)
      for one in asked where left.contains(one.name) {
        tick = min(tick, one.room.container.options.lease / 8)
        let isLost = processes[ObjectIdentifier(one.room), default: AskedProcesses()].isLost(
          one.name.process, in: one.room)
        guard isLost else { continue }
        giveUp(one)
        open.withLock { _ = $0.remove(one.name) }
      }
      open.wait(until: min(now + tick, end)) { $0.isEmpty ? () : nil }
    }
    for one in asked where open.withLock({ $0.contains(one.name) }) { giveUp(one) }
  }

  private func parts(of one: AskedPresenter) -> [PathUse] {
    places.filter { $0.room === one.room }.flatMap(\.parts).filter {
      one.entry.isRelated(to: CollectionOfOne($0.path))
    }
  }

  // MARK: Moves

  /// Notifies the presenters of a moved item and of the folders around it, and waits until the
  /// presenters of the item have registered at the new path.
  ///
  /// The access keeps other accesses away from both paths during the call, so no access can use the
  /// new path before the presenters are there.
  ///
  /// - Parameter names: the accesses that the caller is inside of.
  func tellMove(
    from: AccessPath, to: AccessPath, in room: AccessDirectory, inside names: [String]
  ) -> PathMove {
    var move = PathMove(from: from, to: to)
    var asked: [AskedPresenter] = []
    do throws(WormholeError) {
      // Include presenters of this purpose: they follow the move without a notification.
      let found = try look(room, [from], but: [])
      guard !found.isEmpty else { return move }
      let desk = try PresenterEndpoint.of(room)
      for (name, entry) in found {
        let isOwn = entry.paths.contains { from.isAtOrAbove($0) }
        guard isOwn || !purposes.contains(entry.purpose) else { continue }
        if !isOwn { move.folders.insert(name) }
        asked.append(AskedPresenter(room: room, desk: desk, name: name, entry: entry))
      }
    } catch {
      room.container.log(.warning, error)
    }
    wait(for: asked, .unlimited) { one, end in
      let word = PresenterMove(
        presenter: one.name.number, from: from.text, to: to.text,
        tells: !purposes.contains(one.entry.purpose), inside: names)
      one.desk.move(word, one.entry, end)
      return !Mutants.has(.moveUnwaited)
    } giveUp: { _ in
    }
    return move
  }

  // MARK: After the access

  /// Notifies the asked presenters that they may resume, and all presenters of the written paths.
  func end(wrote: Bool, moves: [PathMove] = []) {
    let before = state.withLock { state in
      defer { state.asked = [] }
      return state
    }
    var left: [PresenterName: AskedPresenter] = [:]
    for one in before.asked where !before.careless.contains(one.name) { left[one.name] = one }
    var untold: Set<String> = []
    for (room, parts) in places {
      if wrote, !Mutants.has(.tellOnlyAsked) {
        let written = parts.filter(\.writes).map(\.path)
        let made = written.filter { before.present[$0] == false && Self.isThere($0) }
        let isTold = tell(
          written, Set(made), moves, in: room, before.access, but: purposes,
          mayPause: before.mayPause
        ) {
          left[$0] = nil
        }
        if !isTold { untold.insert(room.key) }
      }
      tellOfBuried(in: room)
    }
    for one in left.values {
      // The asked presenters are known even where the registrations cannot be listed.
      let isToldHere = wrote && (Mutants.has(.tellOnlyAsked) || untold.contains(one.room.key))
      let changed = isToldHere ? parts(of: one).filter(\.writes).map(\.path.text) : []
      let news = PresenterNews(
        presenter: one.name.number, access: before.access, changed: changed, made: [])
      one.desk.tell(news, one.entry, endsPause: before.mayPause(one.name))
    }
  }

  /// Notifies presenters for dead writers whose accesses this process has removed.
  func tellOfBuried(in room: AccessDirectory) {
    var claims = room.takeBuried()[...]
    guard !Mutants.has(.forgetBuried) else { return }
    while let claim = claims.first {
      let written = claim.parts.filter(\.writes).map(\.path)
      // The dead access is of no purpose of this program, so no purpose is left out.
      guard
        tell(written, [], [], in: room, "", but: [], mayPause: { _ in false }, { _ in })
      else {
        // The next access of this process tries again: no other process knows of the writer.
        return room.bury(claims)
      }
      claims.removeFirst()
    }
  }

  /// Notifies the presenters of the paths; returns whether the presenters could be listed.
  private func tell(
    _ paths: [AccessPath], _ made: Set<AccessPath>, _ moves: [PathMove], in room: AccessDirectory,
    _ access: String, but purposes: Set<String>, mayPause: (PresenterName) -> Bool,
    _ told: (PresenterName) -> Void
  ) -> Bool {
    guard !paths.isEmpty else { return true }
    do throws(WormholeError) {
      let found = try look(room, paths, but: purposes)
      guard !found.isEmpty else { return true }
      let desk = try PresenterEndpoint.of(room)
      for (name, entry) in found {
        // A presenter of the folder knows already that the old path is gone and that the new path
        // exists.
        let known = moves.filter { $0.folders.contains(name) }
        let changed = paths.filter { path in
          entry.isRelated(to: CollectionOfOne(path)) && !known.contains { $0.from == path }
        }
        let made = made.subtracting(known.map(\.to))
        let news = PresenterNews(
          presenter: name.number, access: access, changed: changed.map(\.text),
          made: made.map(\.text))
        desk.tell(news, entry, endsPause: mayPause(name))
        told(name)
      }
      return true
    } catch {
      room.container.log(.warning, error)
      return false
    }
  }
}

/// The use of one path.
struct PathUse: Sendable {
  let path: AccessPath
  let writes: Bool
  let manner: Coordinator.Intent.Manner
}

/// A move, and the notified presenters of folders around the old path.
struct PathMove: Sendable {
  let from: AccessPath
  let to: AccessPath
  var folders: Set<PresenterName> = []
}
