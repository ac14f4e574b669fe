public import Dispatch
internal import DropIns
internal import SharedContainer
internal import Syscalls

/// One who observes, to be ended by.
public struct Observation: Hashable, Sendable {
  let number: Int
}

/// Those who observe a type.
///
/// May be used from any thread. What comes while nobody has observed the type yet, and cannot be
/// left where it lies, waits for the first, up to a thousand.
public final class Observations<Value>: @unchecked Sendable {
  // All of it is behind the monitor, and values are handed on, and used by nobody else.

  private struct Observer {
    let queue: DispatchQueue
    let handler: @Sendable (Value) -> Void
  }

  private struct State {
    var next = 0
    var all: [Int: Observer] = [:]
    var early: [Value] = []
  }

  private let state = Monitor(State())
  private let keepsEarly: Bool
  private static var most: Int { 1000 }

  /// - Parameter keepsEarly: whether a value that nobody observes waits for whoever does.
  init(keepingEarly keepsEarly: Bool = true) { self.keepsEarly = keepsEarly }

  var isEmpty: Bool { state.withLock { $0.all.isEmpty } }

  func add(_ queue: DispatchQueue, _ handler: @escaping @Sendable (Value) -> Void) -> Observation {
    let observer = Observer(queue: queue, handler: handler)
    return state.withLock { state in
      state.next += 1
      state.all[state.next] = observer
      // Before anything else can come.
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
      DropInLog.tell(.warning, "dropped a \(Value.self): nobody observes it, and many wait")
    }
  }

  private static func tell(_ observer: Observer, _ value: Value) {
    let carried = Carried(value)
    observer.queue.async { observer.handler(carried.value) }
  }

  // Made for one observer and read by it alone.
  private struct Carried: @unchecked Sendable {
    let value: Value
    init(_ value: Value) { self.value = value }
  }
}

/// What can be observed.
public protocol Observable {
  /// Those who do.
  static var observations: Observations<Self> { get }
}

extension Observable {
  /// Calls a closure with each that comes from now on, and activates the session.
  ///
  /// Any number may observe a type, from any thread. What is guaranteed and comes before anybody
  /// observes its type stays where it is until somebody does.
  ///
  /// - Parameter queue: where the closure is called.
  @discardableResult
  @preconcurrency
  public static func observe(
    queue: DispatchQueue = .communicator, handler: @escaping @Sendable (Self) -> Void
  ) -> Observation {
    let observation = observations.add(queue, handler)
    Communicator.shared.take()
    return observation
  }

  /// Ends the calls of one closure; those that are under way still come.
  public static func unobserve(_ observation: Observation) {
    observations.remove(observation)
    Communicator.shared.take()
  }
}

extension DispatchQueue {
  /// Where observers are called that name no other: a serial queue.
  public static let communicator = DispatchQueue(label: "wormhole.communicator")
}

/// States, whoever spells them by their content.
extension Content {
  /// As `Context.observe`, with the content.
  @discardableResult
  @preconcurrency
  public static func observe(
    queue: DispatchQueue = .communicator, handler: @escaping @Sendable (Content) -> Void
  ) -> Observation {
    Context.observe(queue: queue) { handler($0.content) }
  }

  /// As `Context.unobserve`.
  public static func unobserve(_ observation: Observation) { Context.unobserve(observation) }
}

extension ImmediateMessage: Observable {
  /// Those who observe messages.
  public static let observations = Observations<ImmediateMessage>()
}

extension InteractiveImmediateMessage: Observable {
  /// Those who observe messages that want a reply.
  public static let observations = Observations<InteractiveImmediateMessage>()
}

extension GuaranteedMessage: Observable {
  /// Those who observe guaranteed messages.
  public static let observations = Observations<GuaranteedMessage>()
}

extension Blob: Observable {
  /// Those who observe blobs.
  public static let observations = Observations<Blob>()
}

extension Context: Observable {
  /// Those who observe states.
  public static let observations = Observations<Context>()
}

extension ComplicationInfo: Observable {
  /// Those who observe what complications show.
  public static let observations = Observations<ComplicationInfo>()
}

extension Reachability: Observable {
  /// Those who observe how well the counterpart can be reached.
  public static let observations = Observations<Reachability>(keepingEarly: false)
}

extension Communicator.State: Observable {
  /// Those who observe how far the session is.
  public static let observations = Observations<Communicator.State>(keepingEarly: false)
}

extension WatchState: Observable {
  /// Those who observe what the phone knows of its watch.
  public static let observations = Observations<WatchState>(keepingEarly: false)
}

extension PhoneState: Observable {
  /// Those who observe what the watch knows of its phone.
  public static let observations = Observations<PhoneState>(keepingEarly: false)
}
