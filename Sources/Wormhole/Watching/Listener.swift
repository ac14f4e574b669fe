internal import Dispatch
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The result of reading a name.
final class WatchResult: Sendable {
  let name: String
  let stamp: Stamp
  let content: Result<Slot.Content, WormholeError>
  /// The content, opened; nil if the content is missing or damaged.
  let file: Envelope.OpenFile?

  init(
    name: String, stamp: Stamp, content: Result<Slot.Content, WormholeError> = .success(.nothing),
    file: Envelope.OpenFile? = nil
  ) {
    self.name = name
    self.stamp = stamp
    self.content = content
    self.file = file
  }

  /// Whether no more changes will follow; a source never has an empty name.
  var isFinal: Bool { name.isEmpty }

  /// The finding that no more changes will follow.
  convenience init(_ failure: WormholeError) {
    self.init(name: "", stamp: .failed(failure), content: .failure(failure))
  }
}

/// One watcher: carries out the decisions of ``WatchMachine``.
///
/// A change notice is only recorded. Once all listeners are notified, this listener reads the
/// changes. It does so on the watcher's thread, if another thread is free to wait for notices, and
/// otherwise on a `wormhole-call` thread: so no other listener waits. The machine permits one
/// reading at a time. The handler is called on the same thread, unless the handler has a queue. The
/// listener is retained until it is stopped, by its owner or by the subscriptions of an instance.
final class Listener: Stoppable {
  // The layout of a checked continuation is known at run time only, so each use of the machine's
  // state would look it up. The machine resumes each waiting task once.
  private typealias Machine = WatchMachine<UnsafeContinuation<WatchResult?, Never>>

  /// Both are under one lock, because callers need both.
  private struct State {
    var machine: Machine
    var sources = SmallDictionary<String, ChangeSource>()
    /// Whether the listener has left its sources, and joins no other.
    var hasLeft = false
    /// The reason why no more changes will follow.
    var failure: WormholeError?
    /// The owner that retains the listener until its end.
    var begun: ActiveSubscriptions?
    /// The names that are read again in a while, because reading failed.
    var retried: Set<String> = []
  }

  private let state: Monitor<State>
  /// The task that calls asynchronous closures, if any.
  private let calls = CallTasks()
  private let threadHold = Monitor<ThreadHold?>(nil)
  /// The watch that finds further sources, if any.
  private let finder = Monitor<FolderWatch?>(nil)
  private let handlerQueue: DispatchQueue?
  let owner = ProcessCopy.current
  private let handler: (@Sendable (WatchResult) -> Void)?
  /// Closed once the listener has been stopped.
  let gate = CallGate()

  /// - Parameters:
  ///   - reportsAbsence: whether a name without a file is a finding.
  ///   - handler: nil for a listener whose findings are awaited.
  init(
    seen: [String: Stamp], reportsAbsence: Bool = false, on handlerQueue: DispatchQueue? = nil,
    handler: (@Sendable (WatchResult) -> Void)? = nil
  ) {
    let machine = Machine(
      hasHandler: handler != nil, seen: seen, reportsAbsence: reportsAbsence)
    state = Monitor(State(machine: machine))
    self.handlerQueue = handlerQueue
    self.handler = handler
  }

  /// The number of change notices.
  var signals: Int { state.withLock { $0.machine.signals } }

  /// Makes sure that a thread exists for names whose reading fails, and which are to be read again.
  func begin() throws(WormholeError) {
    try naming("watch for", "changes") { () throws(Errno) in
      let hold = try CallThreads.background.hold()
      threadHold.withLock { $0 = hold }
    }
  }

  // MARK: Sources

  /// Adds a source, under the escaped name in its change notices.
  func join(_ name: String, _ source: ChangeSource) {
    let left = state.withLock { state in
      state.hasLeft ? source : state.sources.replace(name, source)
    }
    left?.leave()
  }

  /// Leaves a source that is gone, once the handler is notified; a source stays if the name exists
  /// again.
  func leaveOnceGone(_ name: String) {
    state.withLock { $0.sources[name]?.isLeaving = true }
    change(name)
  }

