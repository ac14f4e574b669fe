internal import WormholeContainerStorage
internal import WormholeSyscalls

/// One presenter: its pending requests, and the accesses for which it has relinquished.
///
/// The process that asked the presenter reports the end of its access. A dead process reports
/// nothing. So while the presenter has relinquished for any access, it checks once a second whether
/// the process of that access lives.
final class PresentedFile: Stoppable {
  private struct Hold {
    let room: AccessDirectory
    /// The name of the access's process.
    let process: String
    let writes: Bool
    /// Nil until the presenter has relinquished, and if it passed no closure to `goOn`.
    var resume: (@Sendable () -> Void)?
  }

  /// A request of an access, under one name of the presenter: in each container that orders some of
  /// its paths, the presenter has a name of its own.
  private struct PresenterAccess: Hashable {
    /// The receiving guest.
    let guest: String
    let presenter: Int
    let access: String
  }

  private struct State {
    var holds: [PresenterAccess: Hold] = [:]
    /// The pending replies.
    ///
    /// Requests of accesses that have ended are kept too: until the reply arrives, the requesting
    /// process does not wait for this presenter again.
    var answers: [PresenterAccess: @Sendable (_ holdsOff: Bool) -> Void] = [:]
    /// Accesses that may have written before the registration; if their process dies, no process
    /// notifies this presenter.
    var awaited: [(room: AccessDirectory, name: AccessName)] = []
    var isStopped = false
    /// The changes still to report, by path; a call for each is queued already.
    var changes: [AccessPath: Bool] = [:]
  }

  /// A registration, where accesses find the presenter.
  private struct Place {
    let room: AccessDirectory
    let desk: PresenterEndpoint
    let name: PresenterName
  }

  private struct Presented {
    /// The path from the caller, without links on the way to it; if the path is a link, also its
    /// target.
    var paths: [AccessPath] = []
    var places: [Place] = []
    /// The registrations from before a move, for accesses that asked there and have not ended.
    var left: [Place] = []
    /// Whether the registration at the new path has failed so far.
    var isLate = false
  }

  private let calls: Coordinator.Presenter
  private let purpose: String
  private let perform: @Sendable (@escaping @Sendable () -> Void) -> Void
  private let arbiters: Arbiters
  private let gate = CallGate()
  /// On a queue of the presenter's own, because it calls file systems that may never return.
  private let worker = Worker(on: WorkQueue(), staysOnQueue: true)
  private let state = Monitor(State())
  private let presented = Monitor(Presented())
  /// The number of changes that are reported separately.
  private static let mostChanges = 1000

  init(
    _ calls: Coordinator.Presenter, purpose: String, _ arbiters: Arbiters,
    _ perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) {
    self.calls = calls
    self.purpose = purpose
    self.arbiters = arbiters
    self.perform = perform
    worker.begin { [weak self] in self?.look() }
  }

  // MARK: Registration

  /// Registers the presenter.
  func begin(at paths: [AccessPath]) throws(WormholeError) -> Subscription {
    // Hold the lock: a process that moves the file in the meantime finds the registration, and its
    // request waits until the paths that follow the move are known.
    let places = try presented.withLock { (presented) throws(WormholeError) in
      presented = Presented(paths: paths, places: try show(paths))
      return presented.places
    }
    // Opening a coordination directory removes the accesses of dead writers; report their changes.
    for place in places { PresenterRound([], but: []).tellOfBuried(in: place.room) }
    do throws(WormholeError) {
      guard let container = places.first?.desk.container else {
        preconditionFailure("every path has its room")
      }
      return try container.subscriptions.keep(self)
    } catch {
      end()
      throw error
    }
  }

  /// Registers the paths in each container that orders any of them; in all of these containers, or
  /// in none.
  ///
  /// - Parameter known: the names of accesses whose ends need no waiting.
  private func show(
    _ paths: [AccessPath], but known: Set<String> = []
  ) throws(WormholeError) -> [Place] {
    var rooms: [String: (room: AccessDirectory, paths: [AccessPath])] = [:]
    for path in paths {
      let room = try arbiters.room(for: path)
      rooms[room.key, default: (room, [])].paths.append(path)
    }
    var places: [Place] = []
    do throws(WormholeError) {
      for (room, paths) in rooms.sorted(by: { $0.key < $1.key }).map(\.value) {
        let desk = try PresenterEndpoint.of(room)
        let entry = PresenterEntry(
          paths, purpose: purpose, guest: desk.address, mindsReaders: calls.mindsReaders)
        let name = try show(entry, in: room, desk)
        places.append(Place(room: room, desk: desk, name: name))
        // After the registration, every arriving writer notifies the presenter, and so does every
        // access that ends. The presenter itself checks whether these writers die.
        let writers = ((try? room.writers(of: paths, but: purpose)) ?? []).filter {
          !known.contains($0.text)
        }
        guard !writers.isEmpty else { continue }
        state.withLock { $0.awaited += writers.map { (room, $0) } }
        worker.retry()
      }
    } catch {
      hide(places)
      forget(places)
      throw error
    }
    return places
  }

