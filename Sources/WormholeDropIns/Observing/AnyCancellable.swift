internal import WormholeSyscalls

/// An activity that can be cancelled.
public protocol Cancellable {
  /// Ends the activity; a second call does nothing.
  func cancel()
}

/// An activity that continues until it is cancelled, or until its last reference is released.
public final class AnyCancellable: Cancellable, Hashable, Sendable {
  private let action: Monitor<Action?>

  /// Creates an object that runs a closure when the activity ends.
  public init(_ cancel: @escaping @Sendable () -> Void) { action = Monitor(Action(cancel)) }

  deinit { cancel() }

  /// Ends the activity; a second call does nothing.
  public func cancel() { action.withLock { $0.take() }?.perform() }

  /// Retains the object in a set, until the set is emptied or released.
  public func store(in set: inout Set<AnyCancellable>) { set.insert(self) }

  /// Retains the object in a collection, until the collection is emptied or released.
  public func store<Keeper: RangeReplaceableCollection>(
    in collection: inout Keeper
  ) where Keeper.Element == AnyCancellable { collection.append(self) }

  /// Returns whether both are the same object.
  public static func == (left: AnyCancellable, right: AnyCancellable) -> Bool { left === right }

  /// Feeds the object's identity into a hasher.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
