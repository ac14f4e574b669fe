internal import Dispatch
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A closure and its actor.
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

extension CallGate {
  /// Calls a closure that is isolated to an actor, unless the gate is closed.
  ///
  /// The gate is checked on the actor, so that nothing happens between the check and the call.
  func call<Element: Sendable>(
    _ handler: IsolatedHandler<Element>, _ element: Element, on actor: isolated (any Actor)?
  ) async {
    var isOpen = false
    call { isOpen = true }
    if isOpen { await handler.body(element) }
  }
}

/// Passes on the meaning of a finding, if it is news, or throws the error for the watcher.
///
/// The element is passed on and not returned. To return a value of a generic type, the runtime
/// looks up each type that the value is wrapped in, which takes half as long as decoding.
typealias Interpreter<Element> =
  @Sendable (_ finding: WatchResult, _ pass: (Element) -> Void) throws(WormholeError) -> Void

/// The sources of a watch, and the interpretation of their findings: the common basis of closures
/// and sequences.
struct WatchPlan<Element: Sendable>: Sendable {
  /// The stamps that count as known from the beginning.
  var seen: [String: Stamp] = [:]
  /// Whether a name without a file is a finding too.
  var reportsAbsence = false
  /// Joins a listener to the sources.
  let join: @Sendable (Listener) throws(WormholeError) -> Void
  /// Makes the interpreter of a watcher; the interpreter passes on nothing for a finding without
  /// news.
  let interpreter: @Sendable () -> Interpreter<Element>

  /// Calls closures until the subscription is stopped.
  func observe(
    in begun: ActiveSubscriptions, on queue: DispatchQueue?,
    _ handler: @escaping @Sendable (Element) -> Void,
    _ failure: @escaping @Sendable (WormholeError) -> Void
  ) throws(WormholeError) -> Subscription {
    let listener = try listener(on: queue, handler, failure)
    return try goOn(listener, in: begun)
  }

  /// Calls closures as long as the returned object is retained.
  func observeBriefly(
    on queue: DispatchQueue?, _ handler: @escaping @Sendable (Element) -> Void,
    _ failure: @escaping @Sendable (WormholeError) -> Void
  ) throws(WormholeError) -> StopOnRelease<Listener> {
    StopOnRelease(try listener(on: queue, handler, failure))
  }

  private func listener(
    on queue: DispatchQueue?, _ handler: @escaping @Sendable (Element) -> Void,
    _ failure: @escaping @Sendable (WormholeError) -> Void
  ) throws(WormholeError) -> Listener {
    if queue != nil { try WormholeError.checkQueues("watch for", "changes") }
    let interpret = interpreter()
    let listener = Listener(seen: seen, reportsAbsence: reportsAbsence, on: queue) { finding in
      do throws(WormholeError) { try interpret(finding, handler) } catch { failure(error) }
    }
    try begin(listener)
    return listener
  }

  private func begin(_ listener: Listener) throws(WormholeError) {
    do throws(WormholeError) {
      try listener.begin()
      try join(listener)
    } catch {
      listener.stop()
      throw error
    }
  }

  private func goOn(
    _ listener: Listener, in begun: ActiveSubscriptions
  ) throws(WormholeError) -> Subscription {
    do throws(WormholeError) {
      return try listener.goOn(in: begun)
    } catch {
      listener.stop()
      throw error
    }
  }

  /// Calls closures from a task, one at a time.
  func observe(
    in begun: ActiveSubscriptions, _ handler: IsolatedHandler<Element>,
    _ failure: IsolatedHandler<WormholeError>
  ) throws(WormholeError) -> Subscription {
    try WormholeError.checkQueues("watch for", "changes")
    let listener = Listener(seen: seen, reportsAbsence: reportsAbsence)
    try begin(listener)
    let watching = try goOn(listener, in: begun)
    let interpret = interpreter()
    listener.begin(calling: { finding in
      do throws(WormholeError) {
        var element: Element?
        try interpret(finding) { element = $0 }
        if let element { await listener.gate.call(handler, element, on: handler.isolation) }
      } catch {
        await listener.gate.call(failure, error, on: failure.isolation)
      }
    })
    return watching
  }

  func map<Other: Sendable>(
    _ transform: @escaping @Sendable (Element) -> Other
  ) -> WatchPlan<Other> {
    let interpreter = interpreter
    return WatchPlan<Other>(
      seen: seen, reportsAbsence: reportsAbsence, join: join,
      interpreter: {
        let interpret = interpreter()
        return { (finding, pass) throws(WormholeError) in
          try interpret(finding) { pass(transform($0)) }
        }
      })
  }

  var updates: Updates<Element> {
    Updates { () throws(WormholeError) in
      try WormholeError.checkQueues("watch for", "changes")
      let listener = Listener(seen: seen, reportsAbsence: reportsAbsence)
      try begin(listener)
      return (StopOnRelease(listener), interpreter())
    }
  }
}

extension SharedContainer {
  /// Returns the handler for a watcher's errors; without a given one, errors are logged.
  func failureHandler(
    _ given: (@Sendable (WormholeError) -> Void)?, about subject: LogSubject = LogSubject()
  ) -> @Sendable (WormholeError) -> Void {
    let storage = storage
    return given ?? { storage.log(.error, $0, about: subject) }
  }

  func isolatedFailureHandler(
    _ given: (@isolated(any) @Sendable (WormholeError) async -> Void)?,
    about subject: LogSubject = LogSubject()
  ) -> IsolatedHandler<WormholeError> {
    let storage = storage
    return IsolatedHandler(given ?? { storage.log(.error, $0, about: subject) })
  }
}
