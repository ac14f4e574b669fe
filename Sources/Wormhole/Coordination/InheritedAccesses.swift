internal import SharedContainer
internal import Syscalls

/// The accesses that a program was started in, as whoever started it says.
///
/// What it says is looked up: an access that has ended counts for nothing, and so does what is
/// none. Whoever makes something up is in nobody's way but its own.
package enum InheritedAccesses {
  /// How many are looked at.
  private static let most = 64

  /// Those that the caller is inside of, for one that is started there.
  package static var text: String {
    let tokens = HeldAccess.current?.living?.tokens ?? []
    return tokens.map { "\($0.container)/\($0.name)" }.joined(separator: ":")
  }

  /// Has the body count as inside of them.
  package static func within<Result>(
    _ text: String, _ body: () throws -> Result
  ) rethrows -> Result {
    let tokens = text.parts(between: ":").prefix(most).compactMap { word -> AccessToken? in
      let parts = word.parts(between: "/", keepingEmpty: true)
      guard parts.count == 2 else { return nil }
      return AccessToken(container: parts[0], name: parts[1])
    }
    guard !tokens.isEmpty, !Mutants.has(.noInheritance) else { return try body() }
    let rooms = Arbiters.shared.current.all()
    var held: HeldAccess?
    for token in tokens {
      guard let claim = rooms.lazy.compactMap({ $0.running(token) }).first else { continue }
      let subject = claim.parts.first?.path.text ?? ""
      let one = HeldAccess(claim, subject, held, isInherited: true)
      one.add(token)
      held = one
    }
    guard let held else { return try body() }
    return try HeldAccess.$current.withValue(held, operation: body)
  }
}
