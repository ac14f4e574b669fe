internal import Syscalls

/// That something which goes on has ended, for those who wait for it.
final class Ending: Sendable {
  private struct State {
    var hasCome = false
    var reason: WormholeError?
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Monitor(State())

  /// - Parameter hasCome: whether there is nothing to wait for.
  init(hasCome: Bool = false) { state.withLock { $0.hasCome = hasCome } }

  /// Tells those who wait; the first reason counts.
  func come(_ reason: WormholeError?) {
    let waiters = state.withLock { state in
      if !state.hasCome { (state.hasCome, state.reason) = (true, reason) }
      defer { state.waiters = [] }
      return state.waiters
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Waits until it has come; nil if that was in order.
  func reason() async -> WormholeError? {
    await withCheckedContinuation { continuation in
      let isOver = state.withLock { state in
        if !state.hasCome { state.waiters.append(continuation) }
        return state.hasCome
      }
      if isOver { continuation.resume() }
    }
    return state.withLock { $0.reason }
  }
}
