import Foundation

/// One step of a subscription: receives values, then at most one completion.
///
/// Events are delivered one at a time, in the order of ``enqueue(_:)``, by the threads that call
/// ``deliver(atMost:)``. After the completion or a cancellation no event is delivered, the closures
/// are released, and the subscription to the publisher before it is cancelled. The recursive lock
/// is held while a closure runs, because a closure may send the next value to its own publisher.
/// ``cancel()`` does not take that lock: a thread can cancel while another one delivers.
public final class Observer<Input, Failure: Error>: @unchecked Sendable {
  // All state is accessed only under the lock.
  private let delivery = NSRecursiveLock()
  private let lock = NSLock()
  private var receiveValue: ((Input) -> Void)?
  private var receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)?
  private var pending: [Event] = []
  private var isComplete = false
  private var isOver = false
  private var upstream: [AnyCancellable] = []

  enum Event {
    case value(Input)
    case completion(Subscribers.Completion<Failure>)
  }

  init(
    completion: @escaping (Subscribers.Completion<Failure>) -> Void,
    value: @escaping (Input) -> Void
  ) {
    (receiveValue, receiveCompletion) = (value, completion)
  }

  /// Delivers a value, after the events that wait.
  func receive(_ value: Input) {
    enqueue(.value(value))
    deliver()
  }

  /// Delivers the completion, after the events that wait.
  func receive(completion: Subscribers.Completion<Failure>) {
    enqueue(.completion(completion))
    deliver()
  }

  /// Adds an event, unless the subscription is complete; calls nothing.
  func enqueue(_ event: Event) {
    locked {
      guard !isComplete, !isOver else { return }
      if case .completion = event { isComplete = true }
      pending.append(event)
    }
  }

  /// Delivers the events that wait.
  func deliver(atMost count: Int = .max) {
    delivery.lock()
    defer { delivery.unlock() }
    var left = count
    while left > 0, let next = next() {
      next()
      left -= 1
    }
  }

  private func next() -> (() -> Void)? {
    let (call, isLast): ((() -> Void)?, Bool) = locked {
      guard !isOver, !pending.isEmpty else { return (nil, false) }
      switch pending.removeFirst() {
      case .value(let value): return (receiveValue.map { call in { call(value) } }, false)
      case .completion(let completion):
        return (receiveCompletion.map { call in { call(completion) } }, true)
      }
    }
    if isLast { cancel() }
    return call
  }

  /// Ends the subscription.
  func cancel() {
    // Released after the lock: a release may run any code.
    let released = locked {
      defer {
        (isOver, pending, upstream) = (true, [], [])
        (receiveValue, receiveCompletion) = (nil, nil)
      }
      return (receiveValue, receiveCompletion, pending, upstream)
    }
    for upstream in released.3 { upstream.cancel() }
  }

  /// Cancels an activity when the subscription ends, at once if it has ended.
  func follow(_ cancellable: AnyCancellable) {
    let isOver = locked {
      if !self.isOver { upstream.append(cancellable) }
      return self.isOver
    }
    if isOver { cancellable.cancel() }
  }

  /// The observer of a publisher before this step, with the same failures.
  func step<Other>(_ value: @escaping (Other) -> Void) -> Observer<Other, Failure> {
    step(completion: { self.receive(completion: $0) }, value)
  }

  /// The observer of a publisher before this step.
  func step<Other, OtherFailure: Error>(
    completion: @escaping (Subscribers.Completion<OtherFailure>) -> Void,
    _ value: @escaping (Other) -> Void
  ) -> Observer<Other, OtherFailure> {
    let observer = Observer<Other, OtherFailure>(completion: completion, value: value)
    follow(AnyCancellable { observer.cancel() })
    return observer
  }

  private func locked<Result>(_ body: () -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return body()
  }
}

/// A value that several threads change.
final class Guarded<Value>: @unchecked Sendable {
  // The value is accessed only under the lock.
  private let lock = NSLock()
  private var value: Value

  init(_ value: Value) { self.value = value }

  func withLock<Result>(_ body: (inout Value) -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return body(&value)
  }
}