  /// Returns whether the listener has a source of this name, and keeps the source.
  func keeps(_ name: String) -> Bool {
    state.withLock { state in
      state.sources[name]?.isLeaving = false
      return state.sources[name] != nil
    }
  }

  /// Adds a new source, unless the listener has it; on a queue, because the caller's thread serves
  /// other watchers of the container.
  ///
  /// A failed attempt is repeated, ever more rarely, because no further notice will arrive.
  ///
  /// - Parameter queue: the queue of the instance for such attempts.
  func joinSoon(
    _ name: String, of storage: Container, on queue: WorkQueue, about subject: LogSubject,
    after pause: Duration = .zero,
    _ join: @escaping @Sendable (Listener) throws(WormholeError) -> Void
  ) {
    let attempt = { @Sendable [weak self] in
      guard let self, !state.withLock({ $0.hasLeft }) else { return }
      do throws(WormholeError) {
        if try !keeps(Container.escape(name)) { try join(self) }
      } catch {
        guard error.code != .notAContainer else { return }
        if pause == .zero { storage.log(.error, error, about: subject) }
        let next = min(max(pause * 2, .seconds(1)), .seconds(60))
        joinSoon(name, of: storage, on: queue, about: subject, after: next, join)
      }
    }
    if pause == .zero {
      queue.soon(attempt)
    } else {
      queue.soon(after: pause, attempt)
    }
  }

  func keep(_ watch: FolderWatch) {
    finder.withLock { $0 = watch }
    if state.withLock({ $0.hasLeft }) { finder.withLock { $0.take() }?.stop() }
  }

  /// Lets the listener continue until it is stopped, even if the program has released it.
  func goOn(in begun: ActiveSubscriptions) throws(WormholeError) -> Subscription {
    let subscription = try begun.keep(self)
    let (isLate, reason) = state.withLock { state in
      if !state.hasLeft { state.begun = begun }
      return (state.hasLeft, state.failure)
    }
    if isLate { begun.forget(self, reason) }
    return subscription
  }

  /// Records that a name may have changed; never waits.
  func change(_ name: String) { perform(state.withLock { $0.machine.change(name) }) }

  /// Records that no source will change any more; never waits.
  func fail(_ error: WormholeError) {
    perform(
      state.withLock { state in
        state.failure = state.failure ?? error
        return state.machine.fail()
      })
  }

  // MARK: Checking

  private func perform(_ action: Machine.Action) {
    switch action {
    case .none: break
    case .look: schedule()
    case .end(let waiter): waiter.resume(returning: nil)
    }
  }

  /// As a ``Worker`` whose runs follow notices, but the machine decides when a run is due.
  private func schedule() {
    let run = { @Sendable in self.look() }
    if !Watcher.shared.afterwards(run) { CallThreads.background.add(run) }
  }

  /// Reads the changed names and passes on the news, until no change is left, or neither a handler
  /// nor a waiting task is there.
  private func look() {
    var action = Machine.Action.look
    while action.isLook {
      guard let finding = findNews() else {
        action = state.withLock { $0.machine.endLook() }
        continue
      }
      guard let handler else {
        state.withLock { $0.machine.takeWaiter() }?.resume(returning: finding)
        action = state.withLock { $0.machine.endLook() }
        continue
      }
      guard let handlerQueue else {
        gate.call { handler(finding) }
        action = state.withLock { $0.machine.endLook() }
        continue
      }
      return handlerQueue.async {
        self.gate.call { handler(finding) }
        self.perform(self.state.withLock { $0.machine.endLook() })
      }
    }
  }

  /// Returns the next news.
  private func findNews() -> WatchResult? {
    if let failure = takeFailure() { return WatchResult(failure) }
    while let (name, source) = state.withLock({ state in nextName(&state) }) {
      guard let source, let finding = find(name, source) else { continue }
      if case .failed(let error) = finding.stamp, error.mayPass { lookLater(at: name) }
      let isNews = state.withLock { state in
        defer { if state.sources[name] == nil { state.machine.forget(name) } }
        return state.machine.isNews(name, finding.stamp)
      }
      if isNews { return finding }
    }
    return nil
  }