  private func show(
    _ entry: PresenterEntry, in room: AccessDirectory, _ desk: PresenterEndpoint
  ) throws(WormholeError) -> PresenterName {
    var number: Int?
    do throws(WormholeError) {
      return try room.present(entry) { name in
        number = name.number
        desk.add(self, name.number)
      }
    } catch {
      if let number { desk.remove(number) }
      throw error
    }
  }

  private func hide(_ places: [Place]) {
    for place in places { place.room.unpresent(place.name) }
  }

  private func forget(_ places: [Place]) {
    for place in places { place.desk.remove(place.name.number) }
  }

  var callGate: CallGate? { gate }

  func stop() {
    guard presented.withLock({ $0.places.first?.room.container.isOwned ?? true }) else { return }
    end()
    gate.drain()
  }

  func end() {
    let last = presented.withLock { presented in
      defer { presented = Presented() }
      return presented
    }
    hide(last.places)
    forget(last.places + last.left)
    gate.close()
    worker.end()
    let answers = state.withLock { state in
      state.isStopped = true
      defer { (state.holds, state.answers) = ([:], [:]) }
      return Array(state.answers.values)
    }
    for answer in answers where !Mutants.has(.forgetReplies) { answer(false) }
  }

  private func call(_ body: @escaping @Sendable () -> Void) {
    perform { [gate] in gate.call { PresenterCall(isAwaited: false).run(body) } }
  }

  /// Calls a closure that reports its completion.
  private func callAndAwait(_ body: @escaping @Sendable (PresenterCall) -> Void) {
    perform { [gate] in
      let call = PresenterCall(isAwaited: true)
      gate.call { call.run { body(call) } }
    }
  }

  // MARK: Before an access

  /// - Parameters:
  ///   - guest: the receiving guest.
  ///   - answer: called once, with whether the presenter needs a notice when the access is over.
  func ask(
    _ question: PresenterQuestion, as guest: String, in room: AccessDirectory,
    _ answer: @escaping @Sendable (_ holdsOff: Bool) -> Void
  ) {
    let asking = PresenterAccess(
      guest: guest, presenter: question.presenter, access: question.access)
    let isOver = state.withLock { state in
      guard !state.isStopped else { return true }
      state.holds[asking] = Hold(
        room: room, process: question.process, writes: question.writes == true)
      state.answers[asking] = answer
      return false
    }
    guard !isOver else { return answer(false) }
    worker.retry()
    guard let relinquish = calls.relinquish else { return prepare(question, asking) }
    callAndAwait { [self] call in
      relinquish(question.writes == true ? .writing : .reading) { [self] resume in
        guard call.end() else { return }
        holdOff(asking, resume)
        prepare(question, asking)
      }
    }
  }

  /// Records that the presenter has relinquished.
  private func holdOff(_ asking: PresenterAccess, _ resume: (@Sendable () -> Void)?) {
    let isOver = state.withLock { state in
      guard state.holds[asking] != nil else { return true }
      state.holds[asking]?.resume = resume
      return false
    }
    if isOver, let resume { call(resume) }
  }

  private func prepare(_ question: PresenterQuestion, _ asking: PresenterAccess) {
    var steps: [@Sendable (@escaping @Sendable () -> Void) -> Void] = []
    let isDeleted = question.deletes == true
    if let step = isDeleted ? calls.delete : question.saves == true ? calls.save : nil {
      steps.append(step)
    }
    if let delete = calls.deleteBelow, !isDeleted {
      for path in (question.deleted ?? []).compactMap(below) {
        steps.append { done in delete(path, done) }
      }
    }
    prepare(steps[...], asking)
  }

  private func prepare(
    _ steps: ArraySlice<@Sendable (@escaping @Sendable () -> Void) -> Void>,
    _ asking: PresenterAccess
  ) {
    guard let step = steps.first else { return finish(asking) }
    callAndAwait { [self] call in
      // Skip the remaining steps if the access is over: no process waits for them.
      guard state.withLock({ $0.holds[asking] != nil }) else { return finish(asking) }
      step { [self] in
        if call.end() { prepare(steps.dropFirst(), asking) }
      }
    }
  }

  private func finish(_ asking: PresenterAccess) {
    let (answer, holdsOff) = state.withLock { state in
      let hold = state.holds[asking]
      // The end of a reader does not matter if no closure has to be called, even if the reader
      // dies.
      let holdsOff = hold.map { $0.writes || $0.resume != nil } ?? false
      if !holdsOff { state.holds[asking] = nil }
      return (state.answers.removeValue(forKey: asking), holdsOff)
    }
    answer?(holdsOff)
  }

  // MARK: After an access

