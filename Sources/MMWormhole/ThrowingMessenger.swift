internal import DropIns
internal import Foundation
internal import SharedContainer

/// A messenger of the module's own, which says what has failed.
protocol ThrowingMessenger: MMWormholeTransiting {
  /// - Parameter failure: is told of what fails later.
  func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: @escaping @Sendable (any Error) -> Void
  ) throws

  func message(_ identifier: String) throws -> Any?

  /// Answers the version up to which there is nothing any more; 0 where messages have none.
  func clear(_ identifier: String) throws -> Int

  /// - Parameter cleared: is called with each identifier and what ``clear(_:)`` answers for it.
  func clearAll(_ cleared: (String, Int) -> Void) throws
}

extension ThrowingMessenger {
  /// For calls that cannot throw.
  @discardableResult
  func attempt<Result>(_ body: () throws -> Result) -> Result? {
    do {
      return try body()
    } catch {
      DropInLog.tell(.error, error)
      return nil
    }
  }
}
