package import WormholeContainerStorage
internal import WormholeSyscalls

/// Threads that make calls: as many as are needed at once, up to a bound.
///
/// Idle threads end after a while.
///
/// The threads wait on a condition, which needs no descriptor, and later calls need none either: a
/// process without free descriptors continues. Dispatch needs three for its first timer, and ends
/// the process if it gets none. If no thread can be started, Dispatch blocks the caller until a
/// thread is available.
final class CallThreads: Sendable {
  /// For calls that may wait long.
  static let waiting = CallThreads(most: 64)
  /// For locks that tasks hold: as many threads as locks, since a task with a lock may need a
  /// second thread of this pool.
  static let holding = CallThreads(most: 4096)
  /// For calls that never wait, and must not queue behind waiting calls.
  static let quick = CallThreads(most: 8)
  /// For work without a waiting caller: the work of a `WorkQueue` or `Worker`, and later calls.
  ///
  /// A forked child has its own.
  static var background: CallThreads { backgrounds.current }
  private static let backgrounds = OneForEachProcess { CallThreads(most: 256) }

  /// The time for which an idle thread is kept: starting a thread takes longer than most calls.
  private static let idleTime = Duration.seconds(1)

  private struct State {
    var calls = CallLine()
    var later = LaterCalls()
    var idle = 0
    var threads = 0
    /// The number of owners that need a thread, whether or not the thread has work.
    var holders = 0
    /// The last moment when all threads were busy.
    ///
    /// If each thread measured its own idle time, a few calls a second would keep all threads of a
    /// burst.
    var lastNeed = Instant(nanoseconds: 0)

    /// Takes the call that is to be made now, by a thread that does not count as idle.
    mutating func takeNext(_ most: Int) -> StartedCall? {
      guard let call = later.takeDue() ?? calls.take() else { return nil }
      if idle == 0 { lastNeed = .now }
      return StartedCall(call: call, needsClock: needsClock(most))
    }

    /// Counts one more thread, if all are busy and a later call needs a thread that waits for its
    /// moment.
    mutating func needsClock(_ most: Int) -> Bool {
      !later.isEmpty && idle == 0 && addThread(most)
    }

    /// Counts another thread, up to the maximum.
    mutating func addThread(_ most: Int) -> Bool {
      guard threads < most else { return false }
      threads += 1
      lastNeed = .now
      return true
    }

    /// The end of an idle thread's wait; nil for no end.
    ///
    /// The last idle thread stays while a later call needs it, or while a ``ThreadHold`` exists.
    var deadline: Instant? {
      let stays = idle == 1 && (!later.isEmpty || holders > 0)
      let end = stays ? nil : lastNeed + CallThreads.idleTime
      guard let next = later.next else { return end }
      return end.map { min($0, next) } ?? next
    }
  }

  private struct StartedCall {
    let call: Action
    /// Whether a thread was counted that the caller has to start.
    let needsClock: Bool
  }

  private let state = Monitor(State())
  private let owner = ProcessCopy.current
  private let most: Int
  private let hire: @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void

  /// - Parameter hire: starts a thread, which ends automatically.
  init(
    most: Int,
    hire: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void = {
      body throws(Errno) in
      try Thread("wormhole-call", body).detach()
    }
  ) {
    self.most = most
    self.hire = hire
  }

  /// Adds a call, which one of the threads makes.
  func add(_ call: @escaping @Sendable () -> Void) {
    let needsThread = state.signal { state in
      state.calls.add(Action(call))
      return state.calls.count > state.idle && state.addThread(most)
    }
    if needsThread { begin() }
  }

  /// Adds a call, which one of the threads makes at a moment, or as soon afterwards as a thread is
  /// free.
  ///
  /// If there is no thread and none can be started, the call waits until a thread is started for
  /// another reason: see ``hold()``.
  ///
  /// - Returns: the ticket for ``cancel(_:)``.
  @discardableResult
  func add(at moment: Instant, _ call: @escaping @Sendable () -> Void) -> LaterCallID {
    let (ticket, needsThread) = state.signal { state in
      (state.later.add(Action(call), at: moment), state.needsClock(most))
    }
    if needsThread { begin() }
    return ticket
  }

  /// Cancels a later call, unless the call has begun.
  func cancel(_ ticket: LaterCallID) {
    // Released after the lock.
    let call = state.withLock { $0.later.remove(ticket) }
    withExtendedLifetime(call) {}
  }

  /// Whether the call in progress runs on its caller's thread, because no other thread could be
  /// started.
  @TaskLocal static var isBorrowed = false

  // MARK: Holding a thread

  /// Makes sure that a thread exists from now on, until the returned object is released.
  ///
  /// So an activity that needs a thread later fails now, with an error, if no thread can be
  /// started.
  func hold() throws(Errno) -> ThreadHold {
    try state.withLock { state throws(Errno) in
      if state.threads == 0 {
        try hire { self.work() }
        state.threads = 1
      }
      state.holders += 1
    }
    return ThreadHold { [state] in state.signal { $0.holders -= 1 } }
  }

