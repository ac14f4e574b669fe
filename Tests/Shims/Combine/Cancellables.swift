import Foundation

/// An activity that can be cancelled.
public protocol Cancellable {
  /// Ends the activity; a second call does nothing.
  func cancel()
}

extension Cancellable {
  /// Retains the activity in a set, until the set is emptied or released.
  public func store(in set: inout Set<AnyCancellable>) { set.insert(AnyCancellable(self)) }

  /// Retains the activity in a collection, until the collection is emptied or released.
  public func store<Keeper: RangeReplaceableCollection>(
    in collection: inout Keeper
  ) where Keeper.Element == AnyCancellable { collection.append(AnyCancellable(self)) }
}

/// An activity that continues until it is cancelled, or until its last reference is released.
public final class AnyCancellable: Cancellable, Hashable, @unchecked Sendable {
  // The action is accessed only under the lock, and called by a single thread.
  private let lock = NSLock()
  private var action: (() -> Void)?

  /// Creates an object that runs a closure when the activity ends.
  public init(_ cancel: @escaping () -> Void) { action = cancel }

  /// Creates an object that cancels another when the activity ends.
  public init<Other: Cancellable>(_ other: Other) { action = { other.cancel() } }

  deinit { cancel() }

  /// Ends the activity; a second call does nothing.
  public func cancel() {
    lock.lock()
    let action = self.action
    self.action = nil
    lock.unlock()
    action?()
  }

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
