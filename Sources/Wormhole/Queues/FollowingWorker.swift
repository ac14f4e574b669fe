internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A worker of a queue that goes on when the home of the queue becomes another machine, or this
/// one.
///
/// A ``QueueWorker`` works in one directory. When the home moves, it claims no further message, and
/// another worker begins where the messages are from then on. What was claimed before ends in the
/// former place.
final class FollowingWorker: Stoppable {
  let container: SharedContainer
  private let name: String
  private let deadline: Duration?
  private let room: Int
  private let state: Monitor<State>

  private struct State {
    var worker: QueueWorker
    var isStopped = false
    /// The tasks that pause, by the numbers of their pauses.
    var pauses: [Int: @Sendable () -> Void] = [:]
    var lastPause = 0
    /// The watch on the end of the container.
    var endWatch: NamedWatch?
    var reason: WormholeError?
  }

  init(
    _ name: String, _ container: SharedContainer, deadline: Duration?, room: Int
  ) throws(WormholeError) {
    (self.name, self.container, self.deadline, self.room) = (name, container, deadline, room)
    state = Monitor(
      State(worker: try Self.begun(name, container, deadline, room)))
  }

  private static func begun(
    _ name: String, _ container: SharedContainer, _ deadline: Duration?, _ room: Int
  ) throws(WormholeError) -> QueueWorker {
    let worker = try QueueWorker(name, container, deadline: deadline, room: room)
    try worker.begin()
    return worker
  }

  private var worker: QueueWorker { state.withLock { $0.worker } }

  /// Whether no message follows.
  var hasStopped: Bool {
    let (worker, isStopped) = state.withLock { ($0.worker, $0.isStopped) }
    return isStopped || worker.hasStopped && !worker.hasMoved
  }

  /// Throws in a forked child, to which no message is delivered.
  func checkOwner() throws(WormholeError) { try worker.checkOwner() }

  /// Returns the next message; nil once the worker has stopped or the task is cancelled.
  func next() async -> Message? {
    while true {
      let worker = worker
      if let message = await worker.next() { return message }
      guard worker.hasMoved, !Task.isCancelled, !hasStopped else { return nil }
      if !follow(worker) { await pause() }
    }
  }

  /// As ``next()``, on the calling thread, and until a deadline.
  func next(until deadline: Instant?) -> Message? {
    while true {
      let worker = worker
      if let message = worker.next(until: deadline) { return message }
      guard worker.hasMoved, !hasStopped else { return nil }
      if follow(worker) { continue }
      let retry = Instant.now + .seconds(1)
      let _: Bool? = state.wait(until: min(deadline ?? retry, retry)) { $0.isStopped ? true : nil }
      if let deadline, deadline <= Instant.now { return nil }
    }
  }

  /// Begins where the messages are now; false if that has failed.
  private func follow(_ former: QueueWorker) -> Bool {
    let error = state.withLock { state -> WormholeError? in
      guard state.worker === former, !state.isStopped else { return nil }
      do throws(WormholeError) {
        state.worker = try Self.begun(name, container, deadline, room)
      } catch {
        return error
      }
      return nil
    }
    guard let error else { return true }
    container.log(.error, error, about: LogSubject(member: name))
    return false
  }

  /// Waits for a second, or until the worker is stopped or the task is cancelled.
  private func pause() async {
    let number = state.withLock { state in
      state.lastPause += 1
      return state.lastPause
    }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isLate = state.withLock { state in
          guard !state.isStopped, !Task.isCancelled else { return true }
          state.pauses[number] = { continuation.resume() }
          return false
        }
        guard !isLate else { return continuation.resume() }
        container.background.soon(after: .seconds(1)) { [weak self] in self?.endPause(number) }
      }
    } onCancel: {
      endPause(number)
    }
  }

  private func endPause(_ number: Int) {
    let resume = state.withLock { $0.pauses.removeValue(forKey: number) }
    resume?()
  }

  // MARK: End

  /// Why no message follows: the container was removed or moved away.
  var reason: WormholeError? { state.withLock { $0.reason } }

  /// Stops if the container is removed or moved away, after a call of a closure.
  func watchEnd(
    _ ended: @escaping @Sendable (WormholeError) -> Void = { _ in }
  ) throws(WormholeError) {
    let name = name
    let watch = try container.storage.watchEnd { [weak self] end in
      let error = end.error("work on queue", name)
      // On another thread: the stop waits for a claim in progress.
      CallThreads.background.add { [weak self] in
        self?.state.withLock { $0.reason = $0.reason ?? error }
        ended(error)
        self?.stop()
      }
    }
    let isLate = state.withLock { state in
      if !state.isStopped { state.endWatch = watch }
      return state.isStopped
    }
    if isLate { watch.stop() }
  }

  /// Claims no further message; the claimed ones end with their handlers.
  func stop() {
    guard container.storage.isOwned else { return }
    let (worker, pauses, watch) = state.signal { state in
      state.isStopped = true
      defer { (state.pauses, state.endWatch) = ([:], nil) }
      return (state.worker, Array(state.pauses.values), state.endWatch)
    }
    watch?.stop()
    for resume in pauses { resume() }
    worker.stop()
  }
}

/// The end of a worker because the home of its queue has moved.
extension QueueWorker {
  var hasMoved: Bool { state.withLock { $0.hasMoved } }

  func lookForHome(after pause: Duration) {
    later(pause) { [weak self] in self?.followHome() }
  }

  /// Stops if the home of the queue has become another machine, or this one.
  func followHome() {
    do throws(Errno) {
      guard try (named.elsewhere != nil) != queue.isAway, !Mutants.has(.stayInPlace) else { return }
    } catch {
      return lookForHome(after: .seconds(1))
    }
    state.withLock { $0.hasMoved = $0.hasMoved || !$0.isStopped }
    stop()
  }
}
