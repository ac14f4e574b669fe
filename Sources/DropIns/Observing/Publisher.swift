public import Dispatch

/// Something whose values can be observed: as much of Combine's `Publisher` as model classes use to
/// follow each other's properties.
///
/// Nothing here fails or ends, so `Failure` is always `Never`.
public protocol Publisher<Output, Failure> {
  /// What it publishes.
  associatedtype Output
  /// Why it could end early.
  associatedtype Failure: Error = Never

  /// Calls a closure with each value, until what this returns is cancelled or let go of.
  func sink(receiveValue: @escaping (Output) -> Void) -> AnyCancellable
}

/// A publisher of which only what it publishes is known.
public struct AnyPublisher<Output, Failure: Error>: Publisher {
  private let subscribe: (@escaping (Output) -> Void) -> AnyCancellable

  /// Makes one out of what a subscription does.
  init(_ subscribe: @escaping (@escaping (Output) -> Void) -> AnyCancellable) {
    self.subscribe = subscribe
  }

  /// Hides what a publisher is made of.
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
  /// Hides what it is made of.
  public func eraseToAnyPublisher() -> AnyPublisher<Output, Failure> { AnyPublisher(self) }

  /// Publishes what a closure makes of each value.
  public func map<Other>(
    _ transform: @escaping (Output) -> Other
  ) -> AnyPublisher<Other, Failure> {
    AnyPublisher<Other, Failure> { receive in sink { receive(transform($0)) } }
  }

  /// Publishes the values that a closure makes something of.
  public func compactMap<Other>(
    _ transform: @escaping (Output) -> Other?
  ) -> AnyPublisher<Other, Failure> {
    AnyPublisher<Other, Failure> { receive in
      sink { value in
        if let other = transform(value) { receive(other) }
      }
    }
  }

  /// Publishes the values that a closure says yes to.
  public func filter(
    _ isIncluded: @escaping (Output) -> Bool
  ) -> AnyPublisher<Output, Failure> {
    compactMap { isIncluded($0) ? $0 : nil }
  }

  /// Leaves out the first values; for a published property the first is the one that is there.
  public func dropFirst(_ count: Int = 1) -> AnyPublisher<Output, Failure> {
    AnyPublisher { receive in
      let left = Unguarded(count)
      return sink { value in
        // One subscription's values come one after the other.
        if left.value > 0 { left.value -= 1 } else { receive(value) }
      }
    }
  }

  /// Leaves out values that equal the one before.
  public func removeDuplicates() -> AnyPublisher<Output, Failure> where Output: Equatable {
    AnyPublisher { receive in
      let last = Unguarded<Output?>(nil)
      return sink { value in
        guard last.value != value else { return }
        last.value = value
        receive(value)
      }
    }
  }

  /// Publishes on a queue.
  ///
  /// What is under way to the queue when the subscription is cancelled is not published.
  public func receive(on queue: DispatchQueue) -> AnyPublisher<Output, Failure> {
    AnyPublisher { receive in
      let receiver = Unguarded<((Output) -> Void)?>(receive)
      let gate = Gate()
      let upstream = sink { value in
        let value = Unguarded(value)
        queue.async { if gate.isOpen { receiver.value?(value.value) } }
      }
      return AnyCancellable {
        gate.close()
        upstream.cancel()
        // Where it was used, so that nobody uses it meanwhile.
        queue.async { receiver.value = nil }
      }
    }
  }

  /// Sets a property to each value.
  ///
  /// The object is kept until the subscription is cancelled, as it is by Combine.
  public func assign<Root: AnyObject>(
    to path: ReferenceWritableKeyPath<Root, Output>, on object: Root
  ) -> AnyCancellable {
    sink { object[keyPath: path] = $0 }
  }
}

// Values and closures cross queues where the program has said `receive(on:)`: whoever wrote that
// answers for them, as with Combine, whose closures are not Sendable either.
final class Unguarded<Value>: @unchecked Sendable {
  var value: Value
  init(_ value: Value) { self.value = value }
}
