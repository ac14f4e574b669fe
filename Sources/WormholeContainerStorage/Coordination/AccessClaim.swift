/// The paths of an access, whether it writes to each of them, and its purpose.
package struct AccessClaim: Hashable, Sendable {
  package var parts: [ClaimedPath]
  /// Accesses of the same purpose never block each other.
  package var purpose: String

  package init(_ parts: [ClaimedPath], purpose: String) {
    self.parts = parts
    self.purpose = purpose
  }

  package var writes: Bool { parts.contains { $0.writes } }

  /// Whether the two claims may not run at once: one claim writes to a path of the other, or to a
  /// path above or below.
  package func conflicts(with other: AccessClaim) -> Bool {
    guard purpose != other.purpose else { return false }
    return parts.contains { own in
      other.parts.contains { its in
        (own.writes || its.writes) && own.path.isRelated(to: its.path)
      }
    }
  }

  /// Whether the holder of this claim needs no second access for a further claim: each path of the
  /// other is read at or below a path read here, or has the same purpose and is at or below a path
  /// written here.
  package func covers(_ other: AccessClaim) -> Bool {
    other.parts.allSatisfy { its in
      parts.contains { own in
        own.path.isAtOrAbove(its.path)
          && (own.writes ? purpose == other.purpose : !its.writes)
      }
    }
  }
}

/// A path, and whether the access writes there.
package struct ClaimedPath: Hashable, Sendable {
  /// Absolute, and without links on the way to it.
  package let path: AccessPath
  package let writes: Bool

  package init(_ path: AccessPath, writes: Bool) {
    self.path = path
    self.writes = writes
  }
}
