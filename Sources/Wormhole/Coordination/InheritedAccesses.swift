internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The accesses inside which a program was started, as reported by its starter.
///
/// Each reported access is looked up. An ended access counts for nothing, and neither does text
/// that names no access. A program that invents accesses obstructs only itself.
package enum InheritedAccesses {
  /// The largest number of accesses that are looked up.
  private static let most = 64

  /// The accesses that the caller is inside of, for programs started there.
  package static var text: String {
    let tokens = HeldAccess.current?.living?.tokens ?? []
    return tokens.map { "\($0.container)/\($0.name)" }.joined(separator: ":")
  }

  /// Runs the body as if it were inside the accesses in `text`.
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
