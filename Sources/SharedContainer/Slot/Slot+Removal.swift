internal import Syscalls

/// Removing a slot that nobody needs any more, whoever uses it at that moment.
///
/// In the order in which it happens, all of it under the slot's lock, held in generation `g`:
///
///     note       the version that the slot will have had last, in `system/removed`
///     clear      commit that there is nothing, synced: whoever watches hears it
///     take       rename `kept.plist` and then `value.plist` into `lock/<g>.d`
///     close      remove `lock/<g>.d`, the lock files up to `g`, and `lock/`
///     end        remove the slot's directory
///
/// Why nothing is lost: the value goes by way of the directory that is the fence of every commit. A
/// remover that was stopped and superseded finds that one gone, and begins again. From `close` on
/// only directories are removed, which the kernel does with empty ones alone. So either somebody
/// has begun to use the slot again, and goes on in it, or `lock/` is gone: nothing can be made in a
/// directory that was removed, and nothing renamed out of one, so whoever has it open commits
/// nothing any more, notices, and makes another slot.
///
/// Killed in between it leaves a slot that is clear, or that never had a value, and that is as good
/// as any.
extension Slot {
  /// Removes the slot with all that was ever kept in it; false if there is none.
  ///
  /// Whoever changes it at that moment loses nothing: the change comes before the removal, and goes
  /// with it, or after, and is made to nothing.
  ///
  /// - Parameter last: makes what says that there is nothing, and which version that is.
  package func remove(
    _ operation: String, durability: Durability = .process, patience: Patience = .unlimited,
    _ last: (Content) throws -> (bytes: [UInt8], version: Int)
  ) throws -> Bool {
    try holdingTurn(operation, patience) {
      guard try isThere(operation) else { return false }
      if let foreign = try foreignFile(operation) {
        throw WormholeError(
          .refused, operation, name, because: "a foreign file lies in it, '\(foreign)'",
          hint: "move it elsewhere")
      }
      for _ in 0...LockMachine.rerunLimit {
        guard let parent = try removeOnce(operation, patience, last) else { continue }
        if durability == .power { try makeDurable(parent, operation) }
        try discardDamaged()
        return true
      }
      throw WormholeError(
        .superseded, operation, name, because: "others took the lock over while it ran",
        hint: "see who changes it")
    }
  }

  /// Whether a directory has the name; what was open and no longer has it is forgotten.
  private func isThere(_ operation: String) throws(WormholeError) -> Bool {
    do throws(Errno) {
      _ = container.forgetIfStale(folder)
      let status = try container.existingFolder(folder).descriptor.status(of: escaped)
      return status.kind == .directory
    } catch {
      guard error == .noSuchFile else { throw WormholeError(error, operation, name) }
      if let end = container.endIfRemoved(folder) { throw end.error(operation, name) }
      return false
    }
  }

  private func foreignFile(_ operation: String) throws(WormholeError) -> String? {
    do throws(Errno) {
      let directory = try container.existingFolder(folder).descriptor.open(
        escaped, [.readOnly, .directory])
      let known = [Self.valueName, Self.keptName, "lock"]
      if let foreign = try directory.names().first(where: { !known.contains($0) }) {
        return foreign
      }
      let locks = try directory.open("lock", [.readOnly, .directory])
      return try locks.names().first { Self.generation($0) == nil }.map { "lock/\($0)" }
    } catch {
      // What is missing already need not be removed; of anything else the lock tells.
      guard [.noSuchFile, .notADirectory, .tooManyLinks].contains(error) else {
        throw WormholeError(error, operation, name)
      }
      return nil
    }
  }

  /// Of which generation something in `lock/` is, by its name; nil for what is foreign.
  ///
  /// A generation lasts for a lease at least, so nobody comes to greater numbers, and whoever went
  /// by one would go through all that are below it.
  static func generation(_ name: String) -> Int? {
    let digits = name.ends(with: ".d") ? String(name.dropLast(2)) : name
    guard let number = Int(digits), "\(number)" == digits, number <= 999_999 else { return nil }
    return number
  }

  /// - Returns: the directory that it lay in; nil if it has to be done again.
  private func removeOnce(
    _ operation: String, _ patience: Patience,
    _ last: (Content) throws -> (bytes: [UInt8], version: Int)
  ) throws -> OpenDirectory? {
    let policy = LockPolicy(lease: container.options.lease, cap: container.options.cap)
    var executor = LockExecutor(self, policy, patience, operation)
    guard executor.advance(.begin) == .run else {
      throw executor.failure
        ?? WormholeError(.system, operation, name, because: "the lock was lost")
    }
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
      // Somebody goes on in it, and begins with nothing.
      let harmless: Set<Errno> = [.directoryNotEmpty, .fileExists, .noSuchFile, .busy]
      guard harmless.contains(error) else { throw WormholeError(error, operation, name) }
    }
    forgetDirectory()
    return directory.parent
  }

  /// Commits that there is nothing; false if others have taken the lock over.
  private func clear(
    _ executor: LockExecutor, _ operation: String,
    _ last: (Content) throws -> (bytes: [UInt8], version: Int)
  ) throws -> Bool {
    let (old, content) = try findForChange(in: executor.directory, operation)
    if case .nothing = content { return true }
    let clear = try last(content)
    // Before anybody can find nothing and count from there.
    try container.noteRemoved(version: clear.version)
    var commit = Commit(
      self, executor.directory, staging: executor.staging, old: old, .power)
    commit.isErasing = true
    do throws(Errno) {
      return try commit.run(clear.bytes, nil) == .committed
    } catch {
      throw WormholeError(error, operation, name)
    }
  }

  /// Takes both values out; false if others have taken the lock over.
  ///
  /// The kept one first: it would stand in for the other.
  private func takeAway(_ executor: LockExecutor, _ operation: String) throws -> Bool {
    let directory = executor.directory
    let isFenced = !Mutants.has(.removeWithoutFence)
    for (file, hidden) in [(File.kept, "kept"), (.value, "next")] {
      do throws(Errno) {
        let fence = try isFenced ? executor.staging : container.staging.directory()
        try directory.descriptor.rename(file.name, to: fence.descriptor, hidden)
      } catch {
        guard error == .noSuchFile else { throw WormholeError(error, operation, name) }
        guard (try? directory.descriptor.status(of: file.name)) == nil else { return false }
      }
    }
    return true
  }

  /// Removes what makes commits possible, from the fence up.
  private func close(_ executor: LockExecutor) throws(Errno) {
    let locks = executor.state.locks!
    let generation = executor.state.machine.generation
    try container.staging.clear(away: "\(generation).d", in: locks.descriptor)
    // Whoever has come meanwhile needs what tells of the generations.
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
        because: "it is done, but the directory could not be synced: \(error)",
        hint: "a power cut may bring it back, without a value", errno: error)
    }
  }
}
