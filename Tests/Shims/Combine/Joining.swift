/// The types that join publishers.
public enum Publishers {
  /// Publishes the latest values of two publishers, whenever one of them publishes.
  public struct CombineLatest<First: Publisher, Second: Publisher>: Publisher
  where First.Failure == Second.Failure {
    /// The latest value of each publisher.
    public typealias Output = (First.Output, Second.Output)
    /// The failure of the publishers.
    public typealias Failure = First.Failure

    private let first: First
    private let second: Second

    /// Joins two publishers.
    public init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

    /// Starts a subscription, which finishes when both publishers have finished.
    public func subscribe(_ observer: Observer<Output, Failure>) {
      let state = Guarded((first: First.Output?.none, second: Second.Output?.none))
      let end = JointEnd(observer, of: 2)
      first.subscribe(
        observer.step(completion: end.receive) { value in
          state.withLock { state in
            state.first = value
            // Under the lock, so that the pairs of two threads keep their order.
            if let second = state.second { observer.enqueue(.value((value, second))) }
          }
          observer.deliver()
        })
      second.subscribe(
        observer.step(completion: end.receive) { value in
          state.withLock { state in
            state.second = value
            if let first = state.first { observer.enqueue(.value((first, value))) }
          }
          observer.deliver()
        })
    }
  }

  /// Publishes the values of two publishers as they arrive.
  public struct Merge<First: Publisher, Second: Publisher>: Publisher
  where First.Failure == Second.Failure, First.Output == Second.Output {
    /// The values of the publishers.
    public typealias Output = First.Output
    /// The failure of the publishers.
    public typealias Failure = First.Failure

    private let first: First
    private let second: Second

    /// Joins two publishers.
    public init(_ first: First, _ second: Second) { (self.first, self.second) = (first, second) }

    /// Starts a subscription, which finishes when both publishers have finished.
    public func subscribe(_ observer: Observer<Output, Failure>) {
      let end = JointEnd(observer, of: 2)
      first.subscribe(observer.step(completion: end.receive) { observer.receive($0) })
      second.subscribe(observer.step(completion: end.receive) { observer.receive($0) })
    }
  }
}

/// The completion of a publisher that joins several: at the first failure, or after all.
private struct JointEnd<Output, Failure: Error> {
  private let observer: Observer<Output, Failure>
  private let left: Guarded<Int>

  init(_ observer: Observer<Output, Failure>, of count: Int) {
    (self.observer, left) = (observer, Guarded(count))
  }

  func receive(_ completion: Subscribers.Completion<Failure>) {
    let isLast = left.withLock { left in
      left -= 1
      return left == 0
    }
    if case .failure = completion { return observer.receive(completion: completion) }
    if isLast { observer.receive(completion: .finished) }
  }
}

extension Publisher {
  /// Publishes the latest values of this and another publisher, whenever one of them publishes.
  public func combineLatest<Other: Publisher>(
    _ other: Other
  ) -> AnyPublisher<(Output, Other.Output), Failure> where Other.Failure == Failure {
    Publishers.CombineLatest(self, other).eraseToAnyPublisher()
  }

  /// Publishes the result of a closure that gets the latest values of two publishers.
  public func combineLatest<Other: Publisher, Result>(
    _ other: Other, _ transform: @escaping (Output, Other.Output) -> Result
  ) -> AnyPublisher<Result, Failure> where Other.Failure == Failure {
    combineLatest(other).map { transform($0.0, $0.1) }
  }

  /// Publishes the latest values of three publishers, whenever one of them publishes.
  public func combineLatest<Second: Publisher, Third: Publisher>(
    _ second: Second, _ third: Third
  ) -> AnyPublisher<(Output, Second.Output, Third.Output), Failure>
  where Second.Failure == Failure, Third.Failure == Failure {
    combineLatest(second).combineLatest(third).map { ($0.0.0, $0.0.1, $0.1) }
  }

  /// Publishes the result of a closure that gets the latest values of three publishers.
  public func combineLatest<Second: Publisher, Third: Publisher, Result>(
    _ second: Second, _ third: Third,
    _ transform: @escaping (Output, Second.Output, Third.Output) -> Result
  ) -> AnyPublisher<Result, Failure> where Second.Failure == Failure, Third.Failure == Failure {
    combineLatest(second, third).map { transform($0.0, $0.1, $0.2) }
  }

  /// Publishes the values of this and another publisher as they arrive.
  public func merge<Other: Publisher>(
    with other: Other
  ) -> AnyPublisher<Output, Failure> where Other.Failure == Failure, Other.Output == Output {
    Publishers.Merge(self, other).eraseToAnyPublisher()
  }

  /// Publishes the values of all publishers that a closure makes of the values.
  public func flatMap<Other: Publisher>(
    _ transform: @escaping (Output) -> Other
  ) -> AnyPublisher<Other.Output, Failure> where Other.Failure == Failure {
    AnyPublisher { observer in
      // The publisher itself counts, and each publisher that it has made.
      let left = Guarded(1)
      func end(_ completion: Subscribers.Completion<Failure>) {
        let isLast = left.withLock { left in
          left -= 1
          return left == 0
        }
        if case .failure = completion { return observer.receive(completion: completion) }
        if isLast { observer.receive(completion: .finished) }
      }
      subscribe(
        observer.step(completion: end) { value in
          left.withLock { $0 += 1 }
          transform(value).subscribe(observer.step(completion: end) { observer.receive($0) })
        })
    }
  }
}
