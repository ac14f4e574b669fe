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
    var access = ""
    /// What was there before the access, as far as anybody is to be told.
    var present: [AccessPath: Bool] = [:]
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
        let found = try look(room, parts.map(\.path), but: purposes)
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
    wait(for: asked, access, patience)
  }

  private static func isThere(_ path: AccessPath) -> Bool {
    (try? Descriptor.status(ofPath: path.text)) != nil
  }

  private func look(
    _ room: AccessRoom, _ paths: [AccessPath], but purposes: Set<String>
  ) throws(WormholeError) -> [PresenterName: PresenterEntry] {
    do throws(Errno) {
      return try room.presenters(of: paths, but: purposes)
    } catch {
      throw WormholeError(error, "look for presenters in", room.container.path)
    }
  }

  private func wait(for asked: [Asked], _ access: String, _ patience: Patience) {
    let end = min(
      .now + Wormhole.Coordinator.Presenter.patience, patience.deadline ?? .distantFuture)
    let open = Monitor<Set<PresenterName>>([])
    for one in asked {
      guard let process = try? one.room.showProcess() else { continue }
      open.withLock { _ = $0.insert(one.name) }
      let parts = parts(of: one)
      let question = PresenterQuestion(
        presenter: one.name.number, access: access, process: process,
        writes: parts.contains { $0.writes }, saves: parts.contains { $0.manner == .usual },
        deletes: parts.contains { $0.manner == .deleting })
      let isAsked = one.desk.ask(question, one.name, one.entry, in: one.room) {
        open.signal { _ = $0.remove(one.name) }
      }
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
        one.desk.giveUp(one.name, access: access)
        open.withLock { _ = $0.remove(one.name) }
      }
      open.wait(until: min(now + tick, end)) { $0.isEmpty ? () : nil }
    }
    for one in asked where open.withLock({ $0.contains(one.name) }) {
      one.desk.giveUp(one.name, access: access)
    }
  }

  private func parts(of one: Asked) -> [Part] {
    places.filter { $0.room === one.room }.flatMap(\.parts).filter {
      one.entry.isRelated(to: CollectionOfOne($0.path))
    }
  }

  // MARK: After

  /// Tells those that were asked that they may go on, and all, of what was written.
  func end(wrote: Bool) {
    let before = state.withLock { state in
      defer { state.asked = [] }
      return state
    }
    var left: [PresenterName: Asked] = [:]
    for one in before.asked { left[one.name] = one }
    for (room, parts) in places {
      if wrote, !Mutants.has(.tellOnlyAsked) {
        let written = parts.filter(\.writes).map(\.path)
        let made = written.filter { before.present[$0] == false && Self.isThere($0) }
        tell(written, Set(made.map(\.text)), in: room, before.access, but: purposes) {
          left[$0] = nil
        }
      }
      for claim in room.takeBuried() where claim.writes {
        let written = claim.parts.filter(\.writes).map(\.path)
        // Nobody's of this program.
        tell(written, [], in: room, "", but: []) { _ in }
      }
    }
    for one in left.values {
      let news = PresenterNews(
        presenter: one.name.number, access: before.access,
        changed: wrote && Mutants.has(.tellOnlyAsked) ? one.entry.paths.map(\.text) : [], made: [])
      one.desk.tell(news, one.entry)
    }
  }

  private func tell(
    _ paths: [AccessPath], _ made: Set<String>, in room: AccessRoom, _ access: String,
    but purposes: Set<String>, _ told: (PresenterName) -> Void
  ) {
    guard !paths.isEmpty else { return }
    do throws(WormholeError) {
      let found = try look(room, paths, but: purposes)
      guard !found.isEmpty else { return }
      let desk = try PresenterDesk.of(room)
      for (name, entry) in found {
        let changed = paths.filter { entry.isRelated(to: CollectionOfOne($0)) }.map(\.text)
        let news = PresenterNews(
          presenter: name.number, access: access, changed: changed, made: made)
        desk.tell(news, entry)
        told(name)
      }
    } catch {
      room.container.log(.warning, error)
    }
  }
}
