internal import Syscalls

/// Something that can be ended.
public protocol Cancellable {
  /// Ends it; a second time it does nothing.
  func cancel()
}

/// What goes on until it is cancelled, or until nobody keeps it.
public final class AnyCancellable: Cancellable, Hashable, Sendable {
  private let action: Monitor<Action?>

  /// Makes one that runs a closure when it ends.
  public init(_ cancel: @escaping @Sendable () -> Void) { action = Monitor(Action(cancel)) }

  deinit { cancel() }

  /// Ends it; a second time it does nothing.
  public func cancel() { action.withLock { $0.take() }?.perform() }

  /// Keeps it in a set, until that is emptied or gone.
  public func store(in set: inout Set<AnyCancellable>) { set.insert(self) }

  /// Keeps it in a collection, until that is emptied or gone.
  public func store<Keeper: RangeReplaceableCollection>(
    in collection: inout Keeper
  ) where Keeper.Element == AnyCancellable { collection.append(self) }

  /// Whether both are the same object.
  public static func == (left: AnyCancellable, right: AnyCancellable) -> Bool { left === right }

  /// Feeds its identity into a hasher.
  public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}
