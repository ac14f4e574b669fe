internal import Syscalls

/// Something about a container that somebody should know.
package struct Finding: Hashable, Sendable {
  package enum Severity: String, Sendable {
    /// As it is meant to be.
    case fine
    /// Good to know.
    case note
    /// Something to be done.
    case problem
  }

  package let severity: Severity
  /// What it is about: a path within the container, or a part of the system.
  package let subject: String
  package let what: String
  /// What can be done about it.
  package let advice: String?
  /// Whether ``Container/repair()`` does it.
  package let isRepairable: Bool

  package init(
    _ severity: Severity, _ subject: String, _ what: String, advice: String? = nil,
    isRepairable: Bool = false
  ) {
    self.severity = severity
    self.subject = subject
    self.what = what
    self.advice = advice
    self.isRepairable = isRepairable
  }
}

extension Finding {
  /// What is told in the place of what could not be looked at, so that the rest is looked at all
  /// the same; nil if it could, or has gone.
  ///
  /// - Parameter deed: what was to be done.
  package static func obstacle(
    at path: String, to deed: String = "looked at", _ body: () throws -> Void
  ) -> Finding? {
    do {
      try body()
      return nil
    } catch {
      let error =
        error as? WormholeError ?? (error as? Errno).map { WormholeError($0, deed, path) }
      guard error?.code != .notFound else { return nil }
      return Finding(
        .problem, path, "it cannot be \(deed): \(error?.reason ?? "the system fails")",
        advice: error?.hint)
    }
  }
}
