extension Subscribers.Completion {
  func mapFailure<Other: Error>(
    _ transform: (Failure) -> Other
  ) -> Subscribers.Completion<Other> {
    switch self {
    case .finished: .finished
    case .failure(let error): .failure(transform(error))
    }
  }
}

extension Publisher {
  /// Publishes another failure in place of the publisher's own.
  public func mapError<Other: Error>(
    _ transform: @escaping (Failure) -> Other
  ) -> AnyPublisher<Output, Other> {
    AnyPublisher { observer in
      subscribe(
        observer.step(completion: { observer.receive(completion: $0.mapFailure(transform)) }) {
          observer.receive($0)
        })
    }
  }

  /// Continues with another publisher after a failure.
  public func `catch`<Other: Publisher>(
    _ handler: @escaping (Failure) -> Other
  ) -> AnyPublisher<Output, Other.Failure> where Other.Output == Output {
    AnyPublisher { observer in
      subscribe(
        observer.step(
          completion: { (completion: Subscribers.Completion<Failure>) in
            switch completion {
            case .finished: observer.receive(completion: .finished)
            case .failure(let error):
              handler(error).subscribe(observer.step { observer.receive($0) })
            }
          }, { observer.receive($0) }))
    }
  }

  /// Publishes a value in place of a failure, and finishes.
  public func replaceError(with value: Output) -> AnyPublisher<Output, Never> {
    `catch` { _ in Just(value) }
  }
}

extension Publisher where Failure == Never {
  /// States a failure for a publisher that never fails.
  public func setFailureType<Other: Error>(to type: Other.Type) -> AnyPublisher<Output, Other> {
    AnyPublisher { observer in
      subscribe(
        observer.step(completion: { _ in observer.receive(completion: .finished) }) {
          observer.receive($0)
        })
    }
  }
}
