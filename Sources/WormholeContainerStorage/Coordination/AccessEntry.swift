package import WormholePropertyLists

/// The content of an access's file: written once, before the file becomes visible.
package struct AccessEntry: Sendable {
  package private(set) var claim = AccessClaim([], purpose: "")
  /// The accesses that enclosed the access on its thread, in any container.
  package private(set) var held: [AccessToken] = []
  /// Hidden directories beside the files that the access replaces.
  private(set) var hidden: [String] = []
  /// A random number in the names of the directories' markers; nil in entries of earlier programs.
  private(set) var identity: String?
  /// The user who owns the file, which is no field of the file.
  private(set) var owner: UInt32

  /// The largest file that is read.
  static let largestFile = 1 << 20
}

extension AccessEntry: FileRecord {
  package init() { self.init(owner: 0) }

  /// Nil if the bytes do not have this form.
  init?(_ bytes: [UInt8], owner: UInt32) {
    guard let entry = try? AccessEntry(bytes) else { return nil }
    self = entry
    self.owner = owner
  }

  package mutating func visit(_ fields: inout some FieldVisitor) throws {
    var paths = claim.parts.map(\.path.text)
    try fields.field("paths", &paths)
    var writes = claim.parts.map(\.writes)
    try fields.field("writes", &writes)
    try fields.check(
      "writes", writes.count == paths.count, "\(writes.count) values for \(paths.count) paths")
    claim.parts = zip(paths, writes).map { ClaimedPath(AccessPath($0), writes: $1) }
    try fields.field("purpose", &claim.purpose)
    // A rare field of another type spoils no access: other accesses still wait for the access.
    var tokens = held.map { [$0.container, $0.name] }
    try? fields.field("held", &tokens, unless: [])
    held = tokens.filter { $0.count > 1 }.map { AccessToken(container: $0[0], name: $0[1]) }
    try? fields.field("hidden", &hidden, unless: [])
    try? fields.field("identity", &identity)
    // The identity becomes the name of a directory.
    if let digits = identity, !Randomness.isName(digits) { identity = nil }
  }
}
