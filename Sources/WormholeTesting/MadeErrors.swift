public import Wormhole

extension WormholeError {
  /// An error that nothing has led to, to see what is done with it.
  ///
  /// - Parameters:
  ///   - code: what kind of failure it is.
  ///   - operation: what was to be done.
  ///   - subject: what it was to be done to.
  ///   - reason: why it was not possible.
  ///   - hint: what might be done about it.
  ///   - errno: the system's error number.
  public static func make(
    _ code: Code, _ operation: String = "do what a test wants of", _ subject: String = "nothing",
    because reason: String = "the test says so", hint: String? = nil, errno: Int32? = nil
  ) -> WormholeError {
    var error = WormholeError(code, operation, subject, because: reason, hint: hint)
    error.errno = errno
    return error
  }
}
