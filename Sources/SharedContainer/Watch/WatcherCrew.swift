internal import Syscalls

/// The watcher's threads, and what they wait for.
///
/// All wait for the same, and the kernel wakes one. It reads the notices and tells those concerned,
/// one thread at a time. What takes longer than telling it does itself, once it has told all, when
/// another thread is there to wait meanwhile: handing it over would cost a thread's wake-up at each
/// change. So whatever it is about, nobody else waits for it.
final class WatcherCrew: Sendable {
  let waits: WaitSet
  let wakeUp: WakeDescriptor
  /// How often somebody was told; the thread that tells holds its lock.
  private let telling = Monitor(0)

  /// How many threads there may be.
  ///
  /// One always waits. What the others cannot do is left to those who bring it up.
  static let limit = 4

  /// What inotify's descriptor is called in the set.
  static let notices: UInt64 = 1

  let owner = ProcessCopy.current
  private let duty = Monitor(Duty())

  private struct Duty {
    var threads = 0
    /// Those that wait or tell.
    var free = 0
    /// The thread that tells now, and what it is to do then.
    var teller: UInt?
    var work: (@Sendable () -> Void)?
  }

  init() throws(Errno) {
    waits = try WaitSet()
    wakeUp = try WakeDescriptor()
    try waits.add(wakeUp.descriptor, as: 0)
  }

  /// Starts a thread, which ends by itself: who stops listening does not wait for others' work.
  func hire(_ body: @escaping @Sendable () -> Void) throws(Errno) {
    try duty.withLock { duty throws(Errno) in try Self.hire(&duty, body) }
  }

  private static func hire(
    _ duty: inout Duty, _ body: @escaping @Sendable () -> Void
  ) throws(Errno) {
    try Thread("wormhole-watch", body).detach()
    duty.threads += 1
    duty.free += 1
  }

  /// Tells, while no other thread does; answers what is to be done then.
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

  /// Notes work for the thread that tells, which asks; false if it must be done elsewhere.
  ///
  /// - Parameter another: what a further thread does, should one be needed.
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

  /// The work has been done.
  func comeBack() { duty.withLock { $0.free += 1 } }
}

extension Watcher {
  /// Has the thread that tells do something once it has told all: read a file, say, and call
  /// whoever waits for that.
  ///
  /// For handlers to call. However long it takes, others are told by another thread.
  ///
  /// - Returns: false if it has to be done elsewhere: it is not the telling thread that asks, or
  ///   that has something to do already, or too many are at work.
  package func afterwards(_ work: @escaping @Sendable () -> Void) -> Bool {
    let (crew, isPolling) = state.withLock { ($0.crew, !$0.polled.isEmpty) }
    guard let crew, crew.accept(work, another: { self.run(crew) }) else { return false }
    // Those who wait may not know that there is something to poll.
    if isPolling { crew.wakeUp.raise() }
    return true
  }

  /// Those who are there, or new ones.
  func crew(_ state: inout State) throws(Errno) -> WatcherCrew {
    if let crew = state.crew { return crew }
    let crew = try WatcherCrew()
    try crew.hire { self.run(crew) }
    state.crew = crew
    return crew
  }

  private func run(_ crew: WatcherCrew) {
    // A handler may make a copy of the process: this thread's work goes on in the first one alone.
    while crew.owner.isCurrent,
      let nextPoll = state.withLock({ $0.crew === crew ? $0.nextPoll : nil })
    {
      let deadline = nextPoll == .distantFuture ? nil : nextPoll
      // A failed wait is a wait that ended: the state is looked at again.
      let key = try? crew.waits.wait(until: deadline)
      let work = crew.tell {
        if key == WatcherCrew.notices { deliver(to: crew) }
        if deadline != nil { poll(for: crew) }
      }
      guard let work else { continue }
      work()
      crew.comeBack()
    }
    // The others are to end as well, and each wakes one.
    crew.wakeUp.raise()
  }

  private func deliver(to crew: WatcherCrew) {
    guard let instance = state.withLock({ $0.crew === crew ? $0.instance : nil }) else { return }
    deliver(from: instance, crew)
  }
}
