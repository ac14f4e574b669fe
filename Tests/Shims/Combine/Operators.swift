extension Publisher {
  /// Publishes each value, transformed by a closure.
  public func map<Other>(_ transform: @escaping (Output) -> Other) -> AnyPublisher<Other, Failure> {
    compactMap { .some(transform($0)) }
  }

  /// Publishes the transformed values, without those for which the closure returns nil.
  public func compactMap<Other>(
    _ transform: @escaping (Output) -> Other?
  ) -> AnyPublisher<Other, Failure> {
    AnyPublisher { observer in
      subscribe(
        observer.step { value in
          if let other = transform(value) { observer.receive(other) }
        })
    }
  }

  /// Publishes each value, transformed by a closure; an error of the closure ends the publisher.
  public func tryMap<Other>(
    _ transform: @escaping (Output) throws -> Other
  ) -> AnyPublisher<Other, any Error> {
    AnyPublisher { observer in
      subscribe(
        observer.step(completion: { observer.receive(completion: $0.mapFailure { $0 }) }) { value in
          do {
            observer.receive(try transform(value))
          } catch {
            observer.receive(completion: .failure(error))
          }
        })
    }
  }

  /// Publishes the values for which a closure returns true.
  public func filter(_ isIncluded: @escaping (Output) -> Bool) -> AnyPublisher<Output, Failure> {
    compactMap { isIncluded($0) ? $0 : nil }
  }

  /// Leaves out the first values; for a published property the first value is the current one.
  public func dropFirst(_ count: Int = 1) -> AnyPublisher<Output, Failure> {
    AnyPublisher { observer in
      let left = Guarded(count)
      subscribe(
        observer.step { value in
          let isDropped = left.withLock { left in
            defer { if left > 0 { left -= 1 } }
            return left > 0
          }
          if !isDropped { observer.receive(value) }
        })
    }
  }

  /// Publishes the first value alone, and finishes.
  public func first() -> AnyPublisher<Output, Failure> {
    AnyPublisher { observer in
      subscribe(
        observer.step { value in
          observer.receive(value)
          observer.receive(completion: .finished)
        })
    }
  }

  /// Publishes the first value for which a closure returns true, and finishes.
  public func first(where predicate: @escaping (Output) -> Bool) -> AnyPublisher<Output, Failure> {
    filter(predicate).first()
  }

  /// Leaves out values that equal their predecessor, as a closure compares them.
  public func removeDuplicates(
    by areEqual: @escaping (Output, Output) -> Bool
  ) -> AnyPublisher<Output, Failure> {
    AnyPublisher { observer in
      // The values of a subscription arrive one at a time; the closure runs without the lock.
      let last = Guarded<Output?>(nil)
      subscribe(
        observer.step { value in
          if let before = last.withLock({ $0 }), areEqual(before, value) { return }
          last.withLock { $0 = value }
          observer.receive(value)
        })
    }
  }

  /// Publishes the result of a closure that gets its previous result and each value.
  public func scan<Result>(
    _ initial: Result, _ next: @escaping (Result, Output) -> Result
  ) -> AnyPublisher<Result, Failure> {
    AnyPublisher { observer in
      let last = Guarded(initial)
      subscribe(
        observer.step { value in
          let result = next(last.withLock { $0 }, value)
          last.withLock { $0 = result }
          observer.receive(result)
        })
    }
  }

  /// Calls closures with the values and the completion that pass, and when the subscription is
  /// cancelled.
  public func handleEvents(
    receiveOutput: ((Output) -> Void)? = nil,
    receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)? = nil,
    receiveCancel: (() -> Void)? = nil
  ) -> AnyPublisher<Output, Failure> {
    AnyPublisher { observer in
      let isComplete = Guarded(false)
      observer.follow(
        AnyCancellable {
          let isCancelled = isComplete.withLock { isComplete in
            defer { isComplete = true }
            return !isComplete
          }
          if isCancelled { receiveCancel?() }
        })
      subscribe(
        observer.step(
          completion: { completion in
            isComplete.withLock { $0 = true }
            receiveCompletion?(completion)
            observer.receive(completion: completion)
          },
          { value in
            receiveOutput?(value)
            observer.receive(value)
          }))
    }
  }
}

extension Publisher where Output: Equatable {
  /// Leaves out values that equal their predecessor.
  public func removeDuplicates() -> AnyPublisher<Output, Failure> { removeDuplicates(by: ==) }
}

extension Publisher {
  /// Publishes a value in place of nil.
  public func replaceNil<Wrapped>(
    with value: Wrapped
  ) -> AnyPublisher<Wrapped, Failure> where Output == Wrapped? {
    map { $0 ?? value }
  }
}
