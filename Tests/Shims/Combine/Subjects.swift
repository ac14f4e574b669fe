/// A publisher whose values the program sends.
public protocol Subject<Output, Failure>: AnyObject, Publisher {
  /// Sends a value to all subscriptions.
  func send(_ value: Output)
  /// Ends the subject; nothing is sent afterwards.
  func send(completion: Subscribers.Completion<Failure>)
}

extension Subject where Output == Void {
  /// Notifies all subscriptions.
  public func send() { send(()) }
}

/// A subject without a memory: a subscription receives what is sent after it has begun.
public final class PassthroughSubject<Output, Failure: Error>: Subject, @unchecked Sendable {
  // The state is behind a lock.
  private let outlets = Outlets<Output, Failure>()

  /// Creates a subject.
  public init() {}

  /// Sends a value to all subscriptions, on the calling thread.
  public func send(_ value: Output) { outlets.send(.value(value)) }

  /// Ends the subject; nothing is sent afterwards.
  public func send(completion: Subscribers.Completion<Failure>) {
    outlets.send(.completion(completion))
  }

  /// Starts a subscription.
  public func subscribe(_ observer: Observer<Output, Failure>) { outlets.add(observer) }
}

/// A subject that has a value: a subscription receives the current value first.
public final class CurrentValueSubject<Output, Failure: Error>: Subject, @unchecked Sendable {
  // The state is behind a lock.
  private let outlets: Outlets<Output, Failure>

  /// Creates a subject with its first value.
  public init(_ value: Output) { outlets = Outlets(value) }

  /// The current value; setting it sends the new value.
  public var value: Output {
    get { outlets.latest! }
    set { send(newValue) }
  }

  /// Sets the current value, and sends it to all subscriptions, on the calling thread.
  public func send(_ value: Output) { outlets.send(.value(value)) }

  /// Ends the subject; nothing is sent afterwards.
  public func send(completion: Subscribers.Completion<Failure>) {
    outlets.send(.completion(completion))
  }

  /// Starts a subscription.
  public func subscribe(_ observer: Observer<Output, Failure>) { outlets.add(observer) }
}

/// The subscriptions of a subject.
///
/// An event is added to all observers under one lock and delivered without it: every observer
/// receives the events of all threads in one order, and a new observer misses none after its first.
final class Outlets<Output, Failure: Error>: @unchecked Sendable {
  // The state is behind a lock.
  private let state: Guarded<State>

  private struct State {
    var latest: Output?
    var isKept: Bool
    var completion: Subscribers.Completion<Failure>?
    var next = 0
    var observers: [(number: Int, observer: Observer<Output, Failure>)] = []
  }

  init() { state = Guarded(State(latest: nil, isKept: false)) }

  init(_ value: Output) { state = Guarded(State(latest: value, isKept: true)) }

  var latest: Output? { state.withLock { $0.latest } }

  /// Sets the value that a new subscription receives, without sending it.
  func keep(_ value: Output) {
    let old = state.withLock { state in
      defer { state.latest = value }
      return state.latest
    }
    // A release may run any code, and follows the lock.
    _ = old
  }

  /// Subscriptions are called in the order in which they began.
  func send(_ event: Observer<Output, Failure>.Event) {
    let (observers, old) = state.withLock { state -> ([Observer<Output, Failure>], Output?) in
      guard state.completion == nil else { return ([], nil) }
      let old = state.latest
      let observers = state.observers.map(\.observer)
      switch event {
      case .value(let value): if state.isKept { state.latest = value }
      case .completion(let completion): (state.completion, state.observers) = (completion, [])
      }
      for observer in observers { observer.enqueue(event) }
      return (observers, old)
    }
    for observer in observers { observer.deliver() }
    _ = old
  }

  func add(_ observer: Observer<Output, Failure>) {
    let number = state.withLock { state -> Int in
      if let completion = state.completion {
        observer.enqueue(.completion(completion))
        return 0
      }
      if state.isKept, let latest = state.latest { observer.enqueue(.value(latest)) }
      state.next += 1
      state.observers.append((state.next, observer))
      return state.next
    }
    observer.follow(AnyCancellable { [weak self] in self?.remove(number) })
    observer.deliver()
  }

  private func remove(_ number: Int) {
    let old = state.withLock { state in
      defer { state.observers.removeAll { $0.number == number } }
      return state.observers.first { $0.number == number }
    }
    _ = old
  }
}
