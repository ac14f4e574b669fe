public import Wormhole

extension WormholeError {
  /// Creates an error without a failure, to test how a program handles it.
  ///
  /// - Parameters:
  ///   - code: the kind of failure.
  ///   - operation: the operation that failed.
  ///   - subject: the object of the operation.
  ///   - reason: the reason of the failure.
  ///   - hint: a possible remedy.
  ///   - errno: the system's error number.
  public static func make(
    _ code: Code, _ operation: String = "perform", _ subject: String = "test operation",
    because reason: String = "the test requires an error", hint: String? = nil, errno: Int32? = nil
  ) -> WormholeError {
    var error = WormholeError(code, operation, subject, because: reason, hint: hint)
    error.errno = errno
    return error
  }
}
