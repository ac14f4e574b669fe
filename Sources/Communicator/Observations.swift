public import Dispatch
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholeSyscalls

/// The identity of an observer, to end the observation.
public struct Observation: Hashable, Sendable {
  let number: Int
}

/// The observers of a type.
///
/// May be used from any thread. Values that arrive before the type has an observer, and that cannot
/// stay in the queue of the container, wait for the first observer, up to a thousand.
public final class Observations<Value>: @unchecked Sendable {
  // The state is behind the monitor; each value is passed on, and used by its receiver alone.

  private struct Observer {
    let queue: DispatchQueue
    let handler: Handler<Value>
  }

  private struct State {
    var next = 0
    var all: [Int: Observer] = [:]
    var early: [Value] = []
  }

  private let state = Monitor(State())
  private let keepsEarly: Bool
  private static var most: Int { 1000 }

  /// - Parameter keepsEarly: whether a value without an observer waits for the first observer.
  init(keepingEarly keepsEarly: Bool = true) { self.keepsEarly = keepsEarly }

  var isEmpty: Bool { state.withLock { $0.all.isEmpty } }

  func add(
    _ queue: DispatchQueue, _ handler: @escaping @isolated(any) (Value) -> Void
  ) -> Observation {
    let observer = Observer(queue: queue, handler: Handler(handler))
    return state.withLock { state in
      state.next += 1
      state.all[state.next] = observer
      // Under the lock, before any other value can arrive.
      for value in state.early { Self.tell(observer, value) }
      state.early = []
      return Observation(number: state.next)
    }
  }

  func remove(_ observation: Observation) {
    let gone = state.withLock { $0.all.removeValue(forKey: observation.number) }
    _ = gone
  }

  func tell(_ value: Value) {
    let isDropped = state.withLock { state in
      guard state.all.isEmpty else {
        for observer in state.all.sorted(by: { $0.key < $1.key }) {
          Self.tell(observer.value, value)
        }
        return false
      }
      guard keepsEarly, state.early.count < Self.most else { return keepsEarly }
      state.early.append(value)
      return false
    }
    if isDropped {
      DropInLog.tell(
        .warning,
        "dropped a received \(Value.self): no observer is registered, and \(Self.most) values "
          + "wait already; register an observer with 'observe'")
    }
  }

  private static func tell(_ observer: Observer, _ value: Value) {
    // For this observer alone.
    let carried = UncheckedBox(value)
    observer.handler.isolation.run(on: observer.queue) {
      observer.handler.callHere(carried.value)
    }
  }
}

/// A type whose values can be observed.
public protocol Observable {
  /// The observers of the type.
  static var observations: Observations<Self> { get }
}

extension Observable {
  /// Calls a closure with each value that arrives from now on, and activates the session.
  ///
  /// A type may have any number of observers, on any thread. A guaranteed message that arrives
  /// before its type is observed stays in the queue until an observer is added.
  ///
  /// - Parameters:
  ///   - queue: the queue on which the closure is called.
  ///   - handler: the closure; one that is isolated to an actor is called there, and not on the
  ///     queue.
  @discardableResult
  public static func observe(
    queue: DispatchQueue = .communicator, handler: @escaping @isolated(any) (Self) -> Void
  ) -> Observation {
    let observation = observations.add(queue, handler)
    Communicator.shared.take()
    return observation
  }

  /// Ends the calls of one closure; calls in progress still arrive.
  public static func unobserve(_ observation: Observation) {
    observations.remove(observation)
    Communicator.shared.take()
  }
}

extension DispatchQueue {
  /// The default queue for observers: a serial queue.
  public static let communicator = DispatchQueue(label: "wormhole.communicator")
}

/// Contexts, for programs that observe `Content` instead of `Context`, as the library's README
/// does.
extension Content {
  /// Does the same as `Context.observe`: the closure receives the context.
  @discardableResult
  public static func observe(
    queue: DispatchQueue = .communicator, handler: @escaping @isolated(any) (Context) -> Void
  ) -> Observation { Context.observe(queue: queue, handler: handler) }

  /// Does the same as `Context.unobserve`.
  public static func unobserve(_ observation: Observation) { Context.unobserve(observation) }
}

extension ImmediateMessage: Observable {
  /// The observers of messages.
  public static let observations = Observations<ImmediateMessage>()
}

extension InteractiveImmediateMessage: Observable {
  /// The observers of messages with a reply.
  public static let observations = Observations<InteractiveImmediateMessage>()
}

extension GuaranteedMessage: Observable {
  /// The observers of guaranteed messages.
  public static let observations = Observations<GuaranteedMessage>()
}

extension Blob: Observable {
  /// The observers of blobs.
  public static let observations = Observations<Blob>()
}

extension Context: Observable {
  /// The observers of contexts.
  public static let observations = Observations<Context>()
}

extension ComplicationInfo: Observable {
  /// The observers of complication contents.
  public static let observations = Observations<ComplicationInfo>()
}

extension Reachability: Observable {
  /// The observers of the counterpart's reachability.
  public static let observations = Observations<Reachability>(keepingEarly: false)
}

extension Communicator.State: Observable {
  /// The observers of the session's state.
  public static let observations = Observations<Communicator.State>(keepingEarly: false)
}

extension WatchState: Observable {
  /// The observers of the phone's information about its watch.
  public static let observations = Observations<WatchState>(keepingEarly: false)
}

extension PhoneState: Observable {
  /// The observers of the watch's information about its phone.
  public static let observations = Observations<PhoneState>(keepingEarly: false)
}
