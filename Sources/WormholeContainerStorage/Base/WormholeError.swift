public import FoundationEssentials
package import WormholeSyscalls

/// A failed operation, its subject, the reason, and a remedy.
///
/// Match on ``code-swift.property``; the texts are for people and may change.
public struct WormholeError: Error, Hashable, Sendable {
  /// The kind of the failure.
  public var code: Code
  /// The operation, for example "read channel".
  public var operation: String
  /// The object of the operation: a name or a path.
  public var subject: String
  /// The cause of the failure.
  public var reason: String
  /// A possible remedy, if one is known.
  public var hint: String?
  /// The system's error number, if a system call failed.
  public var errno: Int32?

  package init(
    _ code: Code, _ operation: String, _ subject: String, because reason: String,
    hint: String? = nil, errno: Errno? = nil
  ) {
    self.code = code
    self.operation = operation
    self.subject = subject
    self.reason = reason
    self.hint = hint
    self.errno = errno?.rawValue
  }

  /// Returns the error with the subject that the caller knows, and the operation if one is given.
  package func named(_ subject: String, _ operation: String? = nil) -> WormholeError {
    var error = self
    error.subject = subject
    error.operation = operation ?? self.operation
    return error
  }
}

extension WormholeError: CustomStringConvertible {
  /// One sentence, without a full stop: `cannot read channel 'speed': permission denied`.
  public var description: String {
    let sentence = "cannot \(operation) '\(subject)': \(reason)"
    return hint.map { sentence + "; " + $0 } ?? sentence
  }
}

extension WormholeError: LocalizedError {
  /// The same sentence as ``description``, for `localizedDescription`.
  public var errorDescription: String? { description }
  /// The reason.
  public var failureReason: String? { reason }
  /// The hint.
  public var recoverySuggestion: String? { hint }

  /// The domain as `NSError`: the type's name in the module that users import.
  public var _domain: String { "Wormhole.WormholeError" }
}
