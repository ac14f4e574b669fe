package import WormholeSyscalls

extension WormholeError {
  /// The error of a call on the directory of a member, or on a part of it.
  package init(
    _ error: Errno, _ operation: String, _ subject: String, at home: MemberDirectory
  ) {
    self.init(
      error, operation, subject, in: home.container, home.path,
      MemberDirectory.Part.allCases.map(\.rawValue))
  }

  /// The error of a call on a part of a member's directory; if this user may not write there, the
  /// hint names the owner.
  package init(
    _ error: Errno, _ operation: String, _ home: MemberDirectory, _ part: MemberDirectory.Part
  ) {
    self.init(error, operation, home.name)
    guard code == .permissionDenied, let denial = home.denial(of: part) else { return }
    hint = denial
  }

  /// The error of a call that needs a member that has not left.
  package static func hasLeft(_ home: MemberDirectory, _ operation: String) -> WormholeError {
    WormholeError(
      .notJoined, operation, home.name, because: "the member has left", hint: "join again")
  }
}

/// Runs `body` on the directory of a member, and gives its error the operation and the subject.
package func naming<Result: ~Copyable>(
  _ operation: String, _ subject: String, at home: MemberDirectory,
  _ body: () throws(Errno) -> Result
) throws(WormholeError) -> Result {
  do throws(Errno) {
    return try body()
  } catch {
    throw WormholeError(error, operation, subject, at: home)
  }
}

package func naming<Result: ~Copyable>(
  _ operation: String, _ subject: String, at home: MemberDirectory,
  _ body: @autoclosure () throws(Errno) -> Result
) throws(WormholeError) -> Result {
  try naming(operation, subject, at: home, body)
}

/// Runs `body` on a part of a member's directory, and gives its error the operation.
package func naming<Result: ~Copyable>(
  _ operation: String, _ home: MemberDirectory, _ part: MemberDirectory.Part,
  _ body: () throws(Errno) -> Result
) throws(WormholeError) -> Result {
  do throws(Errno) {
    return try body()
  } catch {
    throw WormholeError(error, operation, home, part)
  }
}
