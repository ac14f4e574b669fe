internal import WormholeContainerStorage
internal import WormholeSyscalls

/// One presenter: performs the actions of its ``PresenterMachine``.
final class PresentedFile: Stoppable {
  private typealias Machine = PresenterMachine<
    @Sendable (_ holdsOff: Bool) -> Void, @Sendable () -> Void
  >

  private struct Place {
    let room: AccessDirectory
    let desk: PresenterEndpoint
    let name: PresenterName
    var registration: Machine.Registration { .init(guest: desk.address, number: name.number) }
  }

  private let calls: Coordinator.Presenter
  private let purpose: String
  private let perform: @Sendable (@escaping @Sendable () -> Void) -> Void
  private let arbiters: Arbiters
  private let gate = CallGate()
  /// One for each presenter, because it calls file systems that may never return.
  private let worker = Worker(staysOffWatcher: true)
  private let machine: Monitor<Machine>
  /// The registrations that are not forgotten; one registration at a time.
  private let places = Monitor<[Machine.Registration: Place]>([:])

  init(
    _ calls: Coordinator.Presenter, purpose: String, _ arbiters: Arbiters,
    _ perform: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) {
    self.calls = calls
    self.purpose = purpose
    self.arbiters = arbiters
    self.perform = perform
    var closures: Set<Machine.Closure> = []
    if calls.relinquish != nil { closures.insert(.relinquish) }
    if calls.save != nil { closures.insert(.save) }
    if calls.delete != nil { closures.insert(.delete) }
    if calls.deleteBelow != nil { closures.insert(.deleteBelow) }
    if calls.didMove != nil { closures.insert(.didMove) }
    machine = Monitor(Machine(closures))
    worker.begin { [weak self] in self?.look() }
  }

  /// Tells the machine of an event, and performs the actions that follow.
  private func advance(_ event: (inout Machine) -> [Machine.Action]) {
    for action in machine.withLock(event) { act(action) }
  }

  private func act(_ action: Machine.Action) {
    switch action {
    case .call(let step, let access): call(step, for: access)
    case .answer(let reply, let holdsOff): reply(holdsOff)
    case .resume(let resume): call(resume)
    case .report(let path):
      call { [self] in
        if let change = machine.withLock({ $0.takeChange(path) }) { calls.didChange(change) }
      }
    case .reportMove(let move):
      if let moved = calls.didMove { call { moved(move) } }
    case .register(let known): registerAnew(but: known)
    case .hide(let hidden):
      let hidden = places.withLock { places in hidden.compactMap { places[$0] } }
      for place in hidden { place.room.unpresent(place.name) }
    case .forget(let forgotten):
      let forgotten = places.withLock { places in
        forgotten.compactMap { places.removeValue(forKey: $0) }
      }
      for place in forgotten { place.desk.remove(place.name.number) }
    case .lookLater: worker.retry()
    }
  }

  private func call(_ body: @escaping @Sendable () -> Void) {
    perform { [gate] in gate.call { PresenterCallMark(isAwaited: false).run(body) } }
  }

  /// Calls a closure that reports its completion.
  private func call(_ step: Machine.Step, for access: Machine.PresenterAccess) {
    perform { [self] in
      let call = PresenterCallMark(isAwaited: true)
      let end: @Sendable ((@Sendable () -> Void)?) -> Void = { [self] resume in
        if call.end() { advance { $0.completed(access, resume: resume) } }
      }
      let done: @Sendable () -> Void = { end(nil) }
      gate.call {
        call.run {
          if let instead = machine.withLock({ $0.skips(step, for: access) }) {
            return instead.forEach(act)
          }
          switch step {
          case .relinquish(let use): calls.relinquish?(use, end)
          case .save: calls.save?(done)
          case .delete: calls.delete?(done)
          case .deleteBelow(let path): calls.deleteBelow?(path, done)
          }
        }
      }
    }
  }

  // MARK: Registration

  /// Registers the presenter.
  func begin(at paths: [AccessPath]) throws(WormholeError) -> Subscription {
    machine.withLock { $0.begin(at: paths) }
    do throws(WormholeError) {
      try register(but: [])
      let places = places.withLock { Array($0.values) }
      // Opening a coordination directory removes the accesses of dead writers; report their
      // changes.
      for place in places { PresenterInquiry([], but: []).tellOfBuried(in: place.room) }
      guard let container = places.first?.desk.container else {
        preconditionFailure("every path has its room")
      }
      return try container.subscriptions.keep(self)
    } catch {
      end()
      throw error
    }
  }

