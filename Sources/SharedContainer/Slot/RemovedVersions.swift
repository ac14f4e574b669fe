internal import PropertyLists

/// The greatest version that anything had which was removed: the value of the slot `removed` in
/// `system/`.
///
/// What comes under a name for the first time counts on from there, so that whoever knows a version
/// of what was removed under that name never meets it again, nor a smaller one. One number for all
/// names: it does not grow with what was removed.
private struct RemovedVersions: Codable {
  var version: Int

  /// What nobody reaches by counting; greater ones are made up, and not counted on from.
  static let limit = 1 << 62
}

extension Container {
  /// After which version that counts which is written for the first time; nil if what is noted of
  /// it cannot be read.
  package func removedVersion() -> Int? {
    do {
      return try removedVersion(in: removedSlot().read())
    } catch {
      log(.warning, "cannot tell which versions were removed: \(error)", because: error)
      return nil
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

  /// Notes that something is being removed which has that version.
  func noteRemoved(version: Int) throws {
    guard version <= RemovedVersions.limit else { return }
    try removedSlot().change("note a removal in", durability: .power) { content in
      let noted = try? removedVersion(in: content)
      if let noted, noted >= version { return .none }
      return .put(try BinaryEncoder().encode(RemovedVersions(version: version)))
    }
  }

  private func removedSlot() throws(WormholeError) -> Slot {
    Slot(
      container: self, folder: .system, name: "removed", try Self.escape("removed"),
      isInnermost: true)
  }
}
