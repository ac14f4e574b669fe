internal import Syscalls

/// Renews the marks of tenures that last, so that a slow holder is not taken for a suspended one.
///
/// One thread a container, as a file system that has got stuck is to hold up no other's. It runs
/// only when the process runs, which is just what the mark is to say. A tenure that ends within a
/// quarter of its lease, as nearly all do, costs an entry in a table and no system call; the thread
/// rests when there has been none for a second, and ends when it has rested for long.
final class LeaseKeeper: Sendable {

  private struct Tenure {
    let number: Int
    let file: CInt
    var mark: HolderMark
    let step: Int64
    var due: Instant
    /// Running time left before renewing ends.
    ///
    /// Time in which the process was stopped is not
    /// counted: what it did then it does not answer for.
    var left: Int64
    var isCapped = false
  }

  private struct State {
    var tenures: [Tenure] = []
    var nextNumber = 0
    var hasThread = false
    /// When the thread looks next; nil while it rests.
    var nextLook: Instant?
    var lastUse = Instant(nanoseconds: 0)
  }

  private let monitor = Monitor(State())
  private let hire: @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void

  /// - Parameter hire: starts a thread, which ends by itself.
  init(
    hire: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void = {
      body throws(Errno) in
      try Thread("wormhole-lease", body).detach()
    }
  ) {
    self.hire = hire
  }

  /// How long the thread rests before it ends: making one takes longer than a short update.
  private static let rest = Duration.seconds(10)

  /// Renews the mark from a quarter of the lease on, until it is ended or the cap is reached.
  ///
  /// The file must stay open until ``end(_:)``.
  ///
  /// - Throws: for a tenure without a cap, where no thread can be had: nothing that is done in it
  ///   is run again, so nobody may take it for one that stands still.
  func begin(
    _ mark: HolderMark, in file: borrowing Descriptor, lease: Duration, cap: Duration?,
    at now: Instant
  ) throws(Errno) -> Int {
    let descriptor = file.rawValue
    // Durations have 128 bits, and dividing those takes as long as the entry.
    let lease = lease.inNanoseconds
    let step = max(1_000_000, lease / 8)
    let look = now.nanoseconds + step
    return try monitor.withLock { state throws(Errno) in
      state.nextNumber += 1
      state.tenures.append(
        Tenure(
          number: state.nextNumber, file: descriptor, mark: mark, step: step,
          due: Instant(nanoseconds: now.nanoseconds + lease / 4), left: cap?.inNanoseconds ?? .max))
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
    // Without a thread the mark is not renewed, and a long update may be superseded: it runs again.
    // The next tenure tries again.
    let failure = Errno.of { () throws(Errno) in try hire { self.run() } }
    state.hasThread = failure == nil
    if !state.hasThread { state.nextLook = nil }
    return failure
  }

  private func run() {
    while true {
      // Asked for again and again: an entry with a short lease brings the next look forward.
      let next = monitor.wait(until: .now + Self.rest) { $0.nextLook }
      guard let next else {
        let ends = monitor.withLock { state in
          state.hasThread = state.nextLook != nil
          return !state.hasThread
        }
        if ends { return }
        continue
      }
      let early = monitor.wait(until: next) { state -> Bool? in
        (state.nextLook ?? next) < next ? true : nil
      }
      if early == nil { look() }
    }
  }

  private func look() {
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

  private func renew(_ tenure: inout Tenure, at now: Instant) {
    guard now >= tenure.due, !tenure.isCapped else { return }
    tenure.due = now + .nanoseconds(tenure.step)
    tenure.left -= tenure.step
    guard tenure.left > 0 else {
      tenure.isCapped = true
      return
    }
    tenure.mark.renewals += 1
    // If it fails, waiters see it stand still, and at worst the update runs again.
    try? tenure.mark.write(toOpen: tenure.file)
  }
}
