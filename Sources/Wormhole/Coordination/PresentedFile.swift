internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// One presenter: what it was asked, and for which accesses it holds off.
///
/// Whoever has asked it says when the access is over. One that dies says nothing, so as long as it
/// holds off for anybody it looks once a second whether that process lives.
final class PresentedFile: Lasting {
  private struct Hold {
    let room: AccessRoom
    /// Of the access.
    let process: String
    let writes: Bool
    /// Nil until it holds off, and if it does not care.
    var resume: (@Sendable () -> Void)?
  }

  private struct State {
    var holds: [String: Hold] = [:]
    /// What it has not answered, by access: also for those that are over meanwhile, as whoever does
    /// not answer is not waited for again.
    var answers: [String: @Sendable () -> Void] = [:]
    /// Accesses that may have written before it was there, and that nobody tells of if they die.
    var awaited: [(room: AccessRoom, name: AccessName)] = []
    var isLooking = false
    var isStopped = false
    /// What is still to be told, by path; a call for it is on its way.
    var changes: [String: Bool] = [:]
  }

  /// Where others find it.
  private struct Place {
    let room: AccessRoom
    let desk: PresenterDesk
    let name: PresenterName
    let paths: [AccessPath]
  }

  private let calls: Wormhole.Coordinator.Presenter
  private let purpose: String
  private let perform: @Sendable (@escaping @Sendable () -> Void) -> Void
  private let gate = CallGate()
  private let state = Monitor(State())
  private let places = Monitor<[Place]>([])
  /// How many changes are told one by one.
  private static let mostChanges = 1000

  init(
    _ calls: Wormhole.Coordinator.Presenter, purpose: String,
    _ perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) {
    self.calls = calls
    self.purpose = purpose
    self.perform = perform
  }

  // MARK: From its beginning to its end

  /// Shows it to others.
  func begin(
    in rooms: [(room: AccessRoom, paths: [AccessPath])]
  ) throws(WormholeError) -> Wormhole.Subscription {
    do throws(WormholeError) {
      for (room, paths) in rooms { try show(paths, in: room) }
      guard let hole = places.withLock({ $0.first?.desk.hole }) else {
        preconditionFailure("every path has its room")
      }
      return try hole.begun.keep(self)
    } catch {
      end()
      throw error
    }
  }

  private func show(_ paths: [AccessPath], in room: AccessRoom) throws(WormholeError) {
    let desk = try PresenterDesk.of(room)
    let entry = PresenterEntry(paths, purpose: purpose, guest: desk.address)
    let name = try room.present(entry) { name in desk.add(self, name.number) }
    places.withLock { $0.append(Place(room: room, desk: desk, name: name, paths: paths)) }
    // After it is there: whoever comes to write from now on tells it, and so does whoever ends.
    // Those that die are looked after here.
    let writers = (try? room.writers(of: paths, but: purpose)) ?? []
    guard !writers.isEmpty else { return }
    state.withLock { $0.awaited += writers.map { (room, $0) } }
    lookLater()
  }

  func stop() {
    guard places.withLock({ $0.first?.room.container.isOwned ?? true }) else { return }
    end()
    gate.drain()
  }

  func end() {
    let left = places.withLock { places in
      defer { places = [] }
      return places
    }
    for place in left {
      place.room.unpresent(place.name)
      place.desk.remove(place.name.number)
    }
    gate.close()
    let answers = state.withLock { state in
      state.isStopped = true
      defer { (state.holds, state.answers) = ([:], [:]) }
      return Array(state.answers.values)
    }
    for answer in answers { answer() }
  }

  private func call(_ body: @escaping @Sendable () -> Void) {
    perform { [gate] in
      gate.call { PresenterDesk.$isAnswering.withValue(true, operation: body) }
    }
  }

  // MARK: Before an access

