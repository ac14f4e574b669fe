internal import WormholeSyscalls

/// Renews the heartbeats of long tenures, so that waiters do not take a slow holder for suspended.
///
/// All containers of a process on a file system share a table and its thread: see ``keeper(of:)``.
/// There is a single thread, and it only runs while the process runs: the heartbeat proves exactly
/// that. A tenure that ends within a quarter of its lease, as nearly all do, costs an entry in a
/// table and no system call. The thread rests if there was no tenure for a second. It ends after
/// ten seconds of rest, or at once when the last container of the file system is released.
final class LeaseKeeper: Service {

  private struct Tenure {
    let number: Int
    let file: CInt
    var mark: HolderMark
    let step: Int64
    var due: Instant
    /// Running time left before renewing ends.
    ///
    /// Time during which the process was suspended does not count: the process did nothing then.
    var left: Int64
    var isCapped = false
  }

  private struct State {
    var tenures: [Tenure] = []
    var nextNumber = 0
    var hasThread = false
    /// The time of the thread's next check; nil while the thread rests.
    var nextLook: Instant?
    var lastUse = Instant(nanoseconds: 0)
    /// How many keepers refer to this state: one for each container.
    var keepers = 0
    var isOver: Bool { keepers == 0 }
  }

  private static let startThread:
    @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void = {
      body throws(Errno) in
      try Thread("wormhole-lease", body).detach()
    }

  private let monitor: Monitor<State>
  private let hire: @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void

  /// - Parameter hire: starts a thread, which ends automatically.
  convenience init(
    hire: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void =
      startThread
  ) {
    self.init(Monitor(State()), hire: hire)
  }

  private init(
    _ monitor: Monitor<State>,
    hire: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void
  ) {
    self.monitor = monitor
    self.hire = hire
    monitor.withLock { $0.keepers += 1 }
  }

  deinit {
    // The thread retains only the monitor.
    monitor.signal { $0.keepers -= 1 }
  }

  /// Returns a keeper for a container on a file system.
  ///
  /// Each file system has its own thread, because a write to a file system that does not respond
  /// must not delay heartbeats on another.
  static func keeper(of device: UInt64) -> LeaseKeeper {
    Mutants.has(.keeperEach) ? LeaseKeeper() : keepers.current.keeper(of: device)
  }

  /// Whether both have the same thread.
  func shares(with other: LeaseKeeper) -> Bool { monitor === other.monitor }

  private static let keepers = OneForEachProcess { Keepers() }

  private final class Keepers: Sendable {
    /// The state of each file system.
    ///
    /// The thread may not have noticed yet that the last keeper was released when the next
    /// container is opened. The thread then continues, and no second thread is started.
    private let known = Monitor<[UInt64: Monitor<State>]>([:])

    func keeper(of device: UInt64) -> LeaseKeeper {
      known.withLock { known in
        if let monitor = known[device] {
          return LeaseKeeper(monitor, hire: LeaseKeeper.startThread)
        }
        // A device number may never come again.
        known = known.filter { $0.value.withLock { !$0.isOver || $0.hasThread } }
        let monitor = Monitor(State())
        known[device] = monitor
        return LeaseKeeper(monitor, hire: LeaseKeeper.startThread)
      }
    }
  }

  /// How long the thread rests before it ends: making a thread takes longer than a short update.
  private static let rest = Duration.seconds(10)

  /// Renews the mark after a quarter of the lease, until the tenure ends or the cap is reached.
  ///
  /// The file must stay open until ``end(_:)``.
  ///
  /// Both times are nanoseconds: durations have 128 bits, and computing with them takes as long as
  /// the entry.
  ///
  /// - Throws: for a tenure without a cap, if no thread can be made: work in such a tenure is never
  ///   run again, so no waiter may take the holder for suspended.
  func begin(
    _ mark: HolderMark, in file: borrowing Descriptor, lease: Int64, cap: Int64?,
    at now: Instant
  ) throws(Errno) -> Int {
    let descriptor = file.rawValue
    let step = max(1_000_000, lease / 8)
    let look = now.nanoseconds + step
    return try monitor.withLock { state throws(Errno) in
      state.nextNumber += 1
      state.tenures.append(
        Tenure(
          number: state.nextNumber, file: descriptor, mark: mark, step: step,
          due: Instant(nanoseconds: now.nanoseconds + lease / 4), left: cap ?? .max))
      state.lastUse = now
      if let next = state.nextLook, next.nanoseconds <= look + step { return state.nextNumber }
      if let failure = wake(&state, at: Instant(nanoseconds: look)), cap == nil {
        state.tenures.removeLast()
        throw failure
      }
      return state.nextNumber
    }
  }

  /// Stops renewing; true if the cap had been reached.
  func end(_ number: Int) -> Bool {
    monitor.withLock { state in
      guard let index = state.tenures.firstIndex(where: { $0.number == number }) else {
        return false
      }
      return state.tenures.remove(at: index).isCapped
    }
  }

  /// - Returns: why there is no thread.
  private func wake(_ state: inout State, at look: Instant) -> Errno? {
    state.nextLook = look
    if state.hasThread {
      monitor.broadcast()
      return nil
    }
    // Without a thread the mark is not renewed, and a long update may be superseded and run again.
    // The next tenure tries to start a thread.
    let failure = Errno.of { () throws(Errno) in try hire { [monitor] in Self.run(monitor) } }
    state.hasThread = failure == nil
    if !state.hasThread { state.nextLook = nil }
    return failure
  }

  private enum Turn {
    case look(Instant)
    case end
  }

  private static func run(_ monitor: Monitor<State>) {
    while true {
      // Waits in a loop: an entry with a short lease brings the next check forward.
      let turn = monitor.wait(until: .now + rest) { state -> Turn? in
        state.isOver ? .end : state.nextLook.map { .look($0) }
      }
      guard case .look(let next)? = turn else {
        let ends = monitor.withLock { state in
          if state.isOver { state.nextLook = nil }
          state.hasThread = state.nextLook != nil
          return !state.hasThread
        }
        if ends { return }
        continue
      }
      let early = monitor.wait(until: next) { state -> Bool? in
        state.isOver || (state.nextLook ?? next) < next ? true : nil
      }
      if early == nil { look(monitor) }
    }
  }

  private static func look(_ monitor: Monitor<State>) {
    monitor.withLock { state in
      let now = Instant.now
      var shortest = Int64.max
      for index in state.tenures.indices {
        renew(&state.tenures[index], at: now)
        shortest = min(shortest, state.tenures[index].step)
      }
      if !state.tenures.isEmpty {
        state.lastUse = now
        state.nextLook = now + .nanoseconds(shortest)
      } else {
        let rests = now - state.lastUse > .seconds(1)
        state.nextLook = rests ? nil : now + .milliseconds(100)
      }
    }
  }

  private static func renew(_ tenure: inout Tenure, at now: Instant) {
    guard now >= tenure.due, !tenure.isCapped else { return }
    tenure.due = now + .nanoseconds(tenure.step)
    tenure.left -= tenure.step
    guard tenure.left > 0 else {
      tenure.isCapped = true
      return
    }
    tenure.mark.renewals += 1
    // If the write fails, waiters see no change, and at worst the update runs again.
    try? tenure.mark.write(toOpen: tenure.file)
  }
}

extension Container {
  var leases: LeaseKeeper { services.get { .keeper(of: identity.device) } }
}
