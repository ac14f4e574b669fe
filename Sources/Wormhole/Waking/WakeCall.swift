internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The wait of a process for a member to be woken.
///
/// A process that finds no start in progress writes a record, under a lock, and then starts the
/// program. The other processes wait until the member has joined, or the record contains a failure.
/// No process depends on the starter: if the starter is killed or suspended between the record and
/// the start, another process starts the program a little later.
///
/// For a member of another machine, a carrier takes the record, and its machine starts the program.
final class WakeCall: Sendable {
  private let container: SharedContainer
  private let name: String
  private let timeout: Duration
  private let deadline: Instant
  private let begun: Int64
  /// The incarnation that had joined last when the wait began.
  private let before: String?
  /// Whether the member is present already.
  let isPresent: Bool
  /// The machine that starts the program; nil for this one.
  private let machine: String?
  private let changes = Monitor(0)
  private let cancellation = CancellationFlag()

  init(_ peer: Peer, _ timeout: Duration) throws(WormholeError) {
    container = peer.container
    name = peer.name
    self.timeout = timeout
    deadline = .now + timeout
    begun = peer.container.options.environment.sinceBoot()
    // In this order: if a process takes the free name, it writes its profile after this read.
    let home = try container.storage.existingMember(name)
    before = try naming("wake", peer.name, home?.readProfile().profile?.incarnation.rawValue)
    isPresent = try naming("wake", peer.name, home?.isPresentStill() ?? false)
    machine = isPresent ? nil : try Self.machine(home, in: container.storage)
  }

  /// The machine that a carrier can ask to start the program; nil for a member of this machine.
  private static func machine(
    _ home: MemberDirectory?, in storage: Container
  ) throws(WormholeError) -> String? {
    do throws(Errno) {
      if let machine = try home?.elsewhere?.machine, try storage.isCarried { return machine }
    } catch {
      throw WormholeError(error, "wake", home?.name ?? "")
    }
    try home?.checkHome("wake", .unreachable, hint: "start the bridge, or the program there")
    return nil
  }

  func cancel() {
    cancellation.cancel()
    changes.signal { $0 += 1 }
  }

  /// Waits until the member has joined, on the calling thread.
  func run() throws(WormholeError) {
    if isPresent { return }
    let start = try machine == nil ? registered() : nil
    let slot = try WakeRecord.slot(of: name, in: container.storage)
    let changes = changes
    let presence = try container.storage.watchPresence(of: name) { _ in changes.signal { $0 += 1 } }
    defer { presence.stop() }
    let watch = try onRecord { try slot.watch { changes.signal { $0 += 1 } } }
    defer { watch.stop() }
    while true {
      let seen = changes.withLock { $0 }
      switch try look(start, slot) {
      case .joined: return
      case .mine(let record): if let start { try launch(start, record) }
      case .others(let pause, let record):
        try checkTime(record)
        let _: Void? = changes.wait(until: min(deadline, .now + pause)) { $0 == seen ? nil : () }
      }
    }
  }

  private func registered() throws(WormholeError) -> MemberStart {
    let start = try container.storage.existingMember(name)?.readStart("wake")
    guard let start else {
      throw WormholeError(
        .notFound, "wake", name, because: "no launch command is registered",
        hint: "register a launch command with 'registerLaunch' or "
          + "'wormhole wake \(name.shellWord) --register'")
    }
    return start
  }

  private func checkTime(_ record: WakeRecord?) throws(WormholeError) {
    if cancellation.isCancelled {
      throw WormholeError(.cancelled, "wake", name, because: "the task was cancelled")
    }
    guard Instant.now >= deadline else { return }
    let what = record?.whatRuns ?? "no process has started the program"
    throw WormholeError(
      .timedOut, "wake", name, because: "\(what), and no process has joined within \(timeout)",
      hint: "check the program's log, and whether the program joins as '\(name)'")
  }

  // MARK: Turns

  private enum Turn {
    case joined
    case mine(WakeRecord)
    case others(Duration, WakeRecord?)
  }

  /// Reads without the lock first: among many waiting processes, most have nothing to change.
  private func look(_ start: MemberStart?, _ slot: Slot) throws(WormholeError) -> Turn {
    let content = try onRecord { try slot.read() }
    let turn = try turn(content, start)
    guard case .mine = turn else { return turn }
    let record = WakeRecord(content)
    try checkTime(record?.failure == nil ? nil : record)
    var taken = turn
    try onRecord {
      try slot.change("wake", patience: Patience(until: deadline, cancellation: cancellation)) {
        taken = try self.turn($0, start)
        guard case .mine(let record) = taken else { return .none }
        return .put(try record.encoded())
      }
    }
    return taken
  }

