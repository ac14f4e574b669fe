/// A source of values, which may end with a completion.
public protocol Publisher<Output, Failure> {
  /// The type of the published values.
  associatedtype Output
  /// The type of the failure that ends the publisher; `Never` if it cannot fail.
  associatedtype Failure: Error

  /// Starts a subscription.
  ///
  /// This takes the place of Combine's `receive(subscriber:)`.
  func subscribe(_ observer: Observer<Output, Failure>)
}

/// The types with which subscriptions are described.
public enum Subscribers {
  /// The end of a publisher.
  public enum Completion<Failure: Error> {
    /// No more values follow.
    case finished
    /// A failure has ended the publisher.
    case failure(Failure)
  }
}

extension Subscribers.Completion: Sendable {}
extension Subscribers.Completion: Equatable where Failure: Equatable {}
extension Subscribers.Completion: Hashable where Failure: Hashable {}

/// A publisher that hides its type.
public struct AnyPublisher<Output, Failure: Error>: Publisher, @unchecked Sendable {
  // The closure never changes. Its publisher is used by several threads only if the program does.
  private let start: (Observer<Output, Failure>) -> Void

  init(_ start: @escaping (Observer<Output, Failure>) -> Void) { self.start = start }

  /// Hides the type of a publisher.
  public init<Other: Publisher>(_ publisher: Other)
  where Other.Output == Output, Other.Failure == Failure {
    start = { publisher.subscribe($0) }
  }

  /// Starts a subscription.
  public func subscribe(_ observer: Observer<Output, Failure>) { start(observer) }
}

/// A publisher of one value.
public struct Just<Output>: Publisher {
  /// The publisher never fails.
  public typealias Failure = Never
  /// The value.
  public let output: Output

  /// Publishes a value.
  public init(_ output: Output) { self.output = output }

  /// Delivers the value, and finishes.
  public func subscribe(_ observer: Observer<Output, Never>) {
    observer.receive(output)
    observer.receive(completion: .finished)
  }
}

extension Just: Sendable where Output: Sendable {}

/// A publisher without values.
public struct Empty<Output, Failure: Error>: Publisher, Sendable {
  private let finishes: Bool

  /// Creates a publisher that finishes at once, or never.
  public init(completeImmediately: Bool = true) { finishes = completeImmediately }

  /// Finishes, unless the publisher never does.
  public func subscribe(_ observer: Observer<Output, Failure>) {
    if finishes { observer.receive(completion: .finished) }
  }
}

/// A publisher that fails at once.
public struct Fail<Output, Failure: Error>: Publisher, Sendable {
  /// The failure.
  public let error: Failure

  /// Creates a publisher that fails.
  public init(error: Failure) { self.error = error }

  /// Creates a publisher that fails, of a stated type.
  public init(outputType: Output.Type, failure: Failure) { error = failure }

  /// Delivers the failure.
  public func subscribe(_ observer: Observer<Output, Failure>) {
    observer.receive(completion: .failure(error))
  }
}

/// A publisher of the one result of work that starts when the publisher is created.
public final class Future<Output, Failure: Error>: Publisher, @unchecked Sendable {
  // The state is behind a lock.
  private let state = Guarded((result: Result<Output, Failure>?.none, observers: [Target]()))

  /// The function that receives the result; a second call does nothing.
  public typealias Promise = (Result<Output, Failure>) -> Void
  private typealias Target = Observer<Output, Failure>

  /// Calls a closure at once, which starts the work.
  public init(_ attemptToFulfill: @escaping (@escaping Promise) -> Void) {
    attemptToFulfill { self.fulfill($0) }
  }

  /// Delivers the result as soon as it is known.
  public func subscribe(_ observer: Observer<Output, Failure>) {
    let result = state.withLock { state in
      if state.result == nil { state.observers.append(observer) }
      return state.result
    }
    if let result { deliver(result, to: observer) }
  }

  private func fulfill(_ result: Result<Output, Failure>) {
    let observers = state.withLock { state -> [Target] in
      guard state.result == nil else { return [] }
      state.result = result
      defer { state.observers = [] }
      return state.observers
    }
    for observer in observers { deliver(result, to: observer) }
  }

  private func deliver(_ result: Result<Output, Failure>, to observer: Target) {
    switch result {
    case .success(let value):
      observer.receive(value)
      observer.receive(completion: .finished)
    case .failure(let error): observer.receive(completion: .failure(error))
    }
  }
}
