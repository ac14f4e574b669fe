package import Dispatch
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The actor to which a closure of the program's is isolated, as a place to call the closure.
///
/// The headers of devices declare handlers without `@Sendable`. So a handler that is written in a
/// class of the main actor is isolated to the main actor, and uses the object's properties. The
/// drop-in modules declare the same handlers as `@isolated(any)`, which takes such closures in both
/// language modes and makes their isolation a value. A handler with an isolation is called there,
/// and never on another thread. A handler without an isolation is called on the queue that the
/// module's documentation states.
package struct Isolation: Sendable {
  private enum Place: Sendable {
    case none
    case main
    case lane(ActorLane)
  }

  private let place: Place
  /// Its log entry says that no thread runs the main queue.
  private static let main = CallbackQueue(for: "a closure of the main actor")

  /// - Parameter actor: the value of `isolation` of an `@isolated(any)` closure.
  package init(_ actor: (any Actor)?) {
    place =
      switch actor {
      case _ where Mutants.has(.ignoreIsolation): .none
      case nil: .none
      case let actor? where actor === MainActor.shared: .main
      case let actor?: .lane(ActorLane(actor))
      }
  }

  /// Runs the body where the isolation requires it, after the bodies given before; without an
  /// isolation, on the current thread before the function returns.
  package func run(_ body: @escaping @Sendable () -> Void) {
    switch place {
    case .none: body()
    case .main: Self.main.call(body)
    case .lane(let lane): lane.call(body)
    }
  }

  /// Runs the body where the isolation requires it; without an isolation, on the queue.
  package func run(on queue: CallbackQueue, _ body: @escaping @Sendable () -> Void) {
    switch place {
    case .none: queue.call(body)
    // A queue of the module's own names its callback in the log.
    case .main: (queue.queue === DispatchQueue.main ? queue : Self.main).call(body)
    case .lane(let lane): lane.call(body)
    }
  }

  /// Runs the body where the isolation requires it; without an isolation, on the queue.
  package func run(on queue: DispatchQueue, _ body: @escaping @Sendable () -> Void) {
    if case .none = place { queue.async(execute: body) } else { run(body) }
  }

  /// Whether the current code runs where the isolation requires it.
  package var isHere: Bool {
    switch place {
    case .none: true
    case .main: Self.isMainQueueCurrent
    case .lane(let lane): lane.isCurrent
    }
  }

  /// Whether the current code runs on the main queue.
  package static var isMainQueueCurrent: Bool { DispatchQueue.getSpecific(key: mainKey) == true }

  private static let mainKey = {
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    return key
  }()

  /// Whether the isolation is the main actor.
  package var isMain: Bool { if case .main = place { true } else { false } }

  /// Whether the closure may be called on the queue that the program has chosen.
  package var isNone: Bool { if case .none = place { true } else { false } }
}

/// A closure of the program's with its isolation.
package struct Handler<Argument>: @unchecked Sendable {
  // The closure is called where its isolation requires it; without an isolation, on the thread that
  // the program expects, as on devices.

  package let isolation: Isolation
  /// The closure as the program has given it.
  package let body: @isolated(any) (Argument) -> Void

  package init(_ body: @escaping @isolated(any) (Argument) -> Void) {
    isolation = Isolation(body.isolation)
    self.body = body
  }

  /// Takes a closure with two parameters.
  package init<First, Second>(
    _ body: @escaping @isolated(any) (First, Second) -> Void
  ) where Argument == (First, Second) {
    isolation = Isolation(body.isolation)
    // As in `callHere`: the isolation is kept beside the closure.
    let body = unsafeBitCast(body, to: ((First, Second) -> Void).self)
    self.body = { body($0.0, $0.1) }
  }

  /// Calls the closure where its isolation requires it; without an isolation, on the queue.
  ///
  /// - Parameter argument: returns the argument at the moment of the call; nil if the call is no
  ///   longer wanted.
  package func call(on queue: DispatchQueue, _ argument: @escaping @Sendable () -> Argument?) {
    isolation.run(on: queue) { if let argument = argument() { callHere(argument) } }
  }

  /// Calls the closure on the current thread, where its isolation must permit it.
  package func callHere(_ argument: Argument) {
    // An `@isolated(any)` closure is called like any other: its isolation is data of the closure.
    // The language demands `await` for the change of the thread, which has happened already.
    unsafeBitCast(body, to: ((Argument) -> Void).self)(argument)
  }

  /// Calls the closure where its isolation requires it: before the function returns, if the current
  /// code runs there, or if the closure has no isolation.
  package func call(_ argument: Argument) {
    if isolation.isHere { return callHere(argument) }
    // No other code has the argument of this call.
    let carried = UncheckedBox(argument)
    isolation.run { callHere(carried.value) }
  }
}

/// Runs bodies on an actor, in the order of the calls.
///
/// A task for each body would lose the order: tasks may start in any order.
private final class ActorLane: Sendable {
  private let bodies: AsyncStream<@Sendable () -> Void>.Continuation
  private let thread: Monitor<UInt?>

  init(_ actor: any Actor) {
    let (stream, bodies) = AsyncStream<@Sendable () -> Void>.makeStream()
    let thread = Monitor(UInt?.none)
    (self.bodies, self.thread) = (bodies, thread)
    // The task does not retain the lane, whose end ends the stream.
    Task { for await body in stream { await Self.run(body, thread, on: actor) } }
  }

  deinit { bodies.finish() }

  /// Whether a body of the lane runs on the current thread.
  var isCurrent: Bool { thread.withLock { $0 } == Thread.currentNumber }

  func call(_ body: @escaping @Sendable () -> Void) { bodies.yield(body) }

  private static func run(
    _ body: @Sendable () -> Void, _ thread: Monitor<UInt?>, on actor: isolated any Actor
  ) {
    thread.withLock { $0 = Thread.currentNumber }
    body()
    thread.withLock { $0 = nil }
  }
}
