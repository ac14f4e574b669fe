internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// What a look has found.
final class Finding: Sendable {
  let name: String
  let stamp: Stamp
  let content: Result<Slot.Content, WormholeError>
  /// The content, opened; nil if there is none, or it is damaged.
  let file: Envelope.Opened?

  init(
    name: String, stamp: Stamp, content: Result<Slot.Content, WormholeError> = .success(.nothing),
    file: Envelope.Opened? = nil
  ) {
    self.name = name
    self.stamp = stamp
    self.content = content
    self.file = file
  }

  /// That there will be nothing to find any more.
  convenience init(_ failure: WormholeError) {
    self.init(name: "", stamp: .failed(failure), content: .failure(failure))
  }
}

/// One watcher: carries out what ``WatchMachine`` decides.
///
/// It is told of changes by the watcher, and then only notes them. Once all have been told it
/// looks, on the watcher's thread if another one is free to wait, or else on a queue of its own: so
/// nobody waits for it. There it calls the handler too, unless that has a queue. It is kept until
/// it is stopped, by its owner or by what has begun in an opening.
final class Listener: Lasting {
  private typealias Machine = WatchMachine<CheckedContinuation<Finding?, Never>>

  /// Something that it looks at.
  struct Source: Sendable {
    let look: @Sendable () -> Finding
    /// What it tells that knows this version, and finds that there is nothing any more; nil for
    /// nothing.
    var loss: @Sendable (_ version: Int) -> Finding? = { _ in nil }
    let leave: @Sendable () -> Void
    /// Whether it is left once a look has found nothing.
    var isLeaving = false
  }

  /// Both under one lock, as whoever asks for one asks for the other.
  private struct State {
    var machine: Machine
    /// Nil once it has been stopped.
    var sources: [String: Source]? = [:]
    /// Why there is nothing more to come.
    var failure: WormholeError?
    /// What keeps it until it has ended.
    var begun: Begun?
    /// What is looked at again in a while, as it could not be.
    var retried: Set<String> = []
  }

  private let state: Monitor<State>
  /// What keeps listening for further sources, if anything does.
  private let finder = Monitor<FolderWatch?>(nil)
  private let queue = DispatchQueue(label: "wormhole.watch")
  private let handlerQueue: DispatchQueue?
  let owner = ProcessCopy.current
  private let handler: (@Sendable (Finding) -> Void)?
  /// Closed once it has been stopped.
  let gate = CallGate()

  /// - Parameter handler: nil for one whose findings are waited for.
  init(
    seen: [String: Stamp], on handlerQueue: DispatchQueue? = nil,
    handler: (@Sendable (Finding) -> Void)? = nil
  ) {
    state = Monitor(State(machine: Machine(hasHandler: handler != nil, seen: seen)))
    self.handlerQueue = handlerQueue
    self.handler = handler
  }

  /// How often it was woken.
  var signals: Int { state.withLock { $0.machine.signals } }

  // MARK: Sources

  /// Takes on a source, under the name that it reports changes of, escaped.
  func join(_ name: String, _ source: Source) {
    let left = state.withLock { state in
      state.sources == nil ? source : state.sources?.updateValue(source, forKey: name)
    }
    left?.leave()
  }

  /// Leaves what has gone, once it has been told of that; what has come again meanwhile stays.
  func leaveOnceGone(_ name: String) {
    state.withLock { $0.sources?[name]?.isLeaving = true }
    change(name)
  }

  /// Whether it listens to a name, and goes on with that.
  func keeps(_ name: String) -> Bool {
    state.withLock { state in
      state.sources?[name]?.isLeaving = false
      return state.sources?[name] != nil
    }
  }

  /// Takes on what has come, unless it has it; not here, where others of the container wait.
  ///
  /// What cannot be watched is tried again, ever more rarely, as nobody tells of it once more.
  ///
  /// - Parameter queue: that of the opening for such.
  func joinSoon(
    _ name: String, of container: Container, on queue: DispatchQueue, about subject: LogSubject,
    after pause: Duration = .zero,
    _ join: @escaping @Sendable (Listener) throws(WormholeError) -> Void
  ) {
    let attempt = { @Sendable [weak self] in
      guard let self, state.withLock({ $0.sources != nil }) else { return }
      do throws(WormholeError) {
        if try !keeps(Container.escape(name)) { try join(self) }
      } catch {
        guard error.code != .notAContainer else { return }
        if pause == .zero { container.log(.error, error, about: subject) }
        let next = min(max(pause * 2, .seconds(1)), .seconds(60))
        joinSoon(name, of: container, on: queue, about: subject, after: next, join)
      }
    }
    if pause == .zero {
      queue.async(execute: attempt)
    } else {
      queue.soon(after: pause, attempt)
    }
  }

