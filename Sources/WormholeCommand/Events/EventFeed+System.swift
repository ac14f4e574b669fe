import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Locks, settings, accesses to files, and damaged files.
extension EventFeed {
  /// How often the held locks are checked: the kernel does not report that a running process has
  /// released a lock.
  private static let lockInterval = Duration.milliseconds(500)

  func watchSystem() throws {
    for lock in try container.storage.heldLocks() {
      state.withLock { $0.locks[lock.name] = .some(lock.holder) }
    }
    let watch = try container.storage.watchNames(in: .system) { change in
      guard case .came(let slot) = change else { return }
      if let name = slot.after(Container.lockPrefix) { self.watchLock(name, slot) }
      if let suite = slot.after(Container.Folder.suitePrefix) { self.watchSuite(suite, slot) }
    }
    state.withLock { $0.folders.append(watch) }
    try naming("watch", "locks") { () throws(Errno) in
      try Thread("locks") { [weak self] in
        while let self, self.checkHeldLocks() {
          let _: Void? = Monitor(()).wait(until: .now + Self.lockInterval) { _ in nil }
        }
      }.detach()
    }
  }

  private func watchLock(_ name: String, _ slot: String) {
    let isKnown = state.withLock { $0.slots[slot] != nil }
    guard !isKnown, let escaped = try? Container.escape(slot, allowance: 16) else { return }
    let path = [Container.Folder.system.rawValue, escaped, "lock"]
    let feed = try? DirectoryFeed(container.storage, path, .tenures) { _ in self.check(lock: name) }
    state.withLock { $0.slots[slot] = feed }
    // The lock may have been taken before it was watched.
    check(lock: name)
  }

  /// Reports a lock that was taken or released since the last check.
  private func check(lock name: String) {
    let held = try? container.storage.heldLock(name)
    let change = state.withLock { state -> String? in
      let before = state.locks[name]
      guard let held else {
        state.locks[name] = nil
        return before == nil ? nil : "free"
      }
      state.locks[name] = .some(held.holder)
      return before == .some(held.holder) ? nil : "held"
    }
    guard let change else { return }
    var event = ContainerEvent(
      .lock, change, name, change == "held" ? held?.holder.map { "\($0)" } : nil)
    event.process = change == "held" ? held?.holder?.process : nil
    tell(event)
  }

  /// Checks the locks that were held; always returns true.
  private func checkHeldLocks() -> Bool {
    for name in state.withLock({ Array($0.locks.keys) }) { check(lock: name) }
    return true
  }

  // MARK: Settings

  private func watchSuite(_ suite: String, _ slotName: String) {
    let isFirst = state.withLock { $0.isStarting }
    let defaults = container.defaults(suite)
    guard let slot = try? container.storage.slot(.system, slotName),
      state.withLock({ $0.suites[suite] == nil })
    else { return }
    let known = isFirst ? (try? defaults.dictionaryRepresentation()) ?? [:] : [:]
    let changes = DefaultsChanges(known, only: nil)
    let worker = Worker()
    worker.begin {
      guard let values = try? defaults.dictionaryRepresentation() else { return }
      for (key, value) in changes.next(values) {
        var event = ContainerEvent(.setting, value == nil ? "removed" : "changed", suite, key)
        event.value = value
        self.tell(event)
      }
    }
    let watch = try? slot.watch { worker.trigger() }
    state.withLock { $0.suites[suite] = watch }
  }

  // MARK: Accesses

  func watchAccesses() throws {
    for access in try container.storage.accesses() {
      state.withLock { $0.accesses[access.name] = access.state }
    }
    for place in AccessPlace.allCases {
      let path = [Container.Folder.system.rawValue, "coordination", place.name]
      let feed = try DirectoryFeed(container.storage, path, .names) { change in
        switch change {
        case .names(let names): self.check(accesses: Set(names))
        case .replaced: self.check(accesses: nil)
        case .polled, .lost: break
        }
      }
      state.withLock { $0.feeds.append(feed) }
    }
  }

  /// - Parameter names: the accesses whose files have moved; nil for all present names.
  private func check(accesses names: Set<String>?) {
    guard let found = try? container.storage.accesses(names) else { return }
    for access in found {
      let isNews = state.withLock { state in
        defer { state.accesses[access.name] = access.state }
        return state.accesses[access.name] != access.state
      }
      guard isNews else { continue }
      var event = ContainerEvent(
        .access, access.state, access.description, access.holder.map { "\($0)" })
      event.process = access.holder?.process
      event.id = access.name
      tell(event)
    }
    for name in (names ?? []).subtracting(found.map(\.name)).sorted() {
      guard state.withLock({ $0.accesses.removeValue(forKey: name) }) != nil else { continue }
      var event = ContainerEvent(.access, "ended", "files")
      event.id = name
      tell(event)
    }
  }

  func watchDamage() throws {
    let feed = try DirectoryFeed(
      container.storage, [Container.Folder.damaged.rawValue], .arrivals
    ) { change in
      let names: [String] =
        switch change {
        case .names(let names): names
        case .replaced: (try? self.container.storage.names(in: .damaged)) ?? []
        case .polled, .lost: []
        }
      for name in names where !name.ends(with: ".reason") {
        self.tell(.init(.damage, "set aside", name))
      }
    }
    state.withLock { $0.feeds.append(feed) }
  }
}

extension String {
  /// Returns the rest behind a prefix; nil for a text without the prefix.
  fileprivate func after(_ prefix: String) -> String? {
    begins(with: prefix) ? String(Substring(utf8.dropFirst(prefix.utf8.count))) : nil
  }
}