  /// Starts a thread that is counted already.
  ///
  /// If that fails, the existing threads make the waiting calls. Without any, the caller's thread
  /// makes all of them, even if that delays the caller: whoever has added a call meanwhile has
  /// counted on the thread.
  private func begin() {
    let failure = Errno.of { () throws(Errno) in try hire { self.work() } }
    guard failure != nil else { return }
    state.withLock { $0.threads -= 1 }
    Self.$isBorrowed.withValue(true) {
      while let call = state.withLock({ $0.threads == 0 ? $0.calls.take() : nil }) {
        call.perform()
      }
    }
  }

  // MARK: On a thread

  private func work() {
    while let call = next() { call.perform() }
  }

  /// Waits for the next call; nil if the thread is to end.
  private func next() -> Action? {
    // A call may fork: the work of this thread continues in the parent alone.
    guard owner.isCurrent else { return nil }
    let now = state.withLock { state -> StartedCall? in
      if let taken = state.takeNext(most) { return taken }
      state.idle += 1
      return nil
    }
    guard let taken = now ?? rest() else { return nil }
    if taken.needsClock { begin() }
    return taken.call
  }

  private enum Wake {
    case taken(StartedCall)
    case end
    /// Wait until another moment.
    case again
  }

  private func rest() -> StartedCall? {
    while true {
      let deadline = state.withLock { $0.deadline }
      let woken = state.wait(until: deadline) { state -> Wake? in
        // Changed here, under the lock: the next caller must not count on this thread.
        state.idle -= 1
        if let taken = state.takeNext(most) { return .taken(taken) }
        state.idle += 1
        guard let next = state.deadline, next <= .now else {
          return state.deadline == deadline ? nil : .again
        }
        // The moment may belong to a later call, which is taken in the next iteration.
        guard state.later.next.map({ $0 > next }) ?? true else { return .again }
        state.idle -= 1
        state.threads -= 1
        return .end
      }
      switch woken {
      case .taken(let taken): return taken
      case .end: return nil
      case .again, nil: continue
      }
    }
  }
}

extension Worker {
  /// A worker whose task runs on a thread for work without a waiting caller.
  ///
  /// A worker makes one run at a time, and therefore needs a queue only if its task must not run
  /// beside other calls of the queue.
  ///
  /// Unless the worker stays off the threads of the watcher, a task for which a notice is the
  /// trigger runs on the thread that notices changes, after this thread has notified all
  /// listeners: no second thread need wake up.
  ///
  /// - Parameters:
  ///   - staysOffWatcher: whether the task never runs on a thread of the watcher, because the task
  ///     may wait for other threads.
  ///   - time: the clock of the alarm.
  package convenience init(staysOffWatcher: Bool, _ time: MailTime = MailTime()) {
    self.init(followsNotices: !staysOffWatcher) {
      CallThreads.background.add($0)
    } now: {
      time.now
    } ring: { moment, call in
      guard let clock = time.moved else {
        CallThreads.background.add(at: moment, call)
        return
      }
      clock.ring(at: moment) { CallThreads.background.add(call) }
    }
  }
}

/// A thread exists as long as this object is retained.
final class ThreadHold: Sendable {
  private let release: @Sendable () -> Void

  fileprivate init(_ release: @escaping @Sendable () -> Void) { self.release = release }

  deinit { release() }
}

/// Calls in the order of their addition.
struct CallLine {
  private var coming: [Action] = []
  /// The calls before `coming`, with the next call at the end.
  ///
  /// A taken call is released at once, however many calls wait behind it.
  private var next: [Action] = []

  var count: Int { coming.count + next.count }

  mutating func add(_ call: Action) { coming.append(call) }

  mutating func take() -> Action? {
    if next.isEmpty {
      if next.capacity > 64 { next = [] }
      swap(&coming, &next)
      next.reverse()
    }
    return next.popLast()
  }
}

/// Later calls, in the order of their moments.
struct LaterCalls {
  private struct Entry {
    let moment: Instant
    let number: Int
    let call: Action
  }

  /// The next call is at the end.
  private var entries: [Entry] = []
  private var number = 0

  var isEmpty: Bool { entries.isEmpty }
  /// The moment of the next call.
  var next: Instant? { entries.last?.moment }

  mutating func add(_ call: Action, at moment: Instant) -> LaterCallID {
    number += 1
    entries.insert(Entry(moment: moment, number: number, call: call), at: index(of: moment))
    return LaterCallID(moment: moment, number: number)
  }

  mutating func takeDue() -> Action? {
    guard let next, next <= Instant.now else { return nil }
    return entries.removeLast().call
  }

  mutating func remove(_ ticket: LaterCallID) -> Action? {
    var index = self.index(of: ticket.moment)
    while index < entries.count, entries[index].moment == ticket.moment {
      if entries[index].number == ticket.number { return entries.remove(at: index).call }
      index += 1
    }
    return nil
  }

  /// Returns the index behind later calls, and before calls of the same moment, which are made
  /// first.
  private func index(of moment: Instant) -> Int {
    var (low, high) = (0, entries.count)
    while low < high {
      let middle = low + (high - low) / 2
      if entries[middle].moment > moment { low = middle + 1 } else { high = middle }
    }
    return low
  }
}

/// Identifies a later call.
struct LaterCallID: Sendable {
  fileprivate let moment: Instant
  fileprivate let number: Int
}
