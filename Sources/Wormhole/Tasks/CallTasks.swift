internal import WormholeSyscalls

/// The tasks that call the asynchronous closure of one subscription.
///
/// The subscription retains this object and not the closure: a task that has ended is released.
package final class CallTasks: Sendable {
  /// The subscription whose closure the current task calls.
  @TaskLocal private static var current: ObjectIdentifier?

  private struct State {
    var last = 0
    var running: [Int: Task<Void, Never>] = [:]
    var isCancelled = false
  }

  private let state = Monitor(State())

  init() {}

  /// Begins a task; after a cancellation the task is cancelled from its beginning.
  func begin(_ body: @escaping @Sendable () async -> Void) {
    // Under the lock: no task ends before it is known here.
    let late = state.withLock { state -> Task<Void, Never>? in
      state.last += 1
      let number = state.last
      let task = Task.detached {
        await Self.$current.withValue(ObjectIdentifier(self)) { await body() }
        self.state.withLock { _ = $0.running.removeValue(forKey: number) }
      }
      state.running[number] = task
      return state.isCancelled ? task : nil
    }
    late?.cancel()
  }

  /// Cancels the tasks, unless the current task is one of them.
  func cancel() {
    // A closure that stops its own subscription has work left to do.
    guard !isCurrent else { return }
    let running = state.withLock { state -> [Task<Void, Never>] in
      state.isCancelled = true
      return Array(state.running.values)
    }
    for task in running { task.cancel() }
  }

  /// Waits until the calls in progress have returned.
  func finish() async {
    // No task can wait for its own end.
    guard !isCurrent else { return }
    for task in state.withLock({ Array($0.running.values) }) { await task.value }
  }

  /// Whether the current task is one of the tasks.
  var isCurrent: Bool { Self.current == ObjectIdentifier(self) }
}