  private func registerAnew(but known: Set<String>) {
    do throws(WormholeError) {
      try register(but: known)
    } catch {
      let place = places.withLock { $0.values.first }
      place?.room.container.log(.warning, error)
    }
  }

  /// Registers the presenter at its present paths: if an item moves twice, the last registration
  /// has the last path.
  ///
  /// - Parameter known: the names of accesses whose ends need no waiting.
  private func register(but known: Set<String>) throws(WormholeError) {
    let (actions, failure) = places.withLock { places -> ([Machine.Action], WormholeError?) in
      let (paths, isStopped) = machine.withLock { ($0.paths, $0.isStopped) }
      guard !isStopped else { return ([], nil) }
      var (new, writers) = ([Machine.Registration](), Set<Machine.AwaitedWriter>())
      do throws(WormholeError) {
        for (room, paths) in try rooms(of: paths) {
          let place = try show(paths, in: room)
          places[place.registration] = place
          new.append(place.registration)
          // After the registration, every arriving writer notifies the presenter, and so does every
          // access that ends. The presenter itself checks whether these writers die.
          for name in try self.writers(of: paths, in: room) where !known.contains(name.text) {
            writers.insert(.init(registration: place.registration, name: name))
          }
        }
      } catch {
        return (machine.withLock { $0.registrationFailed(after: new) }, error)
      }
      return (machine.withLock { $0.registered(new, writers: writers) }, nil)
    }
    actions.forEach(act)
    if let failure { throw failure }
  }

  /// Returns the accesses that write any of the paths.
  ///
  /// If the system refuses for now, the registration is to be tried again: without the names, the
  /// presenter would not notice the death of a writer.
  private func writers(
    of paths: [AccessPath], in room: AccessDirectory
  ) throws(WormholeError) -> Set<AccessName> {
    do throws(Errno) {
      return try room.writers(of: paths, but: purpose)
    } catch {
      let failure = WormholeError(error, "list the accesses in", room.container.path)
      guard failure.mayPass else { return [] }
      throw failure
    }
  }

  /// Returns the containers that order any of the paths, each with its paths.
  private func rooms(
    of paths: [AccessPath]
  ) throws(WormholeError) -> [(room: AccessDirectory, paths: [AccessPath])] {
    var rooms: [String: (room: AccessDirectory, paths: [AccessPath])] = [:]
    for path in paths {
      let room = try arbiters.room(for: path)
      rooms[room.key, default: (room, [])].paths.append(path)
    }
    return rooms.sorted { $0.key < $1.key }.map(\.value)
  }

  private func show(
    _ paths: [AccessPath], in room: AccessDirectory
  ) throws(WormholeError) -> Place {
    let desk = try PresenterEndpoint.of(room)
    let entry = PresenterEntry(
      paths, purpose: purpose, guest: desk.address, mindsReaders: calls.mindsReaders)
    var number: Int?
    do throws(WormholeError) {
      let name = try room.present(entry) { name in
        number = name.number
        desk.add(self, name.number)
      }
      return Place(room: room, desk: desk, name: name)
    } catch {
      if let number { desk.remove(number) }
      throw error
    }
  }

  var callGate: CallGate? { gate }

  func stop() {
    guard places.withLock({ $0.values.first?.room.container.isOwned ?? true }) else { return }
    end()
    gate.drain()
  }

  func end() {
    gate.close()
    worker.end()
    advance { $0.end() }
  }

  // MARK: Accesses

  /// - Parameters:
  ///   - guest: the receiving guest.
  ///   - answer: called once, with whether the presenter needs a notice when the access is over.
  func ask(
    _ question: PresenterQuestion, as guest: String,
    _ answer: @escaping @Sendable (_ holdsOff: Bool) -> Void
  ) {
    advance { $0.ask(question, as: guest, answer) }
  }

  func tell(_ news: PresenterNews, as guest: String) { advance { $0.tell(news, as: guest) } }

  func move(_ move: PresenterMove) { advance { $0.move(move) } }

  // MARK: Dead processes

  private func look() {
    if machine.withLock({ $0.isLate }) { registerAnew(but: []) }
    let places = places.withLock { $0 }
    let (held, awaited) = machine.withLock { ($0.held, $0.awaited) }
    let lost = held.filter { access, process in
      !Mutants.has(.trustAskers) && places[access.registration]?.room.lives(process) == false
    }
    let ended = awaited.filter { places[$0.registration]?.room.isUnderWay($0.name) == false }
    advance { $0.looked(lost: Array(lost.keys), ended: ended) }
  }
}
