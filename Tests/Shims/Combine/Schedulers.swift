public import Foundation

/// A length of time, for the operators that wait.
public struct SchedulerInterval: Hashable, Comparable, Sendable, ExpressibleByFloatLiteral,
  ExpressibleByIntegerLiteral
{
  /// The length in seconds.
  public let seconds: Double

  /// The length of a number of seconds.
  public init(floatLiteral seconds: Double) { self.seconds = seconds }
  /// The length of a number of seconds.
  public init(integerLiteral seconds: Int) { self.seconds = Double(seconds) }
  /// The length of a number of seconds.
  public init(_ seconds: TimeInterval) { self.seconds = seconds }

  /// The length of a number of seconds.
  public static func seconds(_ count: Int) -> Self { Self(Double(count)) }
  /// The length of a number of seconds.
  public static func seconds(_ count: Double) -> Self { Self(count) }
  /// The length of a number of milliseconds.
  public static func milliseconds(_ count: Int) -> Self { Self(Double(count) / 1e3) }
  /// The length of a number of microseconds.
  public static func microseconds(_ count: Int) -> Self { Self(Double(count) / 1e6) }
  /// The length of a number of nanoseconds.
  public static func nanoseconds(_ count: Int) -> Self { Self(Double(count) / 1e9) }

  /// Returns whether a length is shorter than another.
  public static func < (left: Self, right: Self) -> Bool { left.seconds < right.seconds }
}

/// A queue or a run loop on which values are delivered.
public protocol Scheduler {
  /// The type of a length of time; the same for all schedulers here.
  typealias SchedulerInterval = Combine.SchedulerInterval

  /// Calls a closure on the queue as soon as possible, and after the closures given before.
  func schedule(_ action: @escaping () -> Void)
  /// Calls a closure on the queue after a length of time.
  func schedule(after interval: SchedulerInterval, _ action: @escaping () -> Void)
}

/// Options of a scheduler, which have no effect here: the argument may be nil.
public struct SchedulerOptions: Sendable {}

extension DispatchQueue: Scheduler {
  /// The name under which Combine has the type of a length of time.
  public enum SchedulerTimeType {
    /// A length of time.
    public typealias Stride = SchedulerInterval
  }

  /// Calls a closure on the queue.
  public func schedule(_ action: @escaping () -> Void) {
    let action = Handed(action)
    async { action.value() }
  }

  /// Calls a closure on the queue after a length of time.
  public func schedule(after interval: SchedulerInterval, _ action: @escaping () -> Void) {
    let action = Handed(action)
    asyncAfter(deadline: .now() + interval.seconds) { action.value() }
  }
}

extension OperationQueue: Scheduler {
  /// The name under which Combine has the type of a length of time.
  public enum SchedulerTimeType {
    /// A length of time.
    public typealias Stride = SchedulerInterval
  }

  /// Adds a closure to the queue.
  public func schedule(_ action: @escaping () -> Void) {
    let action = Handed(action)
    addOperation { action.value() }
  }

  /// Adds a closure to the queue after a length of time.
  public func schedule(after interval: SchedulerInterval, _ action: @escaping () -> Void) {
    let (queue, action) = (Handed(self), Handed(action))
    operationTimers.asyncAfter(deadline: .now() + interval.seconds) {
      queue.value.schedule(action.value)
    }
  }
}

/// A queue of its own gets a thread, however many calls block the threads of the global queues.
private let operationTimers = DispatchQueue(label: "combine.timers")

/// The main run loop's closures go through the main queue, which the main run loop serves: a
/// program that calls `dispatchMain()` runs no run loop.
///
/// A run loop of another thread ends the program: Foundation has no call here that wakes it.
extension RunLoop: Scheduler {
  /// The name under which Combine has the type of a length of time.
  public enum SchedulerTimeType {
    /// A length of time.
    public typealias Stride = SchedulerInterval
  }

  /// Calls a closure on the main queue.
  public func schedule(_ action: @escaping () -> Void) { queue.schedule(action) }

  /// Calls a closure on the main queue after a length of time.
  public func schedule(after interval: SchedulerInterval, _ action: @escaping () -> Void) {
    queue.schedule(after: interval, action)
  }

  private var queue: DispatchQueue {
    precondition(self === RunLoop.main, "only the main run loop can receive; name a queue")
    return .main
  }
}

/// A closure or an object that is handed to another thread.
///
/// As with Combine, whose closures are not `Sendable` either, the program is responsible for what
/// its closures use, because the program names the queue of the closures.
struct Handed<Value>: @unchecked Sendable {
  // One thread at a time uses the value: the subscription's, see ``Observer``.
  let value: Value
  init(_ value: Value) { self.value = value }
}
