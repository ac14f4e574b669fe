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
}

/// Something that a listener can look at.
protocol Feed: AnyObject, Sendable {
  func look() -> Finding
}

/// One watcher: carries out what ``WatchMachine`` decides.
///
/// It is told of changes by the watcher, and then only notes them. Once all have been told it
/// looks, on the watcher's thread if another one is free to wait, or else on a queue of its own: so
/// nobody waits for it. There it calls the handler too, unless that has a queue. Its feeds keep it
/// until it is stopped, which is up to its owner.
final class Listener: Sendable {
  private typealias Machine = WatchMachine<CheckedContinuation<Finding?, Never>>

  /// A feed, and how to be rid of it.
  private struct Source {
    let feed: any Feed
    let leave: @Sendable () -> Void
  }

  private let machine: Monitor<Machine>
  private let sources = Monitor<[String: Source]?>([:])
  /// What keeps listening for further sources, if anything does.
  private let finder = Monitor<FolderWatch?>(nil)
  private let queue = DispatchQueue(label: "wormhole.watch")
  private let handlerQueue: DispatchQueue?
  private let handler: (@Sendable (Finding) -> Void)?

  /// - Parameter handler: nil for one whose findings are waited for.
  init(
    seen: [String: Stamp], on handlerQueue: DispatchQueue? = nil,
    handler: (@Sendable (Finding) -> Void)? = nil
  ) {
    machine = Monitor(Machine(hasHandler: handler != nil, seen: seen))
    self.handlerQueue = handlerQueue
    self.handler = handler
  }

  /// How often it was woken.
  var signals: Int { machine.withLock { $0.signals } }

  // MARK: Sources

  /// Takes on a feed, under the name that it reports changes of.
  func join(_ name: String, _ feed: any Feed, leave: @escaping @Sendable () -> Void) {
    let isLate = sources.withLock { sources in
      sources?[name] = Source(feed: feed, leave: leave)
      return sources == nil
    }
    if isLate { leave() }
  }

  func leave(_ name: String) {
    sources.withLock { $0?.removeValue(forKey: name) }?.leave()
  }

  func hasJoined(_ name: String) -> Bool { sources.withLock { $0?[name] != nil } }

  func keep(_ watch: FolderWatch) {
    finder.withLock { $0 = watch }
    if machine.withLock({ $0.isStopped }) { finder.withLock { $0.take() }?.stop() }
  }

  /// Something may have happened to a name; never waits.
  func change(_ name: String) { perform(machine.withLock { $0.change(name) }) }

  // MARK: Looking

  private func perform(_ action: Machine.Action) {
    switch action {
    case .none: break
    case .look:
      if !Watcher.shared.afterwards({ self.look() }) { queue.async { self.look() } }
    case .end(let waiter): waiter.resume(returning: nil)
    }
  }

  /// Looks at what has changed, and passes on what is news, until there is nothing more to look at,
  /// or nobody to tell.
  private func look() {
    repeat {
      guard let finding = findNews() else { continue }
      if let handlerQueue {
        handlerQueue.async {
          self.call(finding)
          self.perform(self.machine.withLock { $0.endLook() })
        }
        return
      }
      call(finding)
    } while machine.withLock({ $0.endLook() }).isLook
  }

  private func findNews() -> Finding? {
    while let name = machine.withLock({ $0.nextName() }) {
      guard let feed = sources.withLock({ $0?[name]?.feed }) else { continue }
      let finding = feed.look()
      if machine.withLock({ $0.isNews(name, finding.stamp) }) { return finding }
    }
    return nil
  }

  private func call(_ finding: Finding) {
    guard let handler else {
      machine.withLock { $0.takeWaiter() }?.resume(returning: finding)
      return
    }
    let thread = Thread.currentNumber
    guard machine.withLock({ $0.enter(thread) }) else { return }
    handler(finding)
    machine.signal { $0.leave() }
  }

  /// The next news; nil when it has been stopped, or the task was cancelled.
  func next() async -> Finding? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        perform(machine.withLock { $0.wait(continuation) })
      }
    } onCancel: {
      stop()
    }
  }

  /// Calls what is isolated to an actor; not once it has been stopped there.
  ///
  /// Asked on that actor, so that nothing comes between the question and the call.
  func call<Element: Sendable>(
    _ handler: IsolatedHandler<Element>, _ element: Element, on actor: isolated (any Actor)?
  ) async {
    guard !machine.withLock({ $0.isStopped }) else { return }
    await handler.body(element)
  }

  /// Ends it.
  ///
  /// Once this has returned the handler is not called again; a call under way on another thread is
  /// waited for.
  func stop() {
    perform(machine.withLock { $0.stop() })
    finder.withLock { $0.take() }?.stop()
    let left = sources.withLock { $0.take() } ?? [:]
    for source in left.values { source.leave() }
    let here = Thread.currentNumber
    _ = machine.wait(until: nil) { machine -> Bool? in
      machine.callingThread == nil || machine.callingThread == here ? true : nil
    }
  }
}
