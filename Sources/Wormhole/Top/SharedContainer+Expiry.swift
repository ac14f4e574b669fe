internal import FoundationEssentials
package import WormholeContainerStorage
internal import WormholeSyscalls

extension SharedContainer {
  /// Frees the room of expired values, which no reader finds any more.
  ///
  /// - Parameter isLooking: whether to report only, without clearing.
  /// - Returns: the cleared channels, or the channels to clear, as findings of an inspection.
  package func sweepExpired(isLooking: Bool) -> [WormholeContainerStorage.Diagnosis] {
    let now = Date(sinceEpoch: options.environment.sinceEpoch())
    // The inspection reports channels that cannot be listed or read.
    return ((try? expiredChannels()) ?? []).compactMap { name, _ in
      let path = "channels/" + ((try? Container.escape(name)) ?? name)
      var isExpired = true
      if !isLooking {
        storage.repair(path) { isExpired = try clearExpired(name, by: now) }
      }
      guard isExpired else { return nil }
      return WormholeContainerStorage.Diagnosis(
        .note, path, "the value has expired, and is still in its file",
        advice: "the next change replaces the value, and '--repair' clears the channel",
        isRepairable: true)
    }
  }
}
