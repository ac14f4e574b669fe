extension Publisher {
  /// Calls closures with each value and with the completion, until the returned object is cancelled
  /// or released.
  ///
  /// The closures run on the thread that sends: see ``receive(on:options:)``.
  public func sink(
    receiveCompletion: @escaping (Subscribers.Completion<Failure>) -> Void,
    receiveValue: @escaping (Output) -> Void
  ) -> AnyCancellable {
    let observer = Observer<Output, Failure>(completion: receiveCompletion, value: receiveValue)
    subscribe(observer)
    return AnyCancellable { observer.cancel() }
  }

  /// Hides the publisher's type.
  public func eraseToAnyPublisher() -> AnyPublisher<Output, Failure> { AnyPublisher(self) }

  /// Sends all values and the completion to a subject.
  public func subscribe<Target: Subject>(
    _ subject: Target
  ) -> AnyCancellable where Target.Output == Output, Target.Failure == Failure {
    sink(receiveCompletion: { subject.send(completion: $0) }, receiveValue: { subject.send($0) })
  }
}

extension Publisher where Failure == Never {
  /// Calls a closure with each value, until the returned object is cancelled or released.
  public func sink(receiveValue: @escaping (Output) -> Void) -> AnyCancellable {
    sink(receiveCompletion: { _ in }, receiveValue: receiveValue)
  }

  /// Sets a property to each value.
  ///
  /// As with Combine, the subscription retains the object until the subscription is cancelled.
  public func assign<Root>(
    to path: ReferenceWritableKeyPath<Root, Output>, on object: Root
  ) -> AnyCancellable {
    sink { object[keyPath: path] = $0 }
  }

  /// Sets a published property to each value, as long as the property exists.
  public func assign(to published: inout Published<Output>.Publisher) {
    published.storage.follow(self)
  }
}
