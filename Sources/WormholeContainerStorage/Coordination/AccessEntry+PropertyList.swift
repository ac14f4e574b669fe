internal import WormholePropertyLists

extension AccessEntry {
  func encoded() throws -> [UInt8] {
    try BinaryEncoder().encode { leaves in
      try leaves.add("paths", claim.parts) { .string($0.path.text) }
      try leaves.add("writes", claim.parts) { .boolean($0.writes) }
      leaves.add("purpose", claim.purpose)
      if !held.isEmpty {
        try leaves.add("held", held) { .array([.string($0.container), .string($0.name)]) }
      }
      if !hidden.isEmpty { try leaves.add("hidden", hidden) { .string($0) } }
      if let identity { leaves.add("identity", identity) }
    }
  }

  /// Nil if the bytes do not have this form.
  init?(_ bytes: [UInt8], owner: UInt32) {
    guard let list = try? BinaryPropertyList.decode(bytes),
      let paths = list["paths"]?.arrayValue?.compactMap(\.stringValue),
      let writes = list["writes"]?.arrayValue?.compactMap(\.boolValue),
      let purpose = list["purpose"]?.stringValue, paths.count == writes.count
    else { return nil }
    let parts = zip(paths, writes).map { ClaimedPath(AccessPath($0), writes: $1) }
    claim = AccessClaim(parts, purpose: purpose)
    held = (list["held"]?.arrayValue ?? []).compactMap { token in
      guard let container = token[0]?.stringValue, let name = token[1]?.stringValue else {
        return nil
      }
      return AccessToken(container: container, name: name)
    }
    hidden = (list["hidden"]?.arrayValue ?? []).compactMap(\.stringValue)
    // The identity becomes the name of a directory.
    identity = list["identity"]?.stringValue.flatMap { Randomness.isName($0) ? $0 : nil }
    self.owner = owner
  }
}
