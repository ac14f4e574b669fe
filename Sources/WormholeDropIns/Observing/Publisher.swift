public import Dispatch

/// A source of values: as much of Combine's `Publisher` as model classes need to follow each
/// other's properties.
///
/// No publisher here fails or ends, so `Failure` is always `Never`.
public protocol Publisher<Output, Failure> {
  /// The type of the published values.
  associatedtype Output
  /// The reason for an early end.
  associatedtype Failure: Error = Never

  /// Calls a closure with each value, until the returned object is cancelled or released.
  func sink(receiveValue: @escaping (Output) -> Void) -> AnyCancellable
}

/// A publisher that hides its type, except for the type of its values.
public struct AnyPublisher<Output, Failure: Error>: Publisher {
  private let subscribe: (@escaping (Output) -> Void) -> AnyCancellable

  /// Creates a publisher from a function that subscribes.
  init(_ subscribe: @escaping (@escaping (Output) -> Void) -> AnyCancellable) {
    self.subscribe = subscribe
  }

  /// Hides the type of a publisher.
  public init<Other: Publisher>(_ publisher: Other)
  where Other.Output == Output, Other.Failure == Failure {
    subscribe = { publisher.sink(receiveValue: $0) }
  }

  /// Calls a closure with each value.
  public func sink(receiveValue: @escaping (Output) -> Void) -> AnyCancellable {
    subscribe(receiveValue)
  }
}

extension Publisher {
  /// Hides the publisher's type.
  public func eraseToAnyPublisher() -> AnyPublisher<Output, Failure> { AnyPublisher(self) }

  /// Publishes each value, transformed by a closure.
  public func map<Other>(
    _ transform: @escaping (Output) -> Other
  ) -> AnyPublisher<Other, Failure> {
    AnyPublisher<Other, Failure> { receive in sink { receive(transform($0)) } }
  }

  /// Publishes the transformed values, without those for which the closure returns nil.
  public func compactMap<Other>(
    _ transform: @escaping (Output) -> Other?
  ) -> AnyPublisher<Other, Failure> {
    AnyPublisher<Other, Failure> { receive in
      sink { value in
        if let other = transform(value) { receive(other) }
      }
    }
  }

  /// Publishes the values for which a closure returns true.
  public func filter(
    _ isIncluded: @escaping (Output) -> Bool
  ) -> AnyPublisher<Output, Failure> {
    compactMap { isIncluded($0) ? $0 : nil }
  }

  /// Leaves out the first values; for a published property the first value is the current one.
  public func dropFirst(_ count: Int = 1) -> AnyPublisher<Output, Failure> {
    AnyPublisher { receive in
      // Values and closures cross queues only where the program calls `receive(on:)`: its author is
      // responsible for them, as with Combine, whose closures are not Sendable either.
      let left = UncheckedBox(count)
      return sink { value in
        // The values of a subscription arrive in sequence, never concurrently.
        if left.value > 0 { left.value -= 1 } else { receive(value) }
      }
    }
  }

  /// Leaves out values that equal their predecessor.
  public func removeDuplicates() -> AnyPublisher<Output, Failure> where Output: Equatable {
    AnyPublisher { receive in
      let last = UncheckedBox<Output?>(nil)
      return sink { value in
        guard last.value != value else { return }
        last.value = value
        receive(value)
      }
    }
  }

  /// Publishes on a queue.
  ///
  /// A value that waits in the queue when the subscription is cancelled is not published.
  public func receive(on queue: DispatchQueue) -> AnyPublisher<Output, Failure> {
    AnyPublisher { receive in
      let receiver = UncheckedBox<((Output) -> Void)?>(receive)
      let gate = Gate()
      let upstream = sink { value in
        let value = UncheckedBox(value)
        queue.async { if gate.isOpen { receiver.value?(value.value) } }
      }
      return AnyCancellable {
        gate.close()
        upstream.cancel()
        // Released on the queue of the calls, so that no call uses the closure at the same time.
        queue.async { receiver.value = nil }
      }
    }
  }

  /// Sets a property to each value.
  ///
  /// As with Combine, the subscription retains the object until the subscription is cancelled.
  public func assign<Root: AnyObject>(
    to path: ReferenceWritableKeyPath<Root, Output>, on object: Root
  ) -> AnyCancellable {
    sink { object[keyPath: path] = $0 }
  }
}
