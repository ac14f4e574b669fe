import Foundation

/// A lock with the state that it protects.
///
/// Copies of the value share the lock and the state.
public struct OSAllocatedUnfairLock<State>: @unchecked Sendable {
  // The state is accessed only under the lock.
  private final class Storage {
    let lock = NSLock()
    var state: State
    init(_ state: State) { self.state = state }
  }

  private let storage: Storage

  /// Creates a lock with a state, which may be of any type.
  public init(uncheckedState initialState: State) { storage = Storage(initialState) }

  /// Calls a closure with the state, under the lock.
  public func withLockUnchecked<Result>(
    _ body: (inout State) throws -> Result
  ) rethrows -> Result {
    storage.lock.lock()
    defer { storage.lock.unlock() }
    return try body(&storage.state)
  }

  /// Calls a closure with the state, under the lock.
  public func withLock<Result: Sendable>(
    _ body: @Sendable (inout State) throws -> Result
  ) rethrows -> Result { try withLockUnchecked(body) }

  /// Calls a closure with the state, unless another thread holds the lock: then the result is nil.
  public func withLockIfAvailableUnchecked<Result>(
    _ body: (inout State) throws -> Result
  ) rethrows -> Result? {
    guard storage.lock.try() else { return nil }
    defer { storage.lock.unlock() }
    return try body(&storage.state)
  }

  /// Calls a closure with the state, unless another thread holds the lock: then the result is nil.
  public func withLockIfAvailable<Result: Sendable>(
    _ body: @Sendable (inout State) throws -> Result
  ) rethrows -> Result? { try withLockIfAvailableUnchecked(body) }

  func lockStorage() { storage.lock.lock() }
  func unlockStorage() { storage.lock.unlock() }
  func tryStorage() -> Bool { storage.lock.try() }
}

extension OSAllocatedUnfairLock where State: Sendable {
  /// Creates a lock with a state.
  public init(initialState: State) { self.init(uncheckedState: initialState) }
}

extension OSAllocatedUnfairLock where State == () {
  /// Creates a lock without a state.
  public init() { self.init(uncheckedState: ()) }

  /// Calls a closure under the lock.
  public func withLockUnchecked<Result>(_ body: () throws -> Result) rethrows -> Result {
    try withLockUnchecked { _ in try body() }
  }

  /// Calls a closure under the lock.
  public func withLock<Result: Sendable>(
    _ body: @Sendable () throws -> Result
  ) rethrows -> Result { try withLockUnchecked { _ in try body() } }

  /// Waits for the lock, and holds it until `unlock()`.
  public func lock() { lockStorage() }
  /// Releases the lock.
  public func unlock() { unlockStorage() }
  /// Takes the lock, unless another thread holds it.
  public func lockIfAvailable() -> Bool { tryStorage() }
}
