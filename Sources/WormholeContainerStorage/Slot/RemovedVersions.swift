internal import WormholePropertyLists

/// The greatest version of all removed values: the value of the slot `removed` in `system/`.
///
/// The first value under a name continues to count from there. A process that knows a version of a
/// removed value under the name therefore never meets the version again, nor a smaller one. One
/// number for all names: it does not grow with the number of removed names.
private struct RemovedVersions: Codable {
  var version: Int

  /// Unreachable by counting; greater versions are forged, and do not count.
  static let limit = 1 << 62
  /// As after a damaged value: see *The directory*.
  static let recoveryStep = 1_000_000
}

extension Container {
  /// The path of the record.
  static let removedPath = "system/removed"

  /// Returns the version from which the first version of a new value counts; nil if the record
  /// cannot be read.
  package func removedVersion() -> Int? {
    do {
      let content = try removedSlot().read()
      guard case .value(_, recovered: true) = content else {
        return try statedVersion(in: content)
      }
      return versionAbove(content)
    } catch {
      logUnreadable(error)
      return nil
    }
  }

  /// Returns the version that the record states; nil if the record cannot be read.
  ///
  /// Throws if the system refuses the reading for now.
  package func presentRemovedVersion() throws(WormholeError) -> Int? {
    do {
      return try statedVersion(in: removedSlot().read())
    } catch {
      if let refusal = error as? WormholeError, refusal.mayPass { throw refusal }
      logUnreadable(error)
      return nil
    }
  }

  private func logUnreadable(_ error: any Error) {
    log(.warning, "cannot read the versions of removed values: \(error)", because: error)
  }

  private func statedVersion(in content: Slot.Content) throws -> Int? {
    switch content {
    case .nothing: return 0
    case .damaged, .tooLarge: return nil
    case .value(let bytes, _):
      let noted = try BinaryDecoder().decode(RemovedVersions.self, from: bytes).version
      return (0...RemovedVersions.limit).contains(noted) ? noted : nil
    }
  }

  /// Returns the version that the latest record states; nil if the latest record cannot be read.
  private func latestVersion(in content: Slot.Content) -> Int? {
    if case .value(_, recovered: true) = content { return nil }
    return try? statedVersion(in: content)
  }

  /// Returns a version that is not below the version in a damaged record.
  ///
  /// The previous record lacks the latest removals, of any number of versions. The number of
  /// microseconds since 1970 is greater than every version, as after a damaged value.
  private func versionAbove(_ content: Slot.Content) -> Int {
    let earlier = (try? statedVersion(in: content)) ?? 0
    let fresh = Int(clamping: options.environment.sinceEpoch() / 1000)
    return min(max(earlier + RemovedVersions.recoveryStep, fresh), RemovedVersions.limit)
  }

  /// Records the removal of a value with this version, in place of a damaged record too.
  func noteRemoved(version: Int) throws {
    guard version <= RemovedVersions.limit else { return }
    let (slot, operation) = (try removedSlot(), "record a removal in")
    let outcome = try slot.change(operation, durability: .power) { content in
      let noted = latestVersion(in: content)
      if let noted, noted >= version, !Mutants.has(.lastRemoved) { return .none }
      let greatest = noted == nil ? max(version, versionAbove(content)) : version
      return .put(try BinaryEncoder().encode(RemovedVersions(version: greatest)))
    }
    // An earlier removal may have written the record, without its sync.
    if outcome == .unchanged { try slot.syncName("\(operation) \(slot.title)") }
  }

  private func removedSlot() throws(WormholeError) -> Slot {
    Slot(
      container: self, folder: .system, name: "removed", try Self.escape("removed"),
      isInnermost: true)
  }
}
