internal import WormholeSyscalls

/// Removing an unused slot, even if another process uses the slot at the same time.
///
/// The steps, in order, all of them under the slot's lock, held in generation `g`:
///
///     note       write the last version of the slot into `system/removed`
///     clear      commit an empty value, synced: watchers are notified
///     take       rename `kept.plist` and then `value.plist` into `lock/<g>.d`
///     close      remove `lock/<g>.d`, the lock files up to `g`, and `lock/`
///     end        remove the slot's directory
///
/// Why no update is lost: the value is renamed into the directory that fences every commit. A
/// remover that was suspended and superseded finds this directory gone, and starts again. From
/// `close` on only directories are removed, and the kernel removes only empty ones. So either
/// another process has started to use the slot again, and continues in its directory, or `lock/` is
/// gone: no file can be made in a removed directory, and none renamed out of it, so a process that
/// has the directory open commits nothing any more, notices this, and makes another slot.
///
/// A killed remover leaves a clear slot, or a slot without a value; both are valid slots.
extension Slot {
  /// Removes the slot with all its values, including previous and damaged ones; false if there is
  /// no slot.
  ///
  /// A concurrent change is not lost: it happens before the removal, and its value is removed, or
  /// it happens after the removal, and starts from an empty slot.
  ///
  /// An earlier call may have been killed, or have failed, after it had removed the slot: the steps
  /// that follow are done without a slot, too.
  ///
  /// - Parameter last: makes the bytes of the empty value, and returns its version.
  package func remove(
    _ operation: String, durability: Durability = .process, patience: Patience = .unlimited,
    _ last: (Content) throws -> (bytes: [UInt8], version: Int)
  ) throws -> Bool {
    try holdingTurn(operation, patience) {
      guard try isThere(operation) else {
        try discardDamaged(durability: durability)
        if durability == .power, let parent = try? container.existingFolder(folder) {
          try makeDurable(parent, operation)
        }
        return false
      }
      if let foreign = try foreignFile(operation) {
        throw WormholeError(
          .refused, operation, name, because: "its directory contains a foreign file, '\(foreign)'",
          hint: "move the file out of the directory, and try again")
      }
      for _ in 0...LockMachine.rerunLimit {
        guard let parent = try removeOnce(operation, patience, last) else { continue }
        try discardDamaged(durability: durability)
        if durability == .power { try makeDurable(parent, operation) }
        return true
      }
      throw WormholeError(
        .superseded, operation, name,
        because: "another process took over the lock during the removal",
        hint: "end the programs that change the value, and try again")
    }
  }

  /// Whether a directory has the name; an open directory that has lost its name is forgotten.
  private func isThere(_ operation: String) throws(WormholeError) -> Bool {
    do throws(Errno) {
      _ = container.forgetIfStale(folder)
      let status = try container.existingFolder(folder).descriptor.status(of: escaped)
      return status.kind == .directory
    } catch {
      guard error == .noSuchFile else { throw WormholeError(error, operation, self) }
      if let end = container.endIfRemoved(folder) { throw end.error(operation, name) }
      return false
    }
  }

  private func foreignFile(_ operation: String) throws(WormholeError) -> String? {
    do throws(Errno) {
      let directory = try container.existingFolder(folder).descriptor.open(
        escaped, .readOnlyDirectory)
      let known = [Self.valueName, Self.keptName, "lock"]
      if let foreign = try directory.names().first(where: { !known.contains($0) }) {
        return foreign
      }
      let locks = try directory.open("lock", .readOnlyDirectory)
      let names = try locks.names()
      let generations = Self.generations(of: names)
      return names.first { generations[$0] == nil }.map { "lock/\($0)" }
    } catch {
      // Missing files need not be removed; all other errors are found again under the lock.
      guard [.noSuchFile, .notADirectory, .tooManyLinks].contains(error) else {
        throw WormholeError(error, operation, self)
      }
      return nil
    }
  }

