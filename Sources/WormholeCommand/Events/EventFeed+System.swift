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
      if let name = slot.after(Container.Folder.lockPrefix) { self.watchLock(name) }
      if let suite = slot.after(Container.Folder.suitePrefix) {
        self.watchSuite(suite, isOld: self.state.withLock { $0.isStarting })
      }
    }
    state.withLock { $0.folders.append(watch) }
    try naming("watch", "locks") { () throws(Errno) in
      try Thread("locks") { [weak self] in
        while let self, self.checkHeldLocks() {
          Thread.pause(Self.lockInterval)
        }
      }.detach()
    }
  }

  private func watchLock(_ name: String) {
    let slot = Container.Folder.lockPrefix + name
    let isKnown = state.withLock { $0.slots[slot] != nil }
    guard !isKnown, let escaped = try? Container.escape(slot, allowance: 16) else { return }
    let path = [Container.Folder.system.rawValue, escaped, "lock"]
    let feed = try? DirectoryFeed(container.storage, path, .tenures) { _ in self.check(lock: name) }
    state.withLock { state in
      state.slots[slot] = feed
      if feed == nil {
        state.unwatchedLocks.insert(name)
      } else {
        state.unwatchedLocks.remove(name)
      }
    }
    // The lock may have been taken before it was watched.
    check(lock: name)
  }

  /// Reports a lock that was taken or released since the last check.
  func check(lock name: String) { lockTurn.withLock { _ in checkInTurn(lock: name) } }

  private func checkInTurn(lock name: String) {
    let held: HeldLock?
    do throws(WormholeError) {
      held = try container.storage.heldLock(name)
    } catch {
      // A refused call says nothing about the lock, which is checked again in a moment.
      _ = state.withLock { $0.uncheckedLocks.insert(name) }
      return
    }
    let change = state.withLock { state -> String? in
      state.uncheckedLocks.remove(name)
      let before = state.locks[name]
      guard let held else {
        state.locks[name] = nil
        return before == nil ? nil : "free"
      }
      state.locks[name] = .some(held.holder)
      // A holder that is stopped or resumed holds the lock as before.
      if let before, before?.process == held.holder?.process,
        before?.program == held.holder?.program
      {
        return nil
      }
      return "held"
    }
    guard let change else { return }
    var event = ContainerEvent(
      .lock, change, name, change == "held" ? held?.holder.map { "\($0)" } : nil)
    event.process = change == "held" ? held?.holder?.process : nil
    tell(event)
  }

  /// Checks the locks that were held, and all that could not be checked or watched before.
  ///
  /// - Returns: always true.
  func checkHeldLocks() -> Bool {
    checkSuites()
    for name in state.withLock({ $0.unwatchedLocks }) { watchLock(name) }
    let names = state.withLock { Set($0.locks.keys).union($0.uncheckedLocks) }
    for name in names { check(lock: name) }
    return true
  }

  // MARK: Settings

  /// Watches a suite; a watch that the system refuses is tried again.
  ///
  /// - Parameter isOld: whether the suite was there at the start: its settings are no events.
  func watchSuite(_ suite: String, isOld: Bool) {
    guard state.withLock({ $0.suites[suite] == nil }) else { return }
    do throws(WormholeError) {
      let slot = try container.storage.slot(.system, Container.Folder.suitePrefix + suite)
      let known = try isOld ? settings(of: suite) : [:]
      let (changes, worker) = (DefaultsChanges(known ?? [:], only: nil), Worker())
      worker.begin { self.check(suite, changes) }
      let watch = try slot.watch { worker.trigger() }
      state.withLock { state in
        state.suites[suite] = SettingsFeed(watch: watch, worker: worker)
        state.unwatchedSuites[suite] = nil
      }
    } catch {
      if error.mayPass { state.withLock { $0.unwatchedSuites[suite] = isOld } }
    }
  }

  /// Reads the settings of a suite; nil for a suite that no later call can read as it is.
  private func settings(
    of suite: String
  ) throws(WormholeError) -> [String: PropertyListValue]? {
    do throws(WormholeError) {
      return try container.defaults(suite).dictionaryRepresentation()
    } catch {
      guard error.mayPass else { return nil }
      throw error
    }
  }

  /// Reports the settings that have changed since the last check.
  func check(_ suite: String, _ changes: DefaultsChanges) {
    let values: [String: PropertyListValue]?
    do throws(WormholeError) {
      values = try settings(of: suite)
    } catch {
      // No notice of this change comes again.
      _ = state.withLock { $0.unreadSuites.insert(suite) }
      return
    }
    guard let values else { return }
    for (key, value) in changes.next(values) {
      var event = ContainerEvent(.setting, value == nil ? "removed" : "changed", suite, key)
      event.value = value
      tell(event)
    }
  }

  /// Checks the suites that could not be watched or read.
  func checkSuites() {
    let (unwatched, unread) = state.withLock { state in
      (state.unwatchedSuites, exchange(&state.unreadSuites, with: []))
    }
    for (suite, isOld) in unwatched { watchSuite(suite, isOld: isOld) }
    for suite in unread { state.withLock { $0.suites[suite]?.worker }?.trigger() }
  }

  // MARK: Accesses

  func watchAccesses() throws {
    for place in AccessPlace.allCases {
      let path = [Container.Folder.system.rawValue, "coordination", place.name]
      let feed = try DirectoryFeed(container.storage, path, .names) { change in
        switch change {
        case .names(let names): self.check(accesses: Set(names))
        case .replaced, .polled, .lost: self.check(accesses: nil)
        }
      }
      state.withLock { $0.feeds.append(feed) }
    }
    // Listed after the watches have begun: a check before the listing reports nothing, and each
    // check after the listing compares with the listing.
    try accessTurn.withLock { _ in
      let present = try container.storage.accesses().map { ($0.name, $0.state) }
      state.withLock { $0.accesses = Dictionary(present) { $1 } }
    }
  }

  /// Reports the accesses that have begun, moved or ended since the last check.
  ///
  /// - Parameter names: the accesses whose files have moved; nil for all names.
  private func check(accesses names: Set<String>?) {
    accessTurn.withLock { _ in checkInTurn(accesses: names) }
  }

  private func checkInTurn(accesses names: Set<String>?) {
    let (before, missesSome) = state.withLock { ($0.accesses, $0.missesAccesses) }
    guard var known = before else { return }
    let wanted = missesSome ? nil : names
    guard let found = try? container.storage.accesses(wanted) else {
      // The names of this notice do not come again: the next check concerns all names.
      state.withLock { $0.missesAccesses = true }
      return
    }
    for access in found {
      let last = known.updateValue(access.state, forKey: access.name)
      guard last != access.state else { continue }
      var event = ContainerEvent(
        .access, access.state, access.description, access.holder.map { "\($0)" })
      event.process = access.holder?.process
      event.id = access.name
      tell(event)
    }
    for name in (wanted ?? Set(known.keys)).subtracting(found.map(\.name)).sorted() {
      guard known.removeValue(forKey: name) != nil else { continue }
      var event = ContainerEvent(.access, "ended", "files")
      event.id = name
      tell(event)
    }
    state.withLock { state in
      state.missesAccesses = false
      // The watches may have ended.
      if state.accesses != nil { state.accesses = known }
    }
  }

  func watchDamage() throws {
    let known = Monitor(Set(damagedFiles()))
    let feed = try DirectoryFeed(
      container.storage, [Container.Folder.damaged.rawValue], .arrivals
    ) { change in
      let names: [String] =
        switch change {
        case .names(let names): names
        case .replaced, .polled, .lost: self.damagedFiles()
        }
      // Without the names of the change, files that were there before are listed, too. Each file
      // has a name of its own.
      for name in names where known.withLock({ $0.insert(name).inserted }) {
        if !name.ends(with: ".reason") { self.tell(.init(.damage, "set aside", name)) }
      }
    }
    state.withLock { $0.feeds.append(feed) }
  }

  /// The names in `damaged/`, as notices state them; none if the directory cannot be read.
  private func damagedFiles() -> [String] {
    guard
      let folder = try? container.storage.root.descriptor.open(
        Container.Folder.damaged.rawValue, .readOnlyDirectory)
    else { return [] }
    return ((try? folder.names()) ?? []).sorted()
  }
}

/// The watch of a suite, and the worker that reads the suite after each change.
struct SettingsFeed: Sendable {
  let watch: NamedWatch
  let worker: Worker
}

extension String {
  /// Returns the rest behind a prefix; nil for a text without the prefix.
  fileprivate func after(_ prefix: String) -> String? {
    begins(with: prefix) ? String(Substring(utf8.dropFirst(prefix.utf8.count))) : nil
  }
}
