internal import Synchronization
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Moving a new value into place, out of the directory that makes it valid (P3), and disposing of
/// the old value.
struct Commit {
  enum Outcome { case committed, superseded }

  let slot: Slot
  let directory: SlotDirectory
  /// `lock/<g>.d`, opened before the check for a next generation.
  let staging: OpenDirectory
  /// The file that was read under the lock.
  let old: FoundFile
  let isDurable: Bool
  /// Whether no previous value is to be retained.
  var isErasing = false
  /// The caller's note about the new value.
  private var note: Int?
  /// The new file, if it stays open.
  private(set) var staged: CommittedFile?

  // Not strings: passing a string to the kernel takes an allocation.
  private static var next: UnsafePointer<CChar> { ("next" as StaticString).cString }
  private static var kept: UnsafePointer<CChar> { ("kept" as StaticString).cString }
  private var container: Container { slot.container }

  init(
    _ slot: Slot, _ directory: SlotDirectory, staging: OpenDirectory, old: FoundFile,
    _ durability: Durability
  ) {
    self.slot = slot
    self.directory = directory
    self.staging = staging
    self.old = old
    isDurable = durability == .power
  }

  /// Stages the new value and exchanges the files.
  ///
  /// Every error means that nothing was changed.
  mutating func run(_ bytes: [UInt8], _ note: Int?) throws(Errno) -> Outcome {
    self.note = note
    let syncs = (isDurable || isErasing || keptIsOld()) && !Mutants.has(.noFileSync)
    var bytes = bytes
    if syncs { BinaryPropertyList.markSynced(&bytes) }
    do throws(Errno) {
      try stage(bytes, sync: syncs)
    } catch {
      if error == .noSuchFile { return .superseded }
      try? staging.descriptor.unlink(Self.next)
      guard syncs, error == .inputOutput else { throw error }
      // After a failed write the kernel discards the data: only a new file can be trusted.
      return try again(bytes)
    }
    return try publish(isSynced: syncs)
  }

  private mutating func again(_ bytes: [UInt8]) throws(Errno) -> Outcome {
    do throws(Errno) {
      try stage(bytes, sync: true)
    } catch {
      if error == .noSuchFile { return .superseded }
      try? staging.descriptor.unlink(Self.next)
      throw error
    }
    return try publish(isSynced: true)
  }

  private mutating func stage(_ bytes: [UInt8], sync: Bool) throws(Errno) {
    staged = nil
    let file = try create()
    if container.options.sharing == .group { try file.setMode(Sharing.group.fileMode) }
    var failure: Errno?
    bytes.withUnsafeBytes { bytes in
      failure = Errno.of { () throws(Errno) in try file.writeFully(bytes) }
    }
    if let failure { throw failure }
    if sync {
      do throws(Errno) { try file.sync() } catch {
        guard Mutants.has(.syncAgain) else { throw error }
        try file.sync()
      }
    }
    if bytes.count <= CommittedFile.limit, directory.keepsOpen {
      staged = try CommittedFile(file, bytes, note)
    }
  }

  private func create() throws(Errno) -> Descriptor {
    var tries = 0
    while true {
      do throws(Errno) {
        return try staging.descriptor.open(Self.next, .writeOnlyNew, mode: 0o600)
      } catch {
        // A holder of this generation died and left the file.
        tries += 1
        guard error == .fileExists, tries < 10 else { throw error }
        try empty(staging.descriptor, container.options.sharing)
      }
    }
  }

  // MARK: Into place

  private func publish(isSynced: Bool) throws(Errno) -> Outcome {
    let failure = Errno.of { () throws(Errno) in
      if !isSynced { try keepOld() }
      switch old {
      case .missing:
        try moveIn(.notReplacing)
      case .damaged where Mutants.has(.healByRename):
        let damaged = try container.folder(.damaged)
        try directory.descriptor.rename(
          Slot.File.value.name, to: damaged.descriptor, "\(slot.escaped).mutant")
        try moveIn(.notReplacing)
      case .damaged where !isErasing:
        // Opened before the exchange, because the next change removes a value that cannot be set
        // aside; opened again each time, because a user who has examined the damaged values may
        // have removed the folder.
        let damaged = OpenDirectory(try container.openFolder(.damaged))
        try moveIn(.exchanging)
        disposeOfOld(isKept: !isSynced, damaged)
      case .sound, .damaged:
        try moveIn(.exchanging)
        disposeOfOld(isKept: !isSynced)
      }
    }
    return if let failure { try settle(failure) } else { .committed }
  }

  /// Makes a synced value the previous value *before* an unsynced value takes its place.
  ///
  /// Names reach the disk in the order of their changes. If the synced value were retained only
  /// afterwards, a power cut between the two steps could lose an acknowledged value: it would have
  /// lost its name and would not be retained yet, while the content of the new value never reached
  /// the disk.
  private func keepOld() throws(Errno) {
    guard case .sound(let bytes, _) = old, BinaryPropertyList.isMarkedSynced(bytes), mayKeep()
    else { return }
    do throws(Errno) {
      try linkOld()
    } catch {
      // An unlinkable file has replaced the value since the read: it is foreign.
      if error == .notPermitted { return }
      guard error == .fileExists else { throw error }
      // A holder of this generation died and left the name.
      try staging.descriptor.unlink(Self.kept)
      try linkOld()
    }
    try staging.descriptor.rename(Self.kept, to: directory.descriptor, Slot.File.kept.name)
    // If the value was retained already, both names are one file, and the rename has left both
    // names.
    try? staging.descriptor.unlink(Self.kept)
  }

  private func linkOld() throws(Errno) {
    try directory.descriptor.link(Slot.File.value.name, to: staging.descriptor, Self.kept)
  }

