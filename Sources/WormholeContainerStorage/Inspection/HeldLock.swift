internal import WormholeSyscalls

/// A named lock that a process holds.
package struct HeldLock: Sendable {
  package let name: String
  /// The number of takeovers so far, plus one.
  package let generation: Int
  /// The holder; nil if its mark cannot be read.
  package let holder: LockHolder?
  /// How long the lock has been held; nil if the time is not known.
  package let age: Duration?
}

extension Container {
  /// Returns the names of all named locks, held or free.
  package func lockNames() throws(WormholeError) -> [String] {
    try names(in: .system).filter { $0.begins(with: Folder.lockPrefix) }.map {
      String(Substring($0.utf8.dropFirst(Folder.lockPrefix.utf8.count)))
    }
  }

  /// Returns the named locks that are held now, in the order of their names.
  package func heldLocks() throws(WormholeError) -> [HeldLock] {
    var held: [HeldLock] = []
    for name in try lockNames() { if let lock = try heldLock(name) { held.append(lock) } }
    return held
  }

  /// Returns the state of a named lock; nil if the lock is free.
  ///
  /// Tries to share the lock for a moment, as the only proof that no process holds it.
  package func heldLock(_ name: String) throws(WormholeError) -> HeldLock? {
    let full = Folder.lockPrefix + name
    let slot = try Self.escape(full, allowance: Folder.system.allowance(for: full))
    do throws(Errno) {
      return try heldLock(name, in: slot)
    } catch {
      guard ![.noSuchFile, .notADirectory].contains(error) else { return nil }
      throw WormholeError(error, "read lock", name, in: self, "\(Folder.system.rawValue)/\(slot)")
    }
  }

  private func heldLock(_ name: String, in slot: String) throws(Errno) -> HeldLock? {
    let system = try existingFolder(.system)
    let slot = try options.sharing.openExisting(slot, in: system.descriptor)
    let locks = try options.sharing.openExisting("lock", in: slot)
    let generations = Slot.generations(of: try locks.names())
    guard let highest = generations.filter({ "\($0.value)" == $0.key }).values.max() else {
      return nil
    }
    let file = try locks.open("\(highest)", .readOnlyNonBlocking)
    if try file.tryLock(.shared) {
      try file.unlock()
      return nil
    }
    let began = (try? locks.status(of: "\(highest).d"))?.modified
    return HeldLock(
      name: name, generation: highest, holder: LockHolder(try HolderMark(in: file)),
      age: began.map { .nanoseconds(max(0, options.environment.sinceEpoch() - $0)) })
  }
}
