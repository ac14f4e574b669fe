internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// What one receiver does when there may be something for it: once at a time, and again if it was
/// kicked meanwhile.
///
/// It runs on the thread that heard of a message, once that has told all others, so that no other
/// thread need wake up; if that one may not, or it is kicked from elsewhere, on a queue.
final class CoalescingWorker: Sendable {
  private struct State {
    var isRunning = false
    var isKicked = false
    var body: (@Sendable () -> Int64?)?
    var isAsked: (@Sendable () -> Bool)?
    /// When it is to be kicked by the clock.
    var alarms = Alarms()
  }

  private let state = Monitor(State())
  private let queue = DispatchQueue(label: "wormhole.receive")
  private let staysOnQueue: Bool
  private let time: MailTime

  /// - Parameter staysOnQueue: whether it waits for others when it runs.
  init(staysOnQueue: Bool, _ time: MailTime = MailTime()) {
    self.staysOnQueue = staysOnQueue
    self.time = time
  }

  /// - Parameters:
  ///   - isAsked: whether anybody wants what it would do; nil for always.
  ///   - body: does what there is to do, and answers when there will be more.
  func begin(
    isAsked: (@Sendable () -> Bool)? = nil, _ body: @escaping @Sendable () -> Int64?
  ) {
    state.withLock { state in
      state.body = body
      state.isAsked = isAsked
    }
    kick()
  }

  /// Whether there is no need to kick it: it runs, and will look for more before it ends, or nobody
  /// asks, and whoever does will kick it.
  var isBusy: Bool {
    let (isRunning, isAsked) = state.withLock { ($0.isRunning, $0.isAsked) }
    return isRunning || isAsked?() == false
  }

  /// Lets go of the body; does not wait for it.
  func end() {
    state.withLock { state in
      state.body = nil
      state.isAsked = nil
    }
  }

  func kick() {
    let body = state.withLock { state -> (@Sendable () -> Int64?)? in
      state.isKicked = true
      guard !state.isRunning, let body = state.body else { return nil }
      state.isRunning = true
      return body
    }
    guard let body else { return }
    if staysOnQueue {
      queue.soon { self.run(body) }
    } else {
      queue.afterTelling { self.run(body) }
    }
  }

  private func run(_ body: @Sendable () -> Int64?) {
    while true {
      state.withLock { $0.isKicked = false }
      let due = body()
      let isOver = state.withLock { state in
        if state.isKicked, state.body != nil { return false }
        state.isRunning = false
        return true
      }
      guard isOver else { continue }
      if let due { kick(at: due) }
      return
    }
  }

  private func kick(at due: Int64) {
    guard state.withLock({ $0.alarms.add(due) }) else { return }
    time.ring(at: Instant(nanoseconds: due), on: queue) { [weak self] in
      guard let self else { return }
      state.withLock { $0.alarms.remove(due) }
      kick()
    }
  }
}
