internal import PropertyLists
internal import Synchronization
internal import Syscalls

/// Moving a new value into place, out of the directory that makes it count (P3), and what becomes
/// of the old one.
struct Commit {
  enum Outcome { case committed, superseded }

  let slot: Slot
  let directory: SlotDirectory
  /// `lock/<g>.d`, opened before the look for a next generation.
  let staging: OpenDirectory
  /// What was there when it was read under the lock.
  let old: FoundFile
  let isDurable: Bool
  /// Whether nothing is to be kept of what was there.
  var isErasing = false
  /// What the caller notes of the new value.
  private var note: Int?
  /// The new file, where it is kept open.
  private(set) var staged: CommittedFile?

  // Not strings: to hand one to the kernel takes an allocation.
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

  /// Stages and exchanges.
  ///
  /// What it throws means: not done.
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
      // The kernel has forgotten what it could not write: only a new file can be trusted.
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
    if sync { try file.sync() }
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
        // A holder of this generation died with it.
        tries += 1
        guard error == .fileExists, tries < 10 else { throw error }
        try empty(staging.descriptor)
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
        // Before it comes out, as what cannot be set aside then the next change removes; and anew,
        // as whoever has seen to what lies there may have removed it all.
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

  /// Makes a synced value the kept one *before* a value that is not takes its place.
  ///
  /// Names reach the disk in the order in which they changed. Kept only afterwards, a synced value
  /// that was acknowledged could be lost in a power cut between the two: neither under its name any
  /// more, nor kept yet, while the new one's content never came to disk.
  private func keepOld() throws(Errno) {
    guard case .sound(let bytes, _) = old, BinaryPropertyList.isMarkedSynced(bytes), mayKeep()
    else { return }
    do throws(Errno) {
      try linkOld()
    } catch {
      // Something that cannot be linked has been put there since it was read: it is foreign.
      if error == .notPermitted { return }
      guard error == .fileExists else { throw error }
      // A holder of this generation died with it.
      try staging.descriptor.unlink(Self.kept)
      try linkOld()
    }
    try staging.descriptor.rename(Self.kept, to: directory.descriptor, Slot.File.kept.name)
    // Where it was kept already, both are one file, and the rename has left both names.
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

  /// Finds out why the rename failed.
  ///
  /// Either this process is superseded, or the value was taken away, or put there, by somebody who
  /// does not know of the lock.
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
      return .superseded  // Read again what is there now.
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

  /// The exchange put the old value under the name of the new one.
  ///
  /// It is out of the way already, so
  /// a failure here costs nothing: the next change empties the directory.
  ///
  /// - Parameter damaged: where damaged ones are put.
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
        .notice, "left an old value of '\(slot.name)' behind: \(failure)", about: slot.logSubject,
        because: failure)
    }
  }

  /// Makes the new value the kept one too, in place of an earlier one; answers what stood in the
  /// way.
  ///
  /// Not without one: others, who have seen that a value is kept, put values that are not synced.
  func eraseOld() -> Errno? {
    guard isErasing, mayKeep() else { return nil }
    return Errno.of { () throws(Errno) in
      do throws(Errno) {
        try? staging.descriptor.unlink(Self.kept)
        try linkOld()
        try staging.descriptor.rename(Self.kept, to: directory.descriptor, Slot.File.kept.name)
      } catch {
        // A file system without links.
        guard [.notPermitted, .notSupported, .tooManyLinks].contains(error) else { throw error }
        try directory.descriptor.unlink(Slot.File.kept.name)
        directory.keptFresh.store(0, ordering: .relaxed)
      }
      // Nothing lies there but what a holder that has died, or this one, could not remove.
      try empty(staging.descriptor)
    }
  }

  /// Whether what stands under the kept value's name is a file of ours, or nothing: something
  /// foreign is not replaced.
  private func mayKeep() -> Bool {
    (try? directory.descriptor.status(of: Slot.File.kept.name))?.kind ?? .regular == .regular
  }

  private func setAside(_ reason: String, in damaged: OpenDirectory) throws(Errno) {
    let stem = "\(container.options.environment.sinceEpoch()).\(slot.escaped)"
    try staging.descriptor.rename(Self.next, to: damaged.descriptor, "\(stem).plist")
    container.count { $0.heals += 1 }
    container.log(
      .error,
      "the value of \(slot.title) '\(slot.name)' was damaged (\(reason)); it lies in "
        + "\(container.path)/damaged/\(stem).plist now", about: slot.logSubject)
    let text = "\(slot.folder.rawValue)/\(slot.escaped)/\(Slot.valueName): \(reason)\n"
    var words = text
    let failure = words.withUTF8 { words in
      Errno.of { () throws(Errno) in
        try container.staging.withFile(UnsafeRawBufferPointer(words)) { name, _ throws(Errno) in
          try container.staging.directory().descriptor.publish(
            name, to: damaged.descriptor, "\(stem).reason")
        }
      }
    }
    if let failure { throw failure }
  }

  /// Whether the value that a reader could fall back on after a power cut is missing or too old, so
  /// that the one being written must be able to become it (P7).
  private func keptIsOld() -> Bool {
    // Where there is no value, what was kept may have gone with it since somebody looked.
    if case .missing = old { return true }
    let now = container.options.environment.now()
    if now.nanoseconds < directory.keptFresh.load(ordering: .relaxed) { return false }
    guard let status = try? directory.descriptor.status(of: Slot.File.kept.name) else {
      return true
    }
    guard status.kind == .regular else { return true }
    let age = Duration.nanoseconds(
      container.options.environment.sinceEpoch() - status.modified)
    guard age >= .zero, age < container.options.keptAge else { return true }
    let fresh = now + (container.options.keptAge - age)
    directory.keptFresh.store(fresh.nanoseconds, ordering: .relaxed)
    return false
  }
}
