internal import WormholeSyscalls

/// A class that notifies observers before its properties change.
///
/// Its ``Published`` properties send the notifications.
public protocol ObservableObject: AnyObject {
  /// The type of the publisher of changes.
  associatedtype ObjectWillChangePublisher: Publisher = ObservableObjectPublisher
  /// The publisher that notifies observers before the object changes.
  var objectWillChange: ObjectWillChangePublisher { get }
}

/// A publisher that notifies observers before an object changes, without the changed value.
public final class ObservableObjectPublisher: Publisher, Sendable {
  /// The output is empty: observers learn only that a change follows.
  public typealias Output = Void
  /// The publisher never fails.
  public typealias Failure = Never

  private let observers = Monitor((next: 0, closures: [Int: Observer]()))

  private struct Observer: Sendable {
    let closure: UncheckedBox<() -> Void>
    /// Closed by the end of the observation: another observer may cause the end during a call.
    let gate = Gate()
  }

  /// Creates a publisher without observers.
  public init() {}

  /// Notifies all observers, on the calling thread.
  public func send() {
    let closures = observers.withLock { $0.closures }.sorted { $0.key < $1.key }
    for (_, observer) in closures where observer.gate.isOpen { observer.closure.value() }
  }

  /// Calls a closure before each change.
  public func sink(receiveValue: @escaping (()) -> Void) -> AnyCancellable {
    let observer = Observer(closure: UncheckedBox { receiveValue(()) })
    let number = observers.withLock { observers in
      observers.next += 1
      observers.closures[observers.next] = observer
      return observers.next
    }
    // Not the closure: its objects may retain the returned object.
    return AnyCancellable { [weak self, gate = observer.gate] in
      gate.close()
      let gone = self?.observers.withLock { $0.closures.removeValue(forKey: number) }
      _ = gone
    }
  }
}

extension ObservableObject where ObjectWillChangePublisher == ObservableObjectPublisher {
  /// The publisher that notifies observers before each change of a ``Published`` property.
  ///
  /// A class without such properties that calls `send()` itself must declare a publisher of its
  /// own: this property would create a new publisher at each access.
  public var objectWillChange: ObservableObjectPublisher {
    var storages: [any PublishedStorage] = []
    var mirror: Mirror? = Mirror(reflecting: self)
    while let level = mirror {
      storages += level.children.compactMap { ($0.value as? any PublishedProperty)?.anyStorage }
      mirror = level.superclassMirror
    }
    return finding.withLock { _ in
      let publisher =
        storages.lazy.compactMap(\.objectWillChange).first
        ?? ObservableObjectPublisher()
      for storage in storages where storage.objectWillChange == nil {
        storage.objectWillChange = publisher
      }
      return publisher
    }
  }
}

/// Makes two threads that request an object's publisher for the first time get the same publisher.
private let finding = Monitor(0)
