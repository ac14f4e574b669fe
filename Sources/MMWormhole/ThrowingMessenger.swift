internal import Foundation
internal import WormholeContainerStorage
internal import WormholeDropIns

/// A messenger of the module's own, which reports failures.
protocol ThrowingMessenger: MMWormholeTransiting {
  /// - Parameter failure: receives later failures.
  func pass(
    _ object: (any NSCoding)?, _ identifier: String,
    failure: @escaping @Sendable (any Error) -> Void
  ) throws

  func message(_ identifier: String) throws -> Any?

  /// Returns the version up to which messages are removed; nil if messages have no version.
  func clear(_ identifier: String) throws -> MessageVersion?

  /// - Parameter cleared: is called with each identifier and the result of ``clear(_:)`` for it.
  func clearAll(_ cleared: (String, MessageVersion?) -> Void) throws
}

extension MMWormholeTransiting {
  /// The messenger's own interface, if it is one of the module's classes.
  ///
  /// A program's subclass may override the public methods, which therefore must be called.
  var throwing: (any ThrowingMessenger)? {
    let own: [AnyClass] = [
      MMWormholeFileTransiting.self, MMWormholeCoordinatedFileTransiting.self,
      MMWormholeSessionContextTransiting.self, MMWormholeSessionMessageTransiting.self,
      MMWormholeSessionFileTransiting.self,
    ]
    return own.contains { $0 == type(of: self) } ? self as? any ThrowingMessenger : nil
  }
}

extension ThrowingMessenger {
  /// Runs a body for calls that cannot throw.
  @discardableResult
  func attempt<Result>(_ body: () throws -> Result) -> Result? {
    DropInLog.attempt(body)
  }
}
