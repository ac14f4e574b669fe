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
}

extension Container {
  /// Returns the version from which the first version of a new value counts; nil if the record
  /// cannot be read.
  package func removedVersion() -> Int? {
    do {
      return try removedVersion(in: removedSlot().read())
    } catch {
      log(.warning, "cannot read the versions of removed values: \(error)", because: error)
      return nil
    }
  }

  /// As ``removedVersion()``; throws if the system refuses the reading for now.
  package func presentRemovedVersion() throws(WormholeError) -> Int? {
    do {
      return try removedVersion(in: removedSlot().read())
    } catch {
      if let refusal = error as? WormholeError, refusal.mayPass { throw refusal }
      return removedVersion()
    }
  }

  private func removedVersion(in content: Slot.Content) throws -> Int? {
    switch content {
    case .nothing: return 0
    case .damaged, .tooLarge: return nil
    case .value(let bytes, _):
      let noted = try BinaryDecoder().decode(RemovedVersions.self, from: bytes).version
      return (0...RemovedVersions.limit).contains(noted) ? noted : nil
    }
  }

  /// Records the removal of a value with this version.
  func noteRemoved(version: Int) throws {
    guard version <= RemovedVersions.limit else { return }
    let (slot, operation) = (try removedSlot(), "record a removal in")
    let outcome = try slot.change(operation, durability: .power) { content in
      let noted = try? removedVersion(in: content)
      if let noted, noted >= version, !Mutants.has(.lastRemoved) { return .none }
      return .put(try BinaryEncoder().encode(RemovedVersions(version: version)))
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
