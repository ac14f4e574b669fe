internal import WormholeSyscalls

/// A result of an inspection.
package struct Diagnosis: Hashable, Sendable {
  package enum Severity: String, Sendable {
    /// As intended.
    case fine
    /// Information.
    case note
    /// A problem that needs action.
    case problem
  }

  package let severity: Severity
  /// The subject: a path within the container, or a part of the system.
  package let subject: String
  package let what: String
  /// The remedy, if one is known.
  package let advice: String?
  /// Whether ``Container/repair(_:renewing:)`` applies the remedy.
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

extension Diagnosis {
  /// Returns a finding for an inaccessible object, and lets the inspection continue; nil if the
  /// body succeeds, or the object is gone.
  ///
  /// - Parameter deed: the attempted operation.
  package static func obstacle(
    at path: String, to deed: String = "inspected", _ body: () throws -> Void
  ) -> Diagnosis? {
    do {
      try body()
      return nil
    } catch {
      let error =
        error as? WormholeError ?? (error as? Errno).map { WormholeError($0, deed, path) }
      guard error?.code != .notFound else { return nil }
      return Diagnosis(
        .problem, path, "cannot be \(deed): \(error?.reason ?? "unknown error")",
        advice: error?.hint)
    }
  }
}

extension Container {
  /// As ``Diagnosis/obstacle(at:to:_:)``, with the reason why a directory may not be used.
  package func obstacle(at path: String, _ body: () throws -> Void) -> Diagnosis? {
    guard let obstacle = Diagnosis.obstacle(at: path, body) else { return nil }
    let denial = options.sharing.denial(of: path, in: root.descriptor, at: self.path)
    return Diagnosis(
      .problem, path, obstacle.what, advice: denial ?? obstacle.advice,
      isRepairable: obstacle.isRepairable)
  }
}
