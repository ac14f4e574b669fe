internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Moves delayed messages into the inbox when they are due.
///
/// Every receiver and every worker moves them, so no further process is needed. Two processes that
/// move the same message rename the same name: one of them succeeds. However many messages are
/// delayed, a receiver reads their names once in a thousand due ones, and nothing for each message
/// it receives.
final class DueMessages: Sendable {
  private let home: MemberDirectory
  private let container: SharedContainer
  private let epoch: Int
  private let worker: Worker
  private let later: NoticedFolder
  private let state = Monitor(State())

  struct State {
    /// The messages that are due first.
    var known = SortedQueue<DelayedName>()
    /// The moment before which all messages are known, in nanoseconds since 1970; it may have
    /// passed.
    var limit = Int64.min

    mutating func add(_ delayed: DelayedName) {
      // A message that is due later is listed in time.
      guard delayed.due < limit, known.count < 2 * DueMessages.window else {
        limit = min(limit, delayed.due)
        return
      }
      known.insert(delayed) { $0.due < $1.due }
    }

    /// Takes the messages that are due; nil if the names must be listed first.
    mutating func take(by now: Int64) -> [DelayedName]? {
      let end = min(now, limit)
      var due: [DelayedName] = []
      while let first = known.first, first.due <= end { due.append(known.removeFirst()) }
      return due.isEmpty && limit <= now ? nil : due
    }

    /// Returns the pause until the next message may be due, in nanoseconds; nil if none is.
    ///
    /// A lost notice, which may arrive at any time, leaves the least limit of all.
    func pause(from now: Int64) -> Int64? {
      let next = min(known.first?.due ?? .max, limit)
      return next == .max ? nil : max(1_000_000, next.subtractingClamped(now))
    }
  }

  /// How many names are known at a time.
  private static let window = 1024
  /// A change of the wall clock is noticed within this time, in nanoseconds.
  private static let longestPause: Int64 = 10_000_000_000

  init(_ home: MemberDirectory, _ container: SharedContainer, epoch: Int) {
    self.home = home
    self.epoch = epoch
    self.container = container
    worker = Worker(on: container.background, staysOnQueue: true, container.options.time)
    later = NoticedFolder(worker)
  }

  func begin() throws(Errno) {
    guard !Mutants.has(.ignoreDue) else { return }
    try later.begin { hear throws(Errno) in
      worker.begin { [weak self] in self?.move() }
      let watch = try home.watch(.later, makes: false, hear)
      worker.trigger()
      return watch
    }
  }

  func stop() {
    worker.end()
    later.stop()
  }

  private var now: Int64 { container.options.environment.sinceEpoch() }

  private func move() {
    takeNotices()
    do throws(Errno) {
      while true {
        let now = now
        guard let due = state.withLock({ $0.take(by: now) }) else {
          try list()
          continue
        }
        if due.isEmpty { break }
        try Self.move(due, in: home, epoch)
      }
    } catch {
      home.log(.error, "cannot deliver the delayed messages of", error)
      return later.retry()
    }
    guard let pause = state.withLock({ $0.pause(from: now) }) else { return }
    // A test's clock is set by the test alone.
    let longest = container.options.clock == nil ? Self.longestPause : .max
    worker.trigger(at: container.options.time.now + .nanoseconds(min(pause, longest)))
  }

  private func takeNotices() {
    let notices = later.take()
    state.withLock { state in
      guard case .changed(let names) = notices else { return state.limit = .min }
      for name in names { if let one = DelayedName(name) { state.add(one) } }
    }
  }

  private func list() throws(Errno) {
    var found = try Self.names(in: home)
    let isCut = found.count > Self.window
    if isCut { found.removeLast(found.count - Self.window) }
    // The next run is told of a message that came during the listing.
    let listed = State(known: SortedQueue(found), limit: isCut ? found.last!.due : .max)
    state.withLock { $0 = listed }
  }

  private static func names(in home: MemberDirectory) throws(Errno) -> [DelayedName] {
    try home.names(in: .later) { DelayedName($0) }.sorted { $0.due < $1.due }
  }

  /// Moves messages into the inbox, in order.
  ///
  /// A directory is no message, and only its owner may move it: it does not delay the messages, and
  /// its error is thrown at the end.
  private static func move(
    _ due: [DelayedName], in home: MemberDirectory, _ epoch: Int
  ) throws(Errno) {
    var refusal: Errno?
    for delayed in due {
      let stamp = MessageStamp(
        epoch: epoch, nanoseconds: home.container.options.environment.sinceBoot())
      do throws(Errno) {
        _ = try home.move(delayed.text, from: .later, .inbox, as: delayed.arrived(at: stamp).text)
      } catch {
        let status = try? home.status(of: delayed.text, in: .later)
        guard status?.kind == .directory else { throw error }
        refusal = refusal ?? error
      }
    }
    if let refusal { throw refusal }
  }

  /// Moves the due messages into the inbox, for a process that lists them.
  static func deliver(to home: MemberDirectory, _ container: SharedContainer) {
    guard !container.storage.options.isForReading, let epoch = try? container.storage.epoch() else {
      return
    }
    do throws(Errno) {
      let now = container.options.environment.sinceEpoch()
      try move(names(in: home).filter { $0.due <= now }, in: home, epoch)
    } catch {
      home.log(.notice, "cannot deliver the delayed messages of", error)
    }
  }
}
