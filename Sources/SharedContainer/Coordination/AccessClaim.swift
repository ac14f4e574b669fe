/// What an access is about: which paths, whether it writes there, and for what purpose.
package struct AccessClaim: Hashable, Sendable {
  /// One path, and what is done there.
  package struct Part: Hashable, Sendable {
    /// Absolute, and without links on the way to it.
    package let path: AccessPath
    package let writes: Bool

    package init(_ path: AccessPath, writes: Bool) {
      self.path = path
      self.writes = writes
    }
  }

  package var parts: [Part]
  /// Accesses of one purpose never block each other.
  package var purpose: String

  package init(_ parts: [Part], purpose: String) {
    self.parts = parts
    self.purpose = purpose
  }

  package var writes: Bool { parts.contains { $0.writes } }

  /// Whether the two may not run at once: one of them writes to what the other uses, or to
  /// something above or below it.
  package func conflicts(with other: AccessClaim) -> Bool {
    guard purpose != other.purpose else { return false }
    return parts.contains { own in
      other.parts.contains { its in
        (own.writes || its.writes) && own.path.isRelated(to: its.path)
      }
    }
  }

  /// Whether whoever has this one needs no second one for the other: it reads below what is read
  /// here, or is of the same purpose and lies below what is written here.
  package func covers(_ other: AccessClaim) -> Bool {
    other.parts.allSatisfy { its in
      parts.contains { own in
        own.path.isAtOrAbove(its.path)
          && (own.writes ? purpose == other.purpose : !its.writes)
      }
    }
  }
}
