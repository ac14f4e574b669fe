internal import SharedContainer
internal import Syscalls

/// Threads that wait for tasks: as many as are needed at once, up to a bound, and gone after a
/// while.
final class CallThreads: Sendable {
  /// For calls that may wait long.
  static let waiting = CallThreads(most: 64)
  /// For locks that tasks hold: as many as there are, since what they do while they hold them may
  /// need one of the others.
  static let holding = CallThreads(most: 4096)
  /// For calls that wait for nobody, and must not stand behind those that do.
  static let quick = CallThreads(most: 8)

  private struct State {
    var calls: [Action] = []
    /// How many of them have been taken.
    var taken = 0
    var idle = 0
    var threads = 0

    var left: Int { calls.count - taken }

    mutating func take() -> Action? {
      guard left > 0 else { return nil }
      let call = calls[taken]
      taken += 1
      if taken == calls.count {
        calls.removeAll(keepingCapacity: taken <= 64)
        taken = 0
      }
      return call
    }
  }

  private let state = Monitor(State())
  private let most: Int

  private init(most: Int) { self.most = most }

  /// Has a call made on one of them.
  func add(_ call: @escaping @Sendable () -> Void) {
    let needsThread = state.signal { state in
      state.calls.append(Action(call))
      guard state.left > state.idle, state.threads < most else { return false }
      state.threads += 1
      return true
    }
    guard needsThread else { return }
    do throws(Errno) {
      try Thread("wormhole-call") { self.work() }.detach()
    } catch {
      // Out of threads: those that there are make it, or else this one, whoever waits for that.
      let own = state.withLock { state in
        state.threads -= 1
        return state.threads == 0 ? state.take() : nil
      }
      own?.perform()
    }
  }

  private func work() {
    while let call = next() { call.perform() }
  }

  private func next() -> Action? {
    let now = state.withLock { state -> Action? in
      if let call = state.take() { return call }
      state.idle += 1
      return nil
    }
    if let now { return now }
    let call = state.wait(until: .now + .seconds(1)) { state -> Action? in
      guard let call = state.take() else { return nil }
      // Here, as whoever comes next must not count on this thread.
      state.idle -= 1
      return call
    }
    if let call { return call }
    return state.withLock { state in
      state.idle -= 1
      // One may have come since patience ended.
      if let call = state.take() { return call }
      state.threads -= 1
      return nil
    }
  }
}

/// Calls that would wait for each other: one after the other, on one thread.
///
/// However many tasks wait for a lock, one thread does.
final class CallLanes: Sendable {
  static let waiting = CallLanes(.waiting)
  static let holding = CallLanes(.holding)

  /// What waits in each lane that is in use.
  private let lanes = Monitor<[ObjectIdentifier: [Action]]>([:])

  private let threads: CallThreads

  private init(_ threads: CallThreads) { self.threads = threads }

  /// Has a call made once it is its turn; whether it is that at once.
  func add(_ lane: ObjectIdentifier, _ call: @escaping @Sendable () -> Void) -> Bool {
    let isFirst = lanes.withLock { lanes in
      if lanes[lane] != nil {
        lanes[lane]?.append(Action(call))
        return false
      }
      lanes[lane] = []
      return true
    }
    guard isFirst else { return false }
    threads.add {
      call()
      while let next = self.next(lane) { next.perform() }
    }
    return true
  }

  private func next(_ lane: ObjectIdentifier) -> Action? {
    lanes.withLock { lanes in
      if lanes[lane]?.isEmpty != false {
        lanes[lane] = nil
        return nil
      }
      return lanes[lane]?.removeFirst()
    }
  }
}
