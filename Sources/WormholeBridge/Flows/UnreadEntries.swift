internal import WormholeContainerStorage

/// The channels or queues whose latest decisions cannot be read or followed.
///
/// The bridge keeps to the last decisions that were read.
struct UnreadEntries {
  /// The reasons, by channel or queue.
  private(set) var reasons: [String: String] = [:]

  func contains(_ name: String) -> Bool { reasons[name] != nil }

  /// Replaces the errors by those of a further look, and returns the errors that are to be logged.
  ///
  /// An error that stays is logged once.
  mutating func replace(by errors: [String: WormholeError]) -> [WormholeError] {
    let known = reasons
    reasons = errors.mapValues(\.reason)
    return errors.filter { $0.value.reason != known[$0.key] }.map(\.value)
  }
}
