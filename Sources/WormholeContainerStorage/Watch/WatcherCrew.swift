internal import WormholeSyscalls

/// The watcher's threads, and their wait set.
///
/// All threads wait for the same events, and the kernel wakes one. It reads the notices and
/// notifies the listeners, one thread at a time. A longer task runs on the same thread, after all
/// listeners have been notified, if another thread is free to wait in the meantime: a handover
/// would cost the wake-up of a thread at each change. Because of this, no listener waits for the
/// task of another.
final class WatcherCrew: Sendable {
  let waits: WaitSet
  let wakeUp: WakeDescriptor
  /// The number of notifications so far; the notifying thread holds the lock.
  private let telling = Monitor(0)

  /// The largest number of threads.
  ///
  /// One thread always waits. A task that the other threads cannot run is left to its requester.
  static let limit = 4

  /// The key of inotify's descriptor in the wait set.
  static let notices: UInt64 = 1

  let owner = ProcessCopy.current
  private let duty = Monitor(Duty())

  private struct Duty {
    var threads = 0
    /// Threads that wait or notify.
    var free = 0
    /// The thread that notifies now, and its task for afterwards.
    var teller: UInt?
    var work: (@Sendable () -> Void)?
  }

  init() throws(Errno) {
    waits = try WaitSet()
    wakeUp = try WakeDescriptor()
    try waits.add(wakeUp.descriptor, as: 0)
  }

  /// Starts a thread, which ends automatically: the end of a watch does not wait for tasks.
  func hire(_ body: @escaping @Sendable () -> Void) throws(Errno) {
    try duty.withLock { duty throws(Errno) in try Self.hire(&duty, body) }
  }

  private static func hire(
    _ duty: inout Duty, _ body: @escaping @Sendable () -> Void
  ) throws(Errno) {
    try startThread(body)
    duty.threads += 1
    duty.free += 1
  }

  fileprivate static func startThread(_ body: @escaping @Sendable () -> Void) throws(Errno) {
    try Thread("wormhole-watch", body).detach()
  }

  /// Notifies, while no other thread does; returns the task for afterwards.
  func tell(_ body: () -> Void) -> (@Sendable () -> Void)? {
    telling.withLock { times in
      times &+= 1
      duty.withLock { $0.teller = Thread.currentNumber }
      body()
      return duty.withLock { duty in
        duty.teller = nil
        return duty.work.take()
      }
    }
  }

  /// Records a task for the calling thread, which notifies now; false if the task must run
  /// elsewhere.
  ///
  /// - Parameter another: the body of a further thread, if one is needed.
  func accept(
    _ work: @escaping @Sendable () -> Void, another: @escaping @Sendable () -> Void
  ) -> Bool {
    duty.withLock { duty in
      guard duty.teller == Thread.currentNumber, duty.work == nil else { return false }
      if duty.free < 2 {
        guard duty.threads < Self.limit,
          Errno.of({ () throws(Errno) in try Self.hire(&duty, another) }) == nil
        else { return false }
      }
      duty.free -= 1
      duty.work = work
      return true
    }
  }

  /// The task has ended.
  func comeBack() { duty.withLock { $0.free += 1 } }
}

extension Watcher {
  /// Makes the notifying thread run a task after it has notified all listeners: for example, read a
  /// file and call a user's handler.
  ///
  /// For calls from handlers. However long the task takes, another thread notifies the listeners.
  ///
  /// - Returns: false if the task has to run elsewhere: the caller is not the notifying thread, or
  ///   this thread already has a task, or too many threads are busy.
  package func afterwards(_ work: @escaping @Sendable () -> Void) -> Bool {
    let (crew, isPolling) = state.withLock { ($0.crew, !$0.polled.isEmpty) }
    guard let crew, crew.accept(work, another: { self.run(crew) }) else { return false }
    // The waiting threads may not know that there are listeners to poll.
    if isPolling { crew.wakeUp.raise() }
    return true
  }

  /// Runs a task on a free thread, without waiting for it.
  func soon(_ work: @escaping @Sendable () -> Void) {
    if afterwards(work) { return }
    do throws(Errno) {
      try WatcherCrew.startThread(work)
    } catch {
      // Out of threads: a delay of all listeners is better than no run.
      work()
    }
  }

  /// Returns the present threads, or starts new ones.
  func crew(_ state: inout State) throws(Errno) -> WatcherCrew {
    if let crew = state.crew { return crew }
    let crew = try WatcherCrew()
    try crew.hire { self.run(crew) }
    state.crew = crew
    return crew
  }

  private func run(_ crew: WatcherCrew) {
    // A handler may fork: this thread's work continues in the parent process alone.
    while crew.owner.isCurrent,
      let nextPoll = state.withLock({ $0.crew === crew ? $0.nextPoll : nil })
    {
      let deadline = nextPoll == .distantFuture ? nil : nextPoll
      // A failed wait counts as a wake-up: the state is checked again.
      let key = try? crew.waits.wait(until: deadline)
      let work = crew.tell {
        if key == WatcherCrew.notices { deliver(to: crew) }
        if deadline != nil { poll(for: crew) }
      }
      guard let work else { continue }
      work()
      crew.comeBack()
    }
    // The other threads have to end as well, and each wakes the next.
    crew.wakeUp.raise()
  }

  private func deliver(to crew: WatcherCrew) {
    guard let instance = state.withLock({ $0.crew === crew ? $0.instance : nil }) else { return }
    deliver(from: instance, crew)
  }
}