  /// - Parameter answer: is called once.
  func ask(
    _ question: PresenterQuestion, in room: AccessRoom, _ answer: @escaping @Sendable () -> Void
  ) {
    let access = question.access
    let isOver = state.withLock { state in
      guard !state.isStopped else { return true }
      state.holds[access] = Hold(
        room: room, process: question.process, writes: question.writes)
      state.answers[access] = answer
      return false
    }
    guard !isOver else { return answer() }
    lookLater()
    call { [self] in
      let isDone = Monitor(false)
      calls.relinquish(question.writes ? .writing : .reading) { [self] resume in
        let isFirst = isDone.withLock { isDone in
          defer { isDone = true }
          return !isDone
        }
        guard isFirst else { return }
        holdOff(access, resume)
        prepare(question)
      }
    }
  }

  /// It holds off by now.
  private func holdOff(_ access: String, _ resume: (@Sendable () -> Void)?) {
    let isOver = state.withLock { state in
      guard state.holds[access] != nil else { return true }
      state.holds[access]?.resume = resume
      return false
    }
    if isOver, let resume { call(resume) }
  }

  private func prepare(_ question: PresenterQuestion) {
    let step =
      question.deletes ? calls.delete : question.saves ? calls.save : nil
    guard let step else { return finish(question.access) }
    call { [self] in
      // It waits for nobody any more who is not there.
      guard state.withLock({ $0.holds[question.access] != nil }) else {
        return finish(question.access)
      }
      step { [self] in finish(question.access) }
    }
  }

  private func finish(_ access: String) {
    let answer = state.withLock { $0.answers.removeValue(forKey: access) }
    answer?()
  }

  // MARK: After it

  func tell(_ news: PresenterNews) {
    resume(news.access)
    for path in news.changed { noteChange(path, isNew: news.made.contains(path)) }
  }

  private func resume(_ access: String) {
    let hold = state.withLock { $0.holds.removeValue(forKey: access) }
    if let resume = hold?.resume { call(resume) }
  }

  private func noteChange(_ path: String, isNew: Bool) {
    let path = state.withLock { state -> String? in
      // Of too many, that there were some.
      let path = state.changes.count < Self.mostChanges ? path : ownPath ?? path
      if let before = state.changes[path] {
        state.changes[path] = before || isNew
        return nil
      }
      state.changes[path] = isNew
      return path
    }
    guard let path else { return }
    call { [self] in
      guard let isNew = state.withLock({ $0.changes.removeValue(forKey: path) }) else { return }
      calls.changed(.init(path: path, isNew: isNew, below: below(path)))
    }
  }

  private func below(_ path: String) -> String? {
    let path = AccessPath(path)
    let own = places.withLock { $0.flatMap(\.paths) }
    // A link's target may lie in the folder that the link lies in.
    guard !own.contains(path), let folder = own.last(where: { $0.isAtOrAbove(path) }) else {
      return nil
    }
    return String(path.text.dropFirst(folder.text == "/" ? 1 : folder.text.count + 1))
  }

  private var ownPath: String? { places.withLock { $0.first?.paths.last?.text } }

  // MARK: Those that die

  private func lookLater() {
    let begins = state.withLock { state in
      !state.isLooking
        && {
          state.isLooking = true; return true
        }()
    }
    if begins { schedule() }
  }

  private func schedule() {
    PresenterDesk.clock.asyncAfter(deadline: .now() + .seconds(1)) { [weak self] in self?.look() }
  }

  private func look() {
    let (holds, awaited) = state.withLock { ($0.holds, $0.awaited) }
    let lost = holds.filter {
      !Mutants.has(.trustAskers) && !$0.value.room.lives($0.value.process)
    }
    for (access, hold) in lost {
      resume(access)
      if hold.writes, let path = ownPath { noteChange(path, isNew: false) }
    }
    let ended = awaited.filter { !$0.room.isUnderWay($0.name) }.map(\.name)
    if !ended.isEmpty, let path = ownPath { noteChange(path, isNew: false) }
    let goesOn = state.withLock { state in
      state.awaited.removeAll { ended.contains($0.name) }
      state.isLooking = !state.isStopped && !(state.holds.isEmpty && state.awaited.isEmpty)
      return state.isLooking
    }
    if goesOn { schedule() }
  }
}