  func tell(_ news: PresenterNews, as guest: String) {
    resume(PresenterAccess(guest: guest, presenter: news.presenter, access: news.access))
    let made = Set(news.made.map(AccessPath.init(_:)))
    for path in news.changed { noteChange(path, isNew: made.contains(AccessPath(path))) }
  }

  private func resume(_ asking: PresenterAccess) {
    let hold = state.withLock { $0.holds.removeValue(forKey: asking) }
    if let resume = hold?.resume { call(resume) }
  }

  private func noteChange(_ path: String, isNew: Bool) {
    let ownPath = ownPath ?? path
    let path = state.withLock { state -> AccessPath? in
      // Above the limit, report one change of the presented item itself.
      let path = AccessPath(state.changes.count < Self.mostChanges ? path : ownPath)
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
      calls.didChange(.init(path: path.text, isNew: isNew, relativePath: below(path.text)))
    }
  }

  private func below(_ path: String) -> String? {
    let path = AccessPath(path)
    let own = presented.withLock { $0.paths }
    // The target of a presented link may be a folder that contains the link.
    return own.contains(path) ? nil : own.last { $0.isAtOrAbove(path) }?.way(to: path)
  }

  private var ownPath: String? { presented.withLock { $0.paths.last?.text } }

  // MARK: Moves

  /// Follows a move of the presented item and reports it to the program; also reports the move of
  /// an item within a presented folder.
  func move(_ move: PresenterMove) {
    // The sender may be another user.
    guard let from = AccessPath(plain: move.from), let to = AccessPath(plain: move.to) else {
      return
    }
    let own = presented.withLock { presented -> (from: AccessPath, to: AccessPath)? in
      guard let own = presented.paths.first, let new = own.moved(from: from, to: to) else {
        return nil
      }
      follow(&presented, from, to, but: Set(move.inside))
      return (own, new)
    }
    guard move.tells else { return }
    if let own {
      if let moved = calls.didMove {
        call {
          moved(
            .init(from: own.from.text, to: own.to.text, oldRelativePath: nil, newRelativePath: nil))
        }
      }
      // Another access may have written at the new path before this presenter was registered there.
      noteChange(ownPath ?? own.to.text, isNew: false)
    } else if let moved = calls.didMove, let below = below(from.text) {
      let nowBelow = self.below(to.text)
      call {
        moved(
          .init(from: from.text, to: to.text, oldRelativePath: below, newRelativePath: nowBelow))
      }
    } else {
      noteChange(from.text, isNew: false)
      if below(to.text) != nil { noteChange(to.text, isNew: true) }
    }
  }

  private func follow(
    _ presented: inout Presented, _ from: AccessPath, _ to: AccessPath, but known: Set<String>
  ) {
    presented.paths = presented.paths.map { $0.moved(from: from, to: to) ?? $0 }
    showAnew(&presented, but: known)
  }

  private func showAnew(_ presented: inout Presented, but known: Set<String> = []) {
    do throws(WormholeError) {
      // Register before unregistering: both paths have the presenter for a moment, and no moment
      // has none.
      let places = try show(presented.paths, but: known)
      hide(presented.places)
      let asked = state.withLock { Array($0.holds.keys) + Array($0.answers.keys) }
      let isOver: (Place) -> Bool = { place in
        !asked.contains { $0.guest == place.desk.address && $0.presenter == place.name.number }
      }
      forget(presented.left.filter(isOver))
      presented.left.removeAll(where: isOver)
      presented.left += presented.places
      (presented.places, presented.isLate) = (places, false)
    } catch {
      presented.places.first?.room.container.log(.warning, error)
      presented.isLate = true
      worker.retry()
    }
  }

  /// Retries the registration at the new path.
  ///
  /// Until success, no access asks the presenter there.
  private func showLate() {
    let path = presented.withLock { presented -> String? in
      // The presenter may have ended, or the item may have been moved again.
      guard presented.isLate else { return nil }
      showAnew(&presented)
      return presented.isLate ? nil : presented.paths.last?.text
    }
    // Writers at the new path before the registration have not notified this presenter.
    if let path { noteChange(path, isNew: false) }
  }

  // MARK: Dead processes

  private func look() {
    showLate()
    let (holds, awaited) = state.withLock { ($0.holds, $0.awaited) }
    let lost = holds.filter {
      !Mutants.has(.trustAskers) && !$0.value.room.lives($0.value.process)
    }
    for (asking, hold) in lost {
      resume(asking)
      if hold.writes, let path = ownPath { noteChange(path, isNew: false) }
    }
    let ended = awaited.filter { !$0.room.isUnderWay($0.name) }.map(\.name)
    if !ended.isEmpty, let path = ownPath { noteChange(path, isNew: false) }
    let goesOn = state.withLock { state in
      state.awaited.removeAll { ended.contains($0.name) }
      return !(state.holds.isEmpty && state.awaited.isEmpty)
    }
    if goesOn { worker.retry() }
  }
}
