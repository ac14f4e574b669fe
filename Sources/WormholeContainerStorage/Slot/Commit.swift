internal import Synchronization
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Moving a new value into place, out of the directory that makes it valid (P3), and disposing of
/// the old value.
struct Commit {
  let slot: Slot
  let directory: SlotDirectory
  /// `lock/<g>.d`, opened before the check for a next generation.
  let staging: OpenDirectory
  /// The file that was read under the lock.
  let old: FoundFile
  let isDurable: Bool
  /// Whether no previous value is to be retained.
  var isErasing = false
  /// Whether the old value is the previous value, or becomes it, so that its time is renewed.
  var renewsKept = false
  /// Whether the new value's name is synced, with ``syncName(_:)``, before the change is reported.
  var syncsName: Bool
  /// The caller's note about the new value.
  private var note: Int?
  /// The new file, if it stays open.
  private(set) var staged: CommittedFile?
  /// The new file, if it was committed without a sync and can be saved afterwards.
  private(set) var unsaved: CommittedFile?

  // Not strings: passing a string to the kernel takes an allocation.
  static var next: UnsafePointer<CChar> { ("next" as StaticString).cString }
  private static var kept: UnsafePointer<CChar> { ("kept" as StaticString).cString }
  var container: Container { slot.container }

  init(
    _ slot: Slot, _ directory: SlotDirectory, staging: OpenDirectory, old: FoundFile,
    _ durability: Durability
  ) {
    self.slot = slot
    self.directory = directory
    self.staging = staging
    self.old = old
    isDurable = durability == .power
    syncsName = isDurable
  }

  /// Stages the new value and exchanges the files.
  ///
  /// Every error means that nothing was changed.
  mutating func run(_ bytes: [UInt8], _ note: Int?) throws(Errno) -> CommitOutcome {
    self.note = note
    if isDurable || isErasing || mustSync() {
      return try runSynced(bytes)
    }
    guard try isStaged(bytes, sync: false) else { return .superseded }
    if let outcome = try publish(isSynced: false) { return outcome }
    try? staging.descriptor.unlink(Self.next)
    return try runSynced(bytes)
  }

  private mutating func runSynced(_ bytes: [UInt8]) throws(Errno) -> CommitOutcome {
    let syncs = !Mutants.has(.noFileSync)
    renewsKept = false
    var bytes = bytes
    if syncs { BinaryPropertyList.markSynced(&bytes) }
    do throws(Errno) {
      guard try isStaged(bytes, sync: syncs) else { return .superseded }
    } catch {
      guard syncs, error == .inputOutput else { throw error }
      // After a failed write the kernel discards the data: only a new file can be trusted.
      guard try isStaged(bytes, sync: true) else { return .superseded }
    }
    return try publish(isSynced: true) ?? .superseded
  }

  /// Stages the new value; false if the directory has been taken away.
  ///
  /// After an error no file stays.
  private mutating func isStaged(_ bytes: [UInt8], sync: Bool) throws(Errno) -> Bool {
    do throws(Errno) {
      try stage(bytes, sync: sync)
      return true
    } catch {
      if error == .noSuchFile { return false }
      try? staging.descriptor.unlink(Self.next)
      throw error
    }
  }

