/// A class that notifies observers before its properties change.
///
/// Its ``Published`` properties send the notifications.
public protocol ObservableObject: AnyObject {
  /// The type of the publisher of changes.
  associatedtype ObjectWillChangePublisher: Publisher = ObservableObjectPublisher
  where ObjectWillChangePublisher.Failure == Never
  /// The publisher that notifies observers before the object changes.
  var objectWillChange: ObjectWillChangePublisher { get }
}

/// A publisher that notifies observers before an object changes, without the changed value.
public final class ObservableObjectPublisher: Publisher, @unchecked Sendable {
  // The state is behind a lock.

  /// The output is empty: observers learn only that a change follows.
  public typealias Output = Void
  /// The publisher never fails.
  public typealias Failure = Never

  private let outlets = Outlets<Void, Never>()

  /// Creates a publisher without observers.
  public init() {}

  /// Notifies all observers, on the calling thread.
  public func send() { outlets.send(.value(())) }

  /// Starts a subscription.
  public func subscribe(_ observer: Observer<Void, Never>) { outlets.add(observer) }
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
        storages.lazy.compactMap(\.objectWillChange).first ?? ObservableObjectPublisher()
      for storage in storages where storage.objectWillChange == nil {
        storage.objectWillChange = publisher
      }
      return publisher
    }
  }
}

/// Makes two threads that request an object's publisher for the first time get the same publisher.
private let finding = Guarded(0)