  /// Returns the generations of the names in `lock/`; names without an entry are foreign.
  ///
  /// A process that finds a higher number goes through all lower generations. A number above a
  /// million therefore counts only if the listing contains each number from there on: otherwise one
  /// planted name could keep every process busy forever.
  static func generations(of names: [String]) -> [String: Int] {
    var found: [String: Int] = [:]
    for name in names {
      let digits = name.ends(with: ".d") ? String(name.dropLast(2)) : name
      guard let number = Int(digits), number > 0, "\(number)" == digits else { continue }
      found[name] = number
    }
    var last = sparseLimit
    let numbers = Set(found.values)
    while numbers.contains(last), numbers.contains(last + 1) { last += 1 }
    return found.filter { $0.value <= last }
  }

  /// Up to here a generation always counts.
  private static let sparseLimit = 999_999

  /// - Returns: the parent directory; nil if the removal has to start again.
  private func removeOnce(
    _ operation: String, _ patience: Patience,
    _ last: (Content) throws -> (bytes: [UInt8], version: Int)
  ) throws -> OpenDirectory? {
    var executor = LockExecutor(self, container.policy, patience, operation)
    guard executor.advance(.begin) == .run else { throw executor.loss }
    defer { _ = executor.advance(.unchanged) }
    if executor.known() == nil, executor.beginAnewIfMoved() { return nil }
    let directory = executor.directory
    guard try clear(executor, operation, last), try takeAway(executor, operation) else {
      executor.forgetStaging()
      return nil
    }
    _ = executor.keep(nil)
    do throws(Errno) {
      try close(executor)
      try directory.parent.descriptor.removeDirectory(escaped)
    } catch {
      // Another process continues in the slot, and starts with no value.
      let harmless: Set<Errno> = [.directoryNotEmpty, .fileExists, .noSuchFile, .busy]
      guard harmless.contains(error) else { throw WormholeError(error, operation, self) }
    }
    forgetDirectory()
    return directory.parent
  }

  /// Commits an empty value; false if another process has taken the lock over.
  private func clear(
    _ executor: LockExecutor, _ operation: String,
    _ last: (Content) throws -> (bytes: [UInt8], version: Int)
  ) throws -> Bool {
    let (old, content) = try findForChange(in: executor.directory, operation)
    if case .nothing = content { return true }
    let clear = try last(content)
    // Noted before another process can find no value and start to count from zero.
    try container.noteRemoved(version: clear.version)
    var commit = Commit(
      self, executor.directory, staging: executor.staging, old: old, .power)
    commit.isErasing = true
    do throws(Errno) {
      return try commit.run(clear.bytes, nil) == .committed
    } catch {
      throw WormholeError(error, operation, self)
    }
  }

  /// Takes both values out; false if another process has taken the lock over.
  ///
  /// The previous value first: readers would use it in place of the latest value.
  private func takeAway(_ executor: LockExecutor, _ operation: String) throws -> Bool {
    let directory = executor.directory
    let isFenced = !Mutants.has(.removeWithoutFence)
    for (file, hidden) in [(File.kept, "kept"), (.value, "next")] {
      do throws(Errno) {
        let fence = try isFenced ? executor.staging : container.staging.directory()
        try directory.descriptor.rename(file.name, to: fence.descriptor, hidden)
      } catch {
        guard error == .noSuchFile else { throw WormholeError(error, operation, self) }
        guard (try? directory.descriptor.status(of: file.name)) == nil else { return false }
      }
    }
    return true
  }

  /// Removes the directories that make commits possible, from the fence up.
  private func close(_ executor: LockExecutor) throws(Errno) {
    let locks = executor.state.locks!
    let generation = executor.state.machine.generation
    try container.staging.clear(away: "\(generation).d", in: locks.descriptor)
    // A process of the next generation needs the names that show the generations.
    guard try !executor.isThere(generation + 1) else { throw .directoryNotEmpty }
    for name in try locks.descriptor.names() {
      if let number = Int(name), number <= generation { try locks.descriptor.unlink(name) }
    }
    try executor.directory.descriptor.removeDirectory("lock")
  }

  private func makeDurable(_ parent: OpenDirectory, _ operation: String) throws(WormholeError) {
    do throws(Errno) {
      try parent.sync.sync(parent.descriptor)
    } catch {
      throw WormholeError(
        .notDurable, operation, name,
        because: "the removal is done, but the directory could not be synced: \(error)",
        hint: "if the name returns without a value after a power cut, remove the name again",
        errno: error)
    }
  }
}