  func keep(_ watch: FolderWatch) {
    finder.withLock { $0 = watch }
    if state.withLock({ $0.sources == nil }) { finder.withLock { $0.take() }?.stop() }
  }

  /// Goes on until it is stopped, whoever lets go of it.
  func goOn(in begun: Begun) throws(WormholeError) -> Wormhole.Subscription {
    let subscription = try begun.keep(self)
    let (isLate, reason) = state.withLock { state in
      if state.sources != nil { state.begun = begun }
      return (state.sources == nil, state.failure)
    }
    if isLate { begun.forget(self, reason) }
    return subscription
  }

  /// Something may have happened to a name; never waits.
  func change(_ name: String) { perform(state.withLock { $0.machine.change(name) }) }

  /// Nothing more will come, of whatever it watches; never waits.
  func fail(_ error: WormholeError) {
    perform(
      state.withLock { state in
        state.failure = state.failure ?? error
        return state.machine.fail()
      })
  }

  // MARK: Looking

  private func perform(_ action: Machine.Action) {
    switch action {
    case .none: break
    case .look: queue.afterTelling { self.look() }
    case .end(let waiter): waiter.resume(returning: nil)
    }
  }

  /// Looks at what has changed, and passes on what is news, until there is nothing more to look at,
  /// or nobody to tell.
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

  /// What is news.
  private func findNews() -> Finding? {
    if let failure = takeFailure() { return Finding(failure) }
    while let (name, source) = state.withLock({ state in
      state.machine.nextName().map { ($0, state.sources?[$0]) }
    }) {
      guard let source, let finding = find(name, source) else { continue }
      if case .failed(let error) = finding.stamp, error.mayPass { lookLater(at: name) }
      let isNews = state.withLock { state in
        defer { if state.sources?[name] == nil { state.machine.forget(name) } }
        return state.machine.isNews(name, finding.stamp)
      }
      if isNews { return finding }
    }
    return nil
  }

  /// Looks again though nothing may happen to it any more: what the system has refused for lack of
  /// something was not seen.
  private func lookLater(at name: String) {
    guard state.withLock({ $0.retried.insert(name).inserted }) else { return }
    queue.soon(after: .seconds(1)) { [weak self] in
      guard let self else { return }
      state.withLock { _ = $0.retried.remove(name) }
      change(name)
    }
  }

  /// What a look at one name finds; of what has gone, the word of that.
  private func find(_ name: String, _ source: Source) -> Finding? {
    let finding = source.look()
    guard finding.stamp == .nothing else { return finding }
    let (version, left) = state.withLock { state -> (Int?, Source?) in
      let isLeaving = state.sources?[name]?.isLeaving == true
      let left = isLeaving ? state.sources?.removeValue(forKey: name) : nil
      return (state.machine.version(of: name), left)
    }
    left?.leave()
    // Whoever watches hears of the end of a container otherwise, and once.
    guard let version, case .success = finding.content else { return finding }
    return source.loss(version) ?? finding
  }

  /// What there is to tell last of all, if it is time for that.
  private func takeFailure() -> WormholeError? {
    let failure = state.withLock { $0.machine.takeFailure() ? $0.failure : nil }
    if let failure { leaveAll()?.forget(self, failure) }
    return failure
  }

  /// The next news; nil when it has been stopped, or the task was cancelled.
  func next() async -> Finding? {
    // What was found before the lock was free: that the resumption comes after it, the runtime does
    // not always tell the thread sanitizer.
    defer { state.withLock { _ in } }
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        perform(state.withLock { $0.machine.wait(continuation) })
      }
    } onCancel: {
      stop()
    }
  }

  /// Ends it.
  ///
  /// Once this has returned the handler is not called again; a call under way on another thread is
  /// waited for.
  func stop() {
    // In a copy of the process it has ended already.
    guard owner.isCurrent else { return }
    perform(state.withLock { $0.machine.stop() })
    gate.close()
    let begun = leaveAll()
    defer { begun?.forget(self) }
    gate.drain()
  }

  /// - Returns: what has kept it.
  private func leaveAll() -> Begun? {
    finder.withLock { $0.take() }?.stop()
    let (left, begun) = state.withLock { ($0.sources.take() ?? [:], $0.begun.take()) }
    for source in left.values { source.leave() }
    return begun
  }
}
