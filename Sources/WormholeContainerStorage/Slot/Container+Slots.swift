internal import WormholeSyscalls

/// The slots of one open container.
private final class SlotTable: Service {
  let cache = Monitor(SlotCache())
  let open = Monitor(OpenSlots())
}

extension Container {
  private var slots: SlotTable { services.get(SlotTable.init) }

  /// Returns the slot of a name.
  ///
  /// The same object as long as a caller retains it.
  package func slot(_ folder: Folder, _ name: String) throws(WormholeError) -> Slot {
    let escaped = try Self.escape(name, allowance: folder.allowance(for: name))
    return slots.cache.withLock { cache in
      cache.slot(folder, escaped) { Slot(container: self, folder: folder, name: name, escaped) }
    }
  }

  /// Returns the slot of a name of the user after a prefix of the library.
  ///
  /// An empty name is refused, as in every other folder: the prefix alone could be escaped.
  package func slot(prefix: String, _ name: String) throws(WormholeError) -> Slot {
    guard !name.isEmpty else {
      throw WormholeError(.invalidName, "use name", name, because: "the name is empty")
    }
    do throws(WormholeError) {
      return try slot(.system, prefix + name)
    } catch {
      throw error.named(name)
    }
  }

  /// Counts a slot as open, and closes the oldest open slots above the limit.
  func noteOpened(_ slot: Slot) {
    for oldest in slots.open.withLock({ $0.add(slot) }) where !oldest.closeIfIdle() {
      slots.open.withLock { $0.keep(oldest) }
    }
  }

  /// The names of the slots that hold, or held, a value; unescaped and sorted.
  ///
  /// A slot that is only watched, or whose first change failed, has an empty directory.
  package func slotNames(in folder: Folder) throws(WormholeError) -> [String] {
    try names(in: folder).filter { name in
      guard
        let escaped = try? EscapedName.escape(name, allowance: folder.allowance(for: name)),
        let parent = try? existingFolder(folder)
      else { return false }
      return [Slot.valueName, Slot.keptName].contains { file in
        (try? parent.descriptor.status(of: "\(escaped)/\(file)")) != nil
      }
    }
  }
}
