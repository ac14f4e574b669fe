package import FoundationEssentials
public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Values that count for a time only.
extension Channel {
  /// Puts a value that expires, in place of the present content.
  ///
  /// The file of the value states the moment, by the wall clock. From then on, readers in every
  /// process find no value, and an update starts from nil. Running watchers are notified as of a
  /// clear, within a second. The version stays, and the next change has the next version. Until the
  /// value expires, an update keeps the moment, and a put without a time to live replaces it.
  ///
  /// Programs with a version of this package before times to live still find the value.
  ///
  /// - Parameters:
  ///   - value: the value that all processes read until it expires.
  ///   - timeToLive: the time until the value expires, more than zero.
  ///   - expected: the version that must be present, 0 for a channel that was never written; a
  ///     different version throws ``WormholeError/Code-swift.struct/conflict``.
  ///   - durability: the failures that the value survives once the call has returned; by default
  ///     as in the options.
  /// - Returns: the version of the value.
  @discardableResult
  public func put(
    _ value: Value, timeToLive: Duration, ifVersion expected: Int? = nil,
    durability: Durability? = nil
  ) throws(WormholeError) -> Int {
    guard timeToLive > .zero else {
      throw WormholeError(
        .invalidValue, "put value into channel", name, because: "its time to live is not above 0")
    }
    let now = Date(sinceEpoch: container.options.environment.sinceEpoch())
    return try put(
      value, until: now.addingTimeInterval(timeToLive / .seconds(1)), ifVersion: expected,
      durability: durability)
  }

  /// Puts a value that expires at a moment, or never; otherwise the same as with a time to live.
  @discardableResult
  package func put(
    _ value: Value, until: Date?, ifVersion expected: Int? = nil, durability: Durability? = nil
  ) throws(WormholeError) -> Int {
    do throws(WormholeError) {
      return try writer().put(
        "put value into", value, ifVersion: expected, durability, until: until)
    } catch {
      return try putAtHome(value, ifVersion: expected, until: until, error)
    }
  }
}

extension SharedContainer {
  /// Returns the channels of this machine whose values have expired, with the moments.
  ///
  /// A channel that cannot be read is left out; the inspection reports it.
  package func expiredChannels() throws(WormholeError) -> [(name: String, expiredAt: Date)] {
    let now = Date(sinceEpoch: options.environment.sinceEpoch())
    var expired: [(name: String, expiredAt: Date)] = []
    for name in try channels() {
      guard let metadata = try? channel(name, of: PropertyListValue.self).metadata,
        metadata.home == nil, let until = metadata.expiresAt, until <= now
      else { continue }
      expired.append((name, until))
    }
    return expired
  }

  /// Frees the room of the channel's value, and of all copies, if the value had expired by a
  /// moment; returns whether it had.
  ///
  /// The channel is cleared under its lock, with the next version.
  package func clearExpired(_ name: String, by moment: Date) throws(WormholeError) -> Bool {
    let slot = try storage.slot(.channels, name)
    return try SlotWriter(slot, of: self, name: name).clearExpired(by: moment)
  }
}
