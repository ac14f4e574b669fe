internal import SharedContainer
internal import Syscalls

/// Those whom one access asks before it arrives, and tells when it has ended.
///
/// While it waits for them it is in nobody's way: it has no place in any queue. So a presenter can
/// save with an ordinary access, and nothing that waits in a queue waits for a presenter. Every
/// wait ends: with the answer, with the process's end, when it stands still, or when the time for
/// that is over.
final class PresenterRound: Sendable {
  /// What is done with one path.
  struct Part: Sendable {
    let path: AccessPath
    let writes: Bool
    let manner: Wormhole.Coordinator.Intent.Manner
  }

  typealias Place = (room: AccessRoom, parts: [Part])

  private struct Asked {
    let room: AccessRoom
    let desk: PresenterDesk
    let name: PresenterName
    let entry: PresenterEntry
  }

  private struct State {
    var asked: [Asked] = []
    /// Those who do not hold off, and need no word that it is over.
    var careless: Set<PresenterName> = []
    var access = ""
    /// What was there before the access, as far as anybody is to be told.
    var present: [AccessPath: Bool] = [:]
  }

  /// What was moved, and those who were told of it and present a folder that it was in.
  struct Move: Sendable {
    let from: AccessPath
    let to: AccessPath
    var folders: Set<PresenterName> = []
  }

  private let places: [Place]
  /// Those of these are neither asked nor told.
  private let purposes: Set<String>
  private let state = Monitor(State())

  init(_ places: [Place], but purposes: Set<String>) {
    self.purposes = purposes
    self.places = places.map { room, parts in
      (room, parts.filter { $0.manner != .unnoticed })
    }.filter { !$0.parts.isEmpty }
  }

  // MARK: Before

  /// Asks all, and waits until each has answered or is not waited for any longer.
  func ask(_ patience: Patience) {
    var asked: [Asked] = []
    for (room, parts) in places {
      do throws(WormholeError) {
        let written = parts.filter(\.writes).map(\.path)
        let found = try look(room, parts.map(\.path), but: purposes).filter { _, entry in
          entry.mindsReaders || entry.isRelated(to: written)
        }
        guard !found.isEmpty else { continue }
        let desk = try PresenterDesk.of(room)
        asked += found.map { Asked(room: room, desk: desk, name: $0, entry: $1) }
      } catch {
        // That presenters cannot be asked is no reason not to go on.
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
    _ room: AccessRoom, _ paths: [AccessPath], but purposes: Set<String>
  ) throws(WormholeError) -> [PresenterName: PresenterEntry] {
    do throws(Errno) {
      return try room.presenters(of: paths, but: purposes) { PresenterDesk.knows($0, in: room) }
    } catch {
      throw WormholeError(error, "look for presenters in", room.container.path)
    }
  }

  private func askEach(_ asked: [Asked], _ access: String, _ patience: Patience) {
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
      return one.desk.ask(question, one.name, one.entry, in: one.room) { [state] holdsOff in
        if !holdsOff { state.withLock { _ = $0.careless.insert(one.name) } }
        end()
      }
    } giveUp: { one in
      one.desk.giveUp(one.name, access: access)
    }
  }

  /// - Parameter ask: is given what is to be called when it has answered; whether that will be.
  private func wait(
    for asked: [Asked], _ patience: Patience,
    _ ask: (Asked, @escaping @Sendable () -> Void) -> Bool, giveUp: (Asked) -> Void
  ) {
    let end = min(
      .now + Wormhole.Coordinator.Presenter.patience, patience.deadline ?? .distantFuture)
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

  private func parts(of one: Asked) -> [Part] {
    places.filter { $0.room === one.room }.flatMap(\.parts).filter {
      one.entry.isRelated(to: CollectionOfOne($0.path))
    }
  }

  // MARK: Moves

  /// Tells those who present what was moved, or a folder that it was in, and waits until the former
  /// present it where it is.
  ///
  /// It is called while the access keeps others from both paths, so nobody meets it at the new one
  /// before that.
  ///
  /// - Parameter names: the accesses that the caller is inside of.
  func tellMove(
    from: AccessPath, to: AccessPath, in room: AccessRoom, inside names: [String]
  ) -> Move {
    var move = Move(from: from, to: to)
    var asked: [Asked] = []
    do throws(WormholeError) {
      // Those of this purpose too: they are not told, but they go along.
      let found = try look(room, [from], but: [])
      guard !found.isEmpty else { return move }
      let desk = try PresenterDesk.of(room)
      for (name, entry) in found {
        let isOwn = entry.paths.contains { from.isAtOrAbove($0) }
        guard isOwn || !purposes.contains(entry.purpose) else { continue }
        if !isOwn { move.folders.insert(name) }
        asked.append(Asked(room: room, desk: desk, name: name, entry: entry))
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

  // MARK: After

  /// Tells those that were asked that they may go on, and all, of what was written.
  func end(wrote: Bool, moves: [Move] = []) {
    let before = state.withLock { state in
      defer { state.asked = [] }
      return state
    }
    var left: [PresenterName: Asked] = [:]
    for one in before.asked where !before.careless.contains(one.name) { left[one.name] = one }
    var untold: Set<String> = []
    for (room, parts) in places {
      if wrote, !Mutants.has(.tellOnlyAsked) {
        let written = parts.filter(\.writes).map(\.path)
        let made = written.filter { before.present[$0] == false && Self.isThere($0) }
        let isTold = tell(written, Set(made), moves, in: room, before.access, but: purposes) {
          left[$0] = nil
        }
        if !isTold { untold.insert(room.key) }
      }
      tellOfBuried(in: room)
    }
    for one in left.values {
      // Those who were asked are known, also where nobody can be looked for.
      let isToldHere = wrote && (Mutants.has(.tellOnlyAsked) || untold.contains(one.room.key))
      let changed = isToldHere ? parts(of: one).filter(\.writes).map(\.path.text) : []
      let news = PresenterNews(
        presenter: one.name.number, access: before.access, changed: changed, made: [])
      one.desk.tell(news, one.entry)
    }
  }

  /// Tells of what dead writers claimed whose accesses were removed here.
  func tellOfBuried(in room: AccessRoom) {
    for claim in room.takeBuried() where claim.writes && !Mutants.has(.forgetBuried) {
      let written = claim.parts.filter(\.writes).map(\.path)
      // Nobody's of this program.
      _ = tell(written, [], [], in: room, "", but: []) { _ in }
    }
  }

  /// Whether those who are to be told could be found.
  private func tell(
    _ paths: [AccessPath], _ made: Set<AccessPath>, _ moves: [Move], in room: AccessRoom,
    _ access: String, but purposes: Set<String>, _ told: (PresenterName) -> Void
  ) -> Bool {
    guard !paths.isEmpty else { return true }
    do throws(WormholeError) {
      let found = try look(room, paths, but: purposes)
      guard !found.isEmpty else { return true }
      let desk = try PresenterDesk.of(room)
      for (name, entry) in found {
        // It knows that the one is not there any more, and that the other has come.
        let known = moves.filter { $0.folders.contains(name) }
        let changed = paths.filter { path in
          entry.isRelated(to: CollectionOfOne(path)) && !known.contains { $0.from == path }
        }
        let made = made.subtracting(known.map(\.to))
        let news = PresenterNews(
          presenter: name.number, access: access, changed: changed.map(\.text),
          made: made.map(\.text))
        desk.tell(news, entry)
        told(name)
      }
      return true
    } catch {
      room.container.log(.warning, error)
      return false
    }
  }
}