  private func moveIn(_ rule: RenameRule) throws(Errno) {
    do throws(Errno) {
      try move(rule)
    } catch {
      guard error.meansUnsupportedRename else { throw error }
      try move(.replacing)
    }
  }

  private func move(_ rule: RenameRule) throws(Errno) {
    try staging.descriptor.rename(Self.next, to: directory.descriptor, Slot.File.value.name, rule)
  }

  /// Determines why the rename failed.
  ///
  /// Either this process is superseded, or the value was removed or made by a tool that does not
  /// know the lock.
  private func settle(_ error: Errno) throws(Errno) -> Outcome {
    switch error {
    case .noSuchFile:
      guard try isStaged() else { return .superseded }
      do throws(Errno) {
        try moveIn(.notReplacing)
        return .committed
      } catch {
        guard error == .noSuchFile || error == .fileExists else { throw error }
        return .superseded
      }
    case .fileExists:
      try? staging.descriptor.unlink(Self.next)
      return .superseded  // The present value is read again.
    default:
      try? staging.descriptor.unlink(Self.next)
      throw error
    }
  }

  private func isStaged() throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try staging.descriptor.status(of: Self.next)
      return true
    } catch {
      if error == .noSuchFile { return false }
      throw error
    }
  }

  // MARK: The old value

  /// Disposes of the old value, which the exchange put under the name of the new one.
  ///
  /// The old value is out of the way already, so a failure here has no effect: the next change
  /// empties the directory.
  ///
  /// - Parameter damaged: the directory for damaged values.
  private func disposeOfOld(isKept: Bool, _ damaged: OpenDirectory? = nil) {
    let failure = Errno.of { () throws(Errno) in
      switch old {
      case _ where isErasing:
        try staging.descriptor.unlink(Self.next)
      case .damaged(let reason, _):
        if let damaged { try setAside(reason, in: damaged) }
      case .sound(let bytes, _)
      where BinaryPropertyList.isMarkedSynced(bytes) && !isKept && mayKeep():
        try staging.descriptor.rename(Self.next, to: directory.descriptor, Slot.File.kept.name)
      case .sound, .missing:
        try staging.descriptor.unlink(Self.next)
      }
    }
    if let failure, failure != .noSuchFile {
      container.log(
        .notice, "could not remove an old value of '\(slot.name)': \(failure)",
        about: slot.logSubject, because: failure)
    }
  }

  /// Makes the new value also the previous value, in place of an earlier one; returns the error of
  /// a failed attempt.
  ///
  /// The slot must keep a previous value: later writers rely on its existence and write values
  /// without a sync.
  func eraseOld() -> Errno? {
    guard isErasing, mayKeep() else { return nil }
    return Errno.of { () throws(Errno) in
      do throws(Errno) {
        try? staging.descriptor.unlink(Self.kept)
        try linkOld()
        try staging.descriptor.rename(Self.kept, to: directory.descriptor, Slot.File.kept.name)
      } catch {
        // The file system has no links.
        guard [.notPermitted, .notSupported, .tooManyLinks].contains(error) else { throw error }
        try directory.descriptor.unlink(Slot.File.kept.name)
        directory.keptFresh.store(0, ordering: .relaxed)
      }
      // The directory contains only files from failed removals, by a dead holder or in this tenure.
      try empty(staging.descriptor, container.options.sharing)
    }
  }

  /// Whether the previous value's name leads to a plain file, or to nothing: a foreign entry is not
  /// replaced.
  private func mayKeep() -> Bool {
    (try? directory.descriptor.status(of: Slot.File.kept.name))?.kind ?? .regular == .regular
  }

  private func setAside(_ reason: String, in damaged: OpenDirectory) throws(Errno) {
    let stem = "\(container.options.environment.sinceEpoch()).\(slot.escaped)"
    try staging.descriptor.rename(Self.next, to: damaged.descriptor, "\(stem).plist")
    container.count { $0.heals += 1 }
    container.log(
      .error,
      "the value of \(slot.title) '\(slot.name)' was damaged (\(reason)); the file moved to "
        + "\(container.path)/damaged/\(stem).plist", about: slot.logSubject)
    try container.explain(
      "\(slot.folder.rawValue)/\(slot.escaped)/\(Slot.valueName): \(reason)", as: stem,
      in: damaged)
  }

  /// Whether the value that a reader would fall back on after a power cut is missing or too old, so
  /// that the new value must be able to replace it (P7).
  private func keptIsOld() -> Bool {
    // If there is no value, its previous value may have been removed with it since the last check.
    if case .missing = old { return true }
    let now = container.options.environment.now()
    if now.nanoseconds < directory.keptFresh.load(ordering: .relaxed) { return false }
    guard let status = try? directory.descriptor.status(of: Slot.File.kept.name) else {
      return true
    }
    guard status.kind == .regular else { return true }
    let age = Duration.nanoseconds(
      container.options.environment.sinceEpoch() - status.modified)
    guard age >= .zero || Mutants.has(.trustFuture), age < container.options.keptAge else {
      return true
    }
    let fresh = now + (container.options.keptAge - age)
    directory.keptFresh.store(fresh.nanoseconds, ordering: .relaxed)
    return false
  }
}

extension Container {
  /// Writes the former path of a value in `damaged/`, and the reason, into a file beside it.
  func explain(
    _ reason: String, as stem: String, in damaged: OpenDirectory
  ) throws(Errno) {
    var words = reason + "\n"
    let failure = words.withUTF8 { words in
      Errno.of { () throws(Errno) in
        try staging.withFile(UnsafeRawBufferPointer(words)) { name, _ throws(Errno) in
          try staging.directory().descriptor.publish(name, to: damaged.descriptor, "\(stem).reason")
        }
      }
    }
    if let failure { throw failure }
  }
}
