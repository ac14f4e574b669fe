#if canImport(Testing)
  internal import WormholeSyscalls
  package import Testing

  /// A sanitizer that the tests may run under.
  package enum Sanitizer: String, Sendable {
    case thread, address

    /// The sanitizer that `WORMHOLE_SANITIZED` names; nil without one.
    fileprivate static let current =
      Processes.environment("WORMHOLE_SANITIZED").flatMap(Sanitizer.init)
  }

  extension Trait where Self == ConditionTrait {
    /// Skips a test or suite under a sanitizer that cannot run it, or finds nothing in it.
    ///
    /// - Parameters:
    ///   - reason: the cause, which the test run prints with the skip.
    ///   - sanitizer: the only sanitizer concerned; nil for every sanitizer.
    package static func notSanitized(
      _ reason: Comment, by sanitizer: Sanitizer? = nil
    ) -> Self {
      let isSkipped = Sanitizer.current.map { sanitizer == nil || sanitizer == $0 } ?? false
      return .disabled(if: isSkipped, "not sanitized: \(reason.rawValue)")
    }
  }
#endif
