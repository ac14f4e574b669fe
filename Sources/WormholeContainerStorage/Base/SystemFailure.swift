package import WormholeSyscalls

/// An error type in which an error of the system is one case of several.
package protocol SystemFailure: Error {
  static func system(_ error: Errno) -> Self
}

extension SystemFailure {
  /// Runs `body`, and throws an error of the system as an error of this type.
  static func wrapping<Result: ~Copyable>(
    _ body: () throws(Errno) -> Result
  ) throws(Self) -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      throw Self.system(error)
    }
  }
}