  /// The record was read before the member's presence.
  ///
  /// So a start with a success in between does not count as an old start.
  private func turn(_ content: Slot.Content, _ start: MemberStart?) throws(WormholeError) -> Turn {
    let sighting = try FoundMember(name, in: container.storage)
    let incarnation = sighting.found.profile?.incarnation.rawValue
    if incarnation != before, incarnation != nil { return .joined }
    let record = WakeRecord(content)
    // A process is joining at this very moment.
    if sighting.isPresent { return .others(.milliseconds(50), record) }
    let environment = container.options.environment
    let program = start?.program ?? machine ?? ""
    let verdict =
      record?.verdict(
        incarnation, program, begun: begun, now: environment.sinceBoot(),
        grace: container.options.wakeGrace) ?? .start
    switch verdict {
    case .wait(let pause): return .others(pause, record)
    case .failed(let reason): throw failed(reason)
    case .start:
      return .mine(
        WakeRecord(
          id: environment.randomName(), started: environment.sinceBoot(),
          by: container.options.writerName,
          program: program, machine: machine, before: incarnation,
          failed: record?.failures(incarnation, program) ?? 0))
    }
  }

  private func failed(_ reason: String) -> WormholeError {
    WormholeError(
      .unreachable, "wake", name, because: reason,
      hint: "check the launch command with 'wormhole wake \(name.shellWord) --show'")
  }

  /// Gives errors of the record the name that the caller knows, in place of the slot's name.
  @discardableResult
  private func onRecord<Result>(_ body: () throws -> Result) throws(WormholeError) -> Result {
    do {
      return try body()
    } catch {
      throw WormholeError(error, "wake", name, otherwise: .system).named(name, "wake")
    }
  }

  // MARK: Starting

  private func launch(_ start: MemberStart, _ record: WakeRecord) throws(WormholeError) {
    let environment = container.options.environment
    // If this process was suspended since, another process may have started the program again.
    guard .nanoseconds(environment.sinceBoot() - record.started) < container.options.wakeGrace
    else {
      return
    }
    let attempt = StartAttempt(name, container.storage, record)
    let child: Child
    do throws(Errno) {
      child = try attempt.spawn(start, in: container.storage)
    } catch {
      let reason = "the program '\(start.program)' could not be started: \(error)"
      attempt.fail(reason)
      throw failed(reason)
    }
    container.log(
      .info, "started '\(start.program)' (process \(child.process)) to wake '\(name)'",
      about: LogSubject(member: name))
    attempt.note(child)
  }
}

/// A start of a member's program by this process, which is notified of the program's end.
final class StartAttempt: Sendable {
  private let name: String
  /// The program may run for a long time, and must not keep the container open.
  private weak let storage: Container?
  private let record: WakeRecord

  init(_ name: String, _ storage: Container, _ record: WakeRecord) {
    self.name = name
    self.storage = storage
    self.record = record
  }

  /// Starts the program, and a thread that waits for its end.
  func spawn(_ start: MemberStart, in storage: Container) throws(Errno) -> Child {
    let given = Monitor<Child??>(nil)
    // The thread is started before the child, which would have no waiter if no thread could be
    // started.
    try Thread("wormhole-child") {
      guard let child = given.wait(until: nil, { $0 }), let child else { return }
      self.end(try? child.wait())
    }.detach()
    do throws(Errno) {
      let child = try Child.spawnAlone(
        start.program, start.arguments, environment: Self.environment(start, storage),
        directory: start.directory ?? "/")
      given.signal { $0 = .some(child) }
      return child
    } catch {
      given.signal { $0 = .some(nil) }
      throw error
    }
  }

  private static func environment(_ start: MemberStart, _ storage: Container) -> [[CChar]] {
    var settings = start.environment
    settings["WORMHOLE_CONTAINER"] = storage.absolutePath
    // Both variables together would be a contradiction.
    return Processes.environment(
      setting: settings.map { "\($0)=\($1)" }, without: ["WORMHOLE_GROUP"])
  }

  /// Records the child: while the child runs, no process starts the program again.
  func note(_ child: Child) {
    change { record in
      record.process = child.process
      record.namespace = ProcessIdentity.current.namespace
      record.ticks = ProcessStatus(of: child.process)?.started
    }
  }

  /// Records the end of the program, unless the program has joined before.
  func end(_ status: ChildStatus?) {
    guard let storage else { return }
    let incarnation: String?
    do throws(WormholeError) {
      incarnation = try FoundMember(name, in: storage).found.profile?.incarnation.rawValue
    } catch {
      // The program may have joined. The waiting processes check that, and find the process gone.
      return storage.log(.warning, error, about: LogSubject(member: name))
    }
    guard incarnation == record.before else { return }
    let how =
      switch status {
      case .exited(let code): "the program ended with exit code \(code)"
      case .signalled(let signal): "the program was ended by signal \(signal)"
      case nil: "the program ended"
      }
    fail("\(how) before joining as '\(name)'")
  }

  func fail(_ reason: String) {
    guard let storage else { return }
    let now = storage.options.environment.sinceBoot()
    change { record in
      record.failure = reason
      record.ended = now
    }
  }

  private func change(_ body: (inout WakeRecord) -> Void) {
    guard let storage else { return }
    do {
      let slot = try WakeRecord.slot(of: name, in: storage)
      // If the change fails, the waiting processes discover the state at their next check.
      try WakeRecord.change(slot, record.id, Patience(within: .seconds(10)), body)
    } catch {
      storage.log(.error, "\(error)", about: LogSubject(member: name), because: error)
    }
  }
}
