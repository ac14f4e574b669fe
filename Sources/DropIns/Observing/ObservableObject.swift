internal import Syscalls

/// A class that says when it is about to change.
///
/// Its ``Published`` properties see to that.
public protocol ObservableObject: AnyObject {
  /// What tells of its changes.
  associatedtype ObjectWillChangePublisher: Publisher = ObservableObjectPublisher
  /// Tells that the object is about to change.
  var objectWillChange: ObjectWillChangePublisher { get }
}

/// Tells that an object is about to change, and not how.
public final class ObservableObjectPublisher: Publisher, Sendable {
  /// Nothing is told but that there is a change.
  public typealias Output = Void
  /// Nothing fails.
  public typealias Failure = Never

  private let observers = Monitor((next: 0, closures: [Int: Unguarded<() -> Void>]()))

  /// Makes one that nobody observes yet.
  public init() {}

  /// Tells all who observe it, on the calling thread.
  public func send() {
    let closures = observers.withLock { $0.closures }.sorted { $0.key < $1.key }
    for (_, closure) in closures { closure.value() }
  }

  /// Calls a closure before each change.
  public func sink(receiveValue: @escaping (()) -> Void) -> AnyCancellable {
    let closure = Unguarded { receiveValue(()) }
    let number = observers.withLock { observers in
      observers.next += 1
      observers.closures[observers.next] = closure
      return observers.next
    }
    return AnyCancellable { [weak self] in
      let gone = self?.observers.withLock { $0.closures.removeValue(forKey: number) }
      _ = gone
    }
  }
}

extension ObservableObject where ObjectWillChangePublisher == ObservableObjectPublisher {
  /// Tells before each change of a ``Published`` property.
  ///
  /// A class without such properties that sends by hand declares a publisher of its own; it would
  /// get another one here each time.
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

/// Lets two threads that ask for an object's publisher first find the same one.
private let finding = Monitor(0)
