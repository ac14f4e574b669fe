internal import Dispatch
internal import PropertyLists
internal import SharedContainer
internal import Synchronization

/// A closure, and the actor that it runs on.
struct IsolatedHandler<Element: Sendable>: Sendable {
  let isolation: (any Actor)?
  let body: nonisolated(nonsending) @Sendable (Element) async -> Void

  init(_ body: @escaping @isolated(any) @Sendable (Element) async -> Void) {
    isolation = body.isolation
    self.body = { await body($0) }
  }

  init(
    isolation: (any Actor)?,
    _ body: nonisolated(nonsending) @escaping @Sendable (Element) async -> Void
  ) {
    self.isolation = isolation
    self.body = body
  }
}

/// Passes on what a finding means, if that is news, or throws what a watcher is told instead.
///
/// Passes on and does not return: to return what may be a value of any type costs the runtime a
/// look for each type that the value is wrapped in, half as long as to decode it.
typealias Interpreter<Element> =
  @Sendable (_ finding: Finding, _ pass: (Element) -> Void) throws(WormholeError) -> Void

/// What to watch, and how it becomes what the watcher is told: behind both doors, closures and
/// sequences.
struct WatchPlan<Element: Sendable>: Sendable {
  /// What counts as known from the beginning.
  var seen: [String: Stamp] = [:]
  /// Joins a listener to what is watched.
  let join: @Sendable (Listener) throws(WormholeError) -> Void
  /// Makes, for one watcher, what turns findings into elements; nil for what is no news for it.
  let interpreter: @Sendable () -> Interpreter<Element>

  func observe(
    on queue: DispatchQueue?, _ handler: @escaping @Sendable (Element) -> Void,
    _ failure: @escaping @Sendable (WormholeError) -> Void
  ) throws(WormholeError) -> Wormhole.Watching {
    let interpret = interpreter()
    let listener = Listener(seen: seen, on: queue) { finding in
      do throws(WormholeError) { try interpret(finding, handler) } catch { failure(error) }
    }
    // Stops the listener should joining fail.
    let observation = Wormhole.Watching(listener)
    try join(listener)
    return observation
  }

  /// Calls closures from a task, one at a time.
  func observe(
    _ handler: IsolatedHandler<Element>, _ failure: IsolatedHandler<WormholeError>
  ) throws(WormholeError) -> Wormhole.Watching {
    let listener = Listener(seen: seen)
    // Stops the listener should joining fail, and with it ends the task.
    let observation = Wormhole.Watching(listener)
    try join(listener)
    let interpret = interpreter()
    Task.detached {
      while let finding = await listener.next() {
        do throws(WormholeError) {
          var element: Element?
          try interpret(finding) { element = $0 }
          if let element { await listener.call(handler, element, on: handler.isolation) }
        } catch {
          await listener.call(failure, error, on: failure.isolation)
        }
      }
    }
    return observation
  }

  func map<Other: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Other
  ) -> WatchPlan<Other> {
    let interpreter = interpreter
    return WatchPlan<Other>(
      seen: seen, join: join,
      interpreter: {
        let interpret = interpreter()
        return { (finding, pass) throws(WormholeError) in
          try interpret(finding) { pass(transform($0)) }
        }
      })
  }

  var updates: Wormhole.Updates<Element> {
    Wormhole.Updates { () throws(WormholeError) in
      let listener = Listener(seen: seen)
      let subscription = Subscription(listener, interpreter())
      try join(listener)
      return subscription
    }
  }
}

extension Wormhole {
  /// What a watcher's error is told to, if it has not said.
  func failureHandler(
    _ given: (@Sendable (WormholeError) -> Void)?
  ) -> @Sendable (WormholeError) -> Void {
    let log = options.log
    return given ?? { log(.error, "\($0)") }
  }

  func isolatedFailureHandler(
    _ given: (@isolated(any) @Sendable (WormholeError) async -> Void)?
  ) -> IsolatedHandler<WormholeError> {
    let log = options.log
    return IsolatedHandler(given ?? { log(.error, "\($0)") })
  }

  func watching<Value: Codable & Sendable>(
    _ channels: [Channel<Value>], present: Bool
  ) -> WatchPlan<Snapshot<Value>> {
    WatchPlan(
      seen: present ? [:] : known(channels.compactMap { try? $0.slot.get() }),
      join: { (listener) throws(WormholeError) in
        for channel in channels { try self.feeds.join(listener, channel.slot.get()) }
      }, interpreter: { self.snapshots() })
  }

  func watching<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type, present: Bool
  ) -> WatchPlan<Snapshot<Value>> {
    let names = present ? [] : (try? channels(prefix: prefix)) ?? []
    return WatchPlan(
      seen: known(names.compactMap { try? container.slot(.channels, $0) }),
      join: { (listener) throws(WormholeError) in
        try self.joinAll(prefix, listener)
      }, interpreter: { self.snapshots() })
  }

  private func known(_ slots: [Slot]) -> [String: Stamp] {
    let limits = options.limits
    return Dictionary(slots.map { ($0.name, Finding(reading: $0, limits).stamp) }) { $1 }
  }

  private func snapshots<Value: Codable & Sendable>() -> Interpreter<Snapshot<Value>> {
    let limits = options.limits
    return { (finding, pass) throws(WormholeError) in
      let reader = SlotReader(limits: limits, name: finding.name, operation: "read channel")
      guard let (file, isRecovered) = try reader.open(finding) else { return }
      pass(try reader.snapshot(of: file, isRecovered: isRecovered))
    }
  }

  /// Has a listener told of all channels with the prefix, also of those that come later.
  private func joinAll(_ prefix: String, _ listener: Listener) throws(WormholeError) {
    let (container, feeds, queue) = (container, feeds, Self.finding)
    // Told on the watcher's thread; what has to be done is done elsewhere.
    let watch = try container.watchNames(in: .channels) { [weak listener] change in
      switch change {
      case .came(let name) where name.hasPrefix(prefix):
        queue.async { [weak listener] in
          guard let listener, !listener.hasJoined(name) else { return }
          do throws(WormholeError) {
            try feeds.join(listener, container.slot(.channels, name))
          } catch {
            container.options.environment.log(.error, "\(error)")
          }
        }
      case .went(let name) where name.hasPrefix(prefix):
        queue.async { [weak listener] in listener?.leave(name) }
      default: break
      }
    }
    listener.keep(watch)
  }
}