  private mutating func stage(_ bytes: [UInt8], sync: Bool) throws(Errno) {
    (staged, unsaved) = (nil, nil)
    let file = try create()
    if container.options.sharing == .group { try file.setMode(Sharing.group.fileMode) }
    try file.writeFully(bytes)
    if sync {
      do throws(Errno) { try file.sync() } catch {
        guard Mutants.has(.syncAgain) else { throw error }
        try file.sync()
      }
    }
    guard directory.keepsOpen else { return }
    if bytes.count <= CommittedFile.limit {
      staged = try CommittedFile(file, bytes, note)
      if !sync { unsaved = staged }
    } else if !sync {
      unsaved = try CommittedFile(file, [], nil)
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

  /// - Returns: nil if the new file has to be synced first: without a sync no previous value would
  ///   remain.
  private func publish(isSynced: Bool) throws(Errno) -> CommitOutcome? {
    // Before the exchange: at this time the old value is the latest.
    let now = isSynced ? 0 : container.options.environment.sinceEpoch()
    var lacksExchange = false
    let failure = Errno.of { () throws(Errno) in
      if !isSynced, !Mutants.has(.keepLate) {
        do throws(Errno) { try keepOld() } catch {
          // The file system has no links, or an unlinkable file has replaced the value.
          guard error.meansNoLinks else { throw error }
          lacksExchange = true
          return
        }
      }
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
        lacksExchange = try !exchange(isSynced)
        if !lacksExchange { disposeOfOld(isKept: !isSynced, damaged) }
      case .sound, .damaged:
        lacksExchange = try !exchange(isSynced)
        let isKept = !isSynced && !Mutants.has(.keepLate)
        if !lacksExchange { disposeOfOld(isKept: isKept, latestAt: now) }
      }
    }
    if lacksExchange { return nil }
    return if let failure { try settle(failure) } else { .committed }
  }

  /// Exchanges the new file and the value; false if the file system has no exchange, and the new
  /// file is not synced.
  private func exchange(_ isSynced: Bool) throws(Errno) -> Bool {
    do throws(Errno) {
      try move(.exchanging)
      return true
    } catch {
      guard error.meansUnsupportedRename else { throw error }
      directory.lacksExchange.store(true, ordering: .relaxed)
      if isSynced {
        try move(.replacing)
        return true
      }
      // A value that replaces the old one by a plain rename is synced, and no value is retained.
      if case .sound(let bytes, _) = old, BinaryPropertyList.isMarkedSynced(bytes) {
        try directory.descriptor.rename(
          Slot.File.kept.name, to: staging.descriptor, Self.kept)
        try staging.descriptor.unlink(Self.kept)
      }
      return false
    }
  }

  /// Makes a synced value the previous value *before* an unsynced value takes its place.
  ///
  /// Names reach the disk in the order of their changes. If the synced value were retained only
  /// afterwards, a power cut between the two steps could lose an acknowledged value: it would have
  /// lost its name and would not be retained yet, while the content of the new value never reached
  /// the disk.
  private func keepOld() throws(Errno) {
    guard case .sound(let bytes, _) = old, BinaryPropertyList.isMarkedSynced(bytes) else { return }
    do throws(Errno) {
      try linkOld()
    } catch {
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
  private func settle(_ error: Errno) throws(Errno) -> CommitOutcome {
    switch error {
    case .noSuchFile:
      guard try ignoring(.noSuchFile, staging.descriptor.status(of: Self.next)) != nil else {
        return .superseded
      }
      do throws(Errno) {
        try moveIn(.notReplacing)
        return .committed
      } catch {
        try? staging.descriptor.unlink(Self.next)
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

  // MARK: The old value

  /// Disposes of the old value, which the exchange put under the name of the new one.
  ///
  /// The old value is out of the way already, so a failure here has no effect: the next change
  /// empties the directory.
  ///
  /// - Parameters:
  ///   - damaged: the directory for damaged values.
  ///   - latestAt: a time at which the old value was the latest.
  private func disposeOfOld(
    isKept: Bool, _ damaged: OpenDirectory? = nil, latestAt: Int64 = 0
  ) {
    if renewsKept { renewKept(latestAt) }
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
        _ = directory.trySyncNames()
        try? staging.descriptor.unlink(Self.kept)
        try linkOld()
        try staging.descriptor.rename(Self.kept, to: directory.descriptor, Slot.File.kept.name)
      } catch {
        guard error.meansNoLinks else { throw error }
        try ignoring(.noSuchFile, directory.descriptor.unlink(Slot.File.kept.name))
        directory.keptFresh.store(0, ordering: .relaxed)
      }
      // The directory contains only files from failed removals, by a dead holder or in this tenure.
      try empty(staging.descriptor, container.options.sharing)
    }
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
}

enum CommitOutcome { case committed, superseded }

extension Container {
  /// Writes the former path of a value in `damaged/`, and the reason, into a file beside it.
  func explain(
    _ reason: String, as stem: String, in damaged: OpenDirectory
  ) throws(Errno) {
    try staging.withFile(Array((reason + "\n").utf8)) { name, _ throws(Errno) in
      try staging.directory().descriptor.publish(name, to: damaged.descriptor, "\(stem).reason")
    }
  }
}