  /// Returns the next changed name, with its source.
  ///
  /// Without a source, the notice came too late, or before the join of the source has ended. The
  /// join has the name read at its end; only posts of a ``Notice`` during the join do not count.
  private func nextName(_ state: inout State) -> (String, ChangeSource?)? {
    guard let name = state.machine.nextName() else { return nil }
    let source = state.sources[name]
    if source == nil { state.machine.forgetUnknown(name) }
    return (name, source)
  }

  /// Reads a name again in a second, even without a further change: the system refused to read the
  /// name for lack of a resource.
  private func lookLater(at name: String) {
    guard state.withLock({ $0.retried.insert(name).inserted }) else { return }
    CallThreads.background.add(at: .now + .seconds(1)) { [weak self] in
      guard let self else { return }
      state.withLock { _ = $0.retried.remove(name) }
      change(name)
    }
  }

  /// Reads one name; if its file is gone, returns the finding about the loss.
  private func find(_ name: String, _ source: ChangeSource) -> WatchResult? {
    let finding = source.look()
    guard finding.stamp == .nothing else { return finding }
    var loss: WatchResult?
    // Watchers are notified of the container's end separately, and once.
    if let version = state.withLock({ $0.machine.version(of: name) }),
      case .success = finding.content
    {
      loss = source.loss(version)
    }
    // The source stays until the listener knows of the loss.
    if let loss, case .failed = loss.stamp { return loss }
    let left = state.withLock { state -> ChangeSource? in
      state.sources[name]?.isLeaving == true ? state.sources.removeValue(forKey: name) : nil
    }
    left?.leave()
    return loss ?? finding
  }

  /// Returns the final error, if the error is due.
  private func takeFailure() -> WormholeError? {
    let failure = state.withLock { $0.machine.takeFailure() ? $0.failure : nil }
    if let failure { leaveAll()?.forget(self, failure) }
    return failure
  }

  /// Returns the next news; nil when the listener was stopped, or the task was cancelled.
  func next() async -> WatchResult? {
    // The finding was made before the lock was free. The runtime does not always report to the
    // thread sanitizer that the resumption comes later.
    defer { state.withLock { _ in } }
    return await withTaskCancellationHandler {
      await withUnsafeContinuation { continuation in
        perform(state.withLock { $0.machine.wait(continuation) })
      }
    } onCancel: {
      stop()
    }
  }

  /// Has a task pass each news to an asynchronous body, one at a time, until the end.
  func begin(calling body: @escaping @Sendable (WatchResult) async -> Void) {
    calls.begin {
      while let finding = await self.next() { await body(finding) }
    }
  }

  var callTasks: CallTasks? { calls }

  /// Ends the listener.
  ///
  /// Once this has returned, the handler is not called again. It waits for a call in progress on
  /// another thread; the task of an asynchronous call is cancelled instead.
  func stop() {
    // In a forked child the listener has ended already.
    guard owner.isCurrent else { return }
    perform(state.withLock { $0.machine.stop() })
    gate.close()
    let begun = leaveAll()
    defer { begun?.forget(self) }
    gate.drain()
    calls.cancel()
  }

  /// - Returns: the owner that has retained the listener.
  private func leaveAll() -> ActiveSubscriptions? {
    finder.withLock { $0.take() }?.stop()
    threadHold.withLock { $0 = nil }
    let (left, begun) = state.withLock { state in
      state.hasLeft = true
      defer { state.sources = SmallDictionary() }
      return (state.sources.values, state.begun.take())
    }
    for source in left { source.leave() }
    return begun
  }
}

/// A source of changes, such as a slot.
struct ChangeSource: Sendable {
  let look: @Sendable () -> WatchResult
  /// Returns the finding for a listener that knows the version and now finds nothing; nil if the
  /// listener is not notified.
  var loss: @Sendable (_ version: Int) -> WatchResult? = { _ in nil }
  let leave: @Sendable () -> Void
  /// Whether the listener leaves the source after it has read nothing.
  var isLeaving = false
}
