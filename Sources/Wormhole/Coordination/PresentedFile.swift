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

  /// What an access asks it, under one of the names that it has: each container that orders some of
  /// its paths knows it by one.
  private struct Asking: Hashable {
    /// As which guest it was asked.
    let guest: String
    let presenter: Int
    let access: String
  }

  private struct State {
    var holds: [Asking: Hold] = [:]
    /// What it has not answered: also for accesses that are over meanwhile, as whoever does not
    /// answer is not waited for again.
    var answers: [Asking: @Sendable (_ holdsOff: Bool) -> Void] = [:]
    /// Accesses that may have written before it was there, and that nobody tells of if they die.
    var awaited: [(room: AccessRoom, name: AccessName)] = []
    var isLooking = false
    var isStopped = false
    /// What is still to be told, by path; a call for it is on its way.
    var changes: [AccessPath: Bool] = [:]
  }

  /// Where others find it.
  private struct Place {
    let room: AccessRoom
    let desk: PresenterDesk
    let name: PresenterName
  }

  private struct Presented {
    /// As the caller named it, without links on the way to it; if that is a link, also what it
    /// leads to.
    var paths: [AccessPath] = []
    var places: [Place] = []
    /// Those from before it was moved, for accesses that asked it there and have not ended.
    var left: [Place] = []
    /// Whether it could not be shown yet where it was moved to.
    var isLate = false
  }

  private let calls: Wormhole.Coordinator.Presenter
  private let purpose: String
  private let perform: @Sendable (@escaping @Sendable () -> Void) -> Void
  private let arbiters: Arbiters
  private let gate = CallGate()
  /// Its own, as it asks file systems that may not answer.
  private let clock = DispatchQueue(label: "wormhole.presenter.clock")
  private let state = Monitor(State())
  private let presented = Monitor(Presented())
  /// How many changes are told one by one.
  private static let mostChanges = 1000

  init(
    _ calls: Wormhole.Coordinator.Presenter, purpose: String, _ arbiters: Arbiters,
    _ perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) {
    self.calls = calls
    self.purpose = purpose
    self.arbiters = arbiters
    self.perform = perform
  }

  // MARK: From its beginning to its end

  /// Shows it to others.
  func begin(at paths: [AccessPath]) throws(WormholeError) -> Wormhole.Subscription {
    // Who moves it meanwhile finds it, and waits until it is known what goes along.
    let places = try presented.withLock { (presented) throws(WormholeError) in
      presented = Presented(paths: paths, places: try show(paths))
      return presented.places
    }
    // To open a room removes what dead writers have left there.
    for place in places { PresenterRound([], but: []).tellOfBuried(in: place.room) }
    do throws(WormholeError) {
      guard let hole = places.first?.desk.hole else {
        preconditionFailure("every path has its room")
      }
      return try hole.begun.keep(self)
    } catch {
      end()
      throw error
    }
  }

  /// In each container that orders some of the paths; in all of them, or in none.
  ///
  /// - Parameter known: the names of accesses whose ends need not be waited for.
  private func show(
    _ paths: [AccessPath], but known: Set<String> = []
  ) throws(WormholeError) -> [Place] {
    var rooms: [String: (room: AccessRoom, paths: [AccessPath])] = [:]
    for path in paths {
      let room = try arbiters.room(for: path)
      rooms[room.key, default: (room, [])].paths.append(path)
    }
    var places: [Place] = []
    do throws(WormholeError) {
      for (room, paths) in rooms.sorted(by: { $0.key < $1.key }).map(\.value) {
        let desk = try PresenterDesk.of(room)
        let entry = PresenterEntry(
          paths, purpose: purpose, guest: desk.address, mindsReaders: calls.mindsReaders)
        let name = try show(entry, in: room, desk)
        places.append(Place(room: room, desk: desk, name: name))
        // After it is there: whoever comes to write from now on tells it, and so does whoever ends.
        // Those that die are looked after here.
        let writers = ((try? room.writers(of: paths, but: purpose)) ?? []).filter {
          !known.contains($0.text)
        }
        guard !writers.isEmpty else { continue }
        state.withLock { $0.awaited += writers.map { (room, $0) } }
        lookLater()
      }
    } catch {
      hide(places)
      forget(places)
      throw error
    }
    return places
  }

  private func show(
    _ entry: PresenterEntry, in room: AccessRoom, _ desk: PresenterDesk
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
    let answers = state.withLock { state in
      state.isStopped = true
      defer { (state.holds, state.answers) = ([:], [:]) }
      return Array(state.answers.values)
    }
    for answer in answers { answer(false) }
  }

  private func call(_ body: @escaping @Sendable () -> Void) {
    perform { [gate] in gate.call { PresenterCall(isAwaited: false).run(body) } }
  }

  /// Calls what says when it is done.
  private func callAndAwait(_ body: @escaping @Sendable (PresenterCall) -> Void) {
    perform { [gate] in
      let call = PresenterCall(isAwaited: true)
      gate.call { call.run { body(call) } }
    }
  }

  // MARK: Before an access

  /// - Parameters:
  ///   - guest: as which it was asked.
  ///   - answer: is called once, with whether it is to be told that the access is over.
  func ask(
    _ question: PresenterQuestion, as guest: String, in room: AccessRoom,
    _ answer: @escaping @Sendable (_ holdsOff: Bool) -> Void
  ) {
    let asking = Asking(
      guest: guest, presenter: question.presenter, access: question.access)
    let isOver = state.withLock { state in
      guard !state.isStopped else { return true }
      state.holds[asking] = Hold(
        room: room, process: question.process, writes: question.writes == true)
      state.answers[asking] = answer
      return false
    }
    guard !isOver else { return answer(false) }
    lookLater()
    guard let relinquish = calls.relinquish else { return prepare(question, asking) }
    callAndAwait { [self] call in
      relinquish(question.writes == true ? .writing : .reading) { [self] resume in
        guard call.end() else { return }
        holdOff(asking, resume)
        prepare(question, asking)
      }
    }
  }

  /// It holds off by now.
  private func holdOff(_ asking: Asking, _ resume: (@Sendable () -> Void)?) {
    let isOver = state.withLock { state in
      guard state.holds[asking] != nil else { return true }
      state.holds[asking]?.resume = resume
      return false
    }
    if isOver, let resume { call(resume) }
  }

  private func prepare(_ question: PresenterQuestion, _ asking: Asking) {
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
    _ steps: ArraySlice<@Sendable (@escaping @Sendable () -> Void) -> Void>, _ asking: Asking
  ) {
    guard let step = steps.first else { return finish(asking) }
    callAndAwait { [self] call in
      // It waits for nobody any more who is not there.
      guard state.withLock({ $0.holds[asking] != nil }) else { return finish(asking) }
      step { [self] in
        if call.end() { prepare(steps.dropFirst(), asking) }
      }
    }
  }

  private func finish(_ asking: Asking) {
    let (answer, holdsOff) = state.withLock { state in
      let hold = state.holds[asking]
      // If those who read die it does not matter when.
      let holdsOff = hold.map { $0.writes || $0.resume != nil } ?? false
      if !holdsOff { state.holds[asking] = nil }
      return (state.answers.removeValue(forKey: asking), holdsOff)
    }
    answer?(holdsOff)
  }

  // MARK: After it

  func tell(_ news: PresenterNews, as guest: String) {
    resume(Asking(guest: guest, presenter: news.presenter, access: news.access))
    let made = Set(news.made.map(AccessPath.init(_:)))
    for path in news.changed { noteChange(path, isNew: made.contains(AccessPath(path))) }
  }

  private func resume(_ asking: Asking) {
    let hold = state.withLock { $0.holds.removeValue(forKey: asking) }
    if let resume = hold?.resume { call(resume) }
  }

  private func noteChange(_ path: String, isNew: Bool) {
    let ownPath = ownPath ?? path
    let path = state.withLock { state -> AccessPath? in
      // Of too many, that there were some.
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
      calls.changed(.init(path: path.text, isNew: isNew, below: below(path.text)))
    }
  }

  private func below(_ path: String) -> String? {
    let path = AccessPath(path)
    let own = presented.withLock { $0.paths }
    // A link's target may lie in the folder that the link lies in.
    return own.contains(path) ? nil : own.last { $0.isAtOrAbove(path) }?.way(to: path)
  }

  private var ownPath: String? { presented.withLock { $0.paths.last?.text } }

  // MARK: Moves

  /// Goes along with what it presents, and tells of that, and of what is moved in a folder.
  func move(_ move: PresenterMove) {
    // Whoever sends it may be another user.
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
      if let moved = calls.moved {
        call { moved(.init(from: own.from.text, to: own.to.text, below: nil, nowBelow: nil)) }
      }
      // Somebody may have written there before it was there.
      noteChange(ownPath ?? own.to.text, isNew: false)
    } else if let moved = calls.moved, let below = below(from.text) {
      let nowBelow = self.below(to.text)
      call { moved(.init(from: from.text, to: to.text, below: below, nowBelow: nowBelow)) }
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
      // At both for a moment, and so never at none.
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
      showLater()
    }
  }

  /// Until it is shown where it was moved to nobody asks it there.
  private func showLater() {
    clock.soon(after: .seconds(1)) { [weak self] in
      guard let self else { return }
      let path = presented.withLock { presented -> String? in
        // It may have ended, or have gone further.
        guard presented.isLate else { return nil }
        showAnew(&presented)
        return presented.isLate ? nil : presented.paths.last?.text
      }
      // Whoever has written there meanwhile has not told it.
      if let path { noteChange(path, isNew: false) }
    }
  }

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
    clock.soon(after: .seconds(1)) { [weak self] in self?.look() }
  }

  private func look() {
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
      state.isLooking = !state.isStopped && !(state.holds.isEmpty && state.awaited.isEmpty)
      return state.isLooking
    }
    if goesOn { schedule() }
  }
}
