internal import Synchronization
internal import WormholeSyscalls

/// Saving a value: a committed value that was not synced is synced, and becomes the previous value.
///
/// After that, no change needs a sync before its commit for as long as the value stays the latest,
/// and for a second afterwards (P7). The steps:
///
///     link       under the lock: if this process's file is the latest value, link `value.plist`
///                into `lock/<g>.d` as `save`; note the file of `kept.plist`
///     sync       without the lock: sync the file, through the descriptor that has written it
///     keep       under the lock: if `save` is that file, and `kept.plist` is the noted file, give
///                the file the name `kept.plist`
///     name       without the lock, if the file is no longer the latest value: sync the directory
///
/// The file of the latest value has its name on disk by its own sync. Otherwise the name
/// `kept.plist` is a new one, and a power cut before its sync leaves the earlier previous value.
/// Until then the file has the time 0, so that other processes take it for too old.
///
/// Changes continue during the sync, so the value may be no longer the latest at the end. Both
/// names of the file are made through the directory that a takeover removes, as in a commit. A
/// process that was suspended between two steps therefore cannot bring back an older value: either
/// another process has taken the lock over, and the directory is gone; or another value was saved
/// or synced in the meantime, and `kept.plist` or `save` is another file.
///
/// Only the process that has written a file saves it: after a failed write to the disk, the kernel
/// reports the failure to descriptors that were open at the time, and success to others.
///
/// If the file is still the latest value, `keep` first renames `kept.plist` to `past`, because a
/// link replaces no file. As long as `kept.plist` is missing, readers of a damaged value use `past`
/// instead: a process may be killed there. Readers of a sound value look for neither.
///
/// Clean-up: a process that dies between the steps leaves `save`, which the next save replaces, and
/// `past`, which that save removes if there is a `kept.plist` again. The next change finds a
/// previous value that is too old, and syncs its own file. If the file cannot get the name
/// `kept.plist`, the earlier previous value gets the name back: other processes know that value to
/// be young enough. A process that opens the directory of a new generation forgets how old the
/// previous value is, because a suspended save may have taken the value out.
///
/// Independent of the slot: what waits for its save retains one file, and not the directories of a
/// slot that the program no longer uses.
final class SlotSaveState: @unchecked Sendable {
  // Only the thread whose turn it is at the slot uses the unsaved file; once the slot was released,
  // only the thread that saves it.

  /// How long after a commit the value is saved: later changes within this time share the sync.
  static let delay = Duration.milliseconds(50)

  /// Whether a save was requested and has not begun, so that no other save is requested.
  let isDue = Atomic<Bool>(false)
  /// When the last save began, in nanoseconds.
  let last = Atomic<Int64>(.min / 2)
  /// The latest file that this process has committed without a sync, until it is saved.
  @exclusivity(unchecked) var unsaved: CommittedFile?
}

/// A save between its two tenures of the lock.
struct PendingSave {
  let slot: Slot
  let file: CommittedFile
  /// The file of the previous value when the save began.
  let kept: FileStatus?
  /// A time at which the file was the latest value.
  let latestAt: Instant
  var failure: Errno?

  mutating func sync() {
    guard !Mutants.has(.saveUnsynced) else { return }
    failure = Errno.of { () throws(Errno) in try file.sync() }
  }
}

extension Slot {
  private static var save: UnsafePointer<CChar> { ("save" as StaticString).cString }
  fileprivate static var past: UnsafePointer<CChar> { ("past" as StaticString).cString }

  /// Notes the file of a commit, for the thread whose turn it is; nil if the file was synced.
  func noteUnsaved(_ file: CommittedFile?) {
    guard file != nil || saving.unsaved != nil, !Mutants.has(.neverSave) else { return }
    saving.unsaved = file
    guard file != nil, container.options.callLater != nil,
      !saving.isDue.exchange(true, ordering: .acquiringAndReleasing)
    else { return }
    // A value that changes all the time is saved twice within the age that is allowed.
    let next = saving.last.load(ordering: .relaxed) + (container.options.keptAge / 2).inNanoseconds
    let due = max(Instant.now + SlotSaveState.delay, Instant(nanoseconds: next))
    if !container.saver.add(self, due: due) {
      saving.unsaved = nil
      saving.isDue.store(false, ordering: .releasing)
    }
  }

  /// Begins a save; nil if there is nothing to save.
  ///
  /// - Parameter earlier: of an earlier object for this slot, which was released.
  func beginSave(of earlier: SlotSaveState? = nil, _ patience: Patience) -> PendingSave? {
    let saving = earlier ?? saving
    saving.isDue.store(false, ordering: .sequentiallyConsistent)
    saving.last.store(Instant.now.nanoseconds, ordering: .relaxed)
    return attempt(patience) { staging throws(Errno) in
      guard let file = saving.unsaved else { return nil }
      saving.unsaved = nil
      let directory = lockState.directory!
      let now = Instant.now
      guard file.isFile(of: try? directory.descriptor.status(of: File.value.name)) else {
        return nil
      }
      let kept = try? directory.descriptor.status(of: File.kept.name)
      guard kept?.kind ?? .regular == .regular, !file.isFile(of: kept) else { return nil }
      do throws(Errno) {
        try directory.descriptor.link(File.value.name, to: staging.descriptor, Self.save)
      } catch {
        guard error == .fileExists else { throw error }
        // Left by a process that died, or by one whose save takes longer than this one's.
        if kept != nil { try? staging.descriptor.unlink(Self.past) }
        try staging.descriptor.unlink(Self.save)
        try directory.descriptor.link(File.value.name, to: staging.descriptor, Self.save)
      }
      return PendingSave(slot: self, file: file, kept: kept, latestAt: now)
    }
  }

  /// Makes the synced file the previous value.
  func endSave(_ save: PendingSave, _ patience: Patience) {
    let unnamed = attempt(patience) { staging throws(Errno) -> SlotDirectory? in
      guard save.file.isFile(of: try? staging.descriptor.status(of: Self.save)) else { return nil }
      let directory = lockState.directory!
      let kept = try? directory.descriptor.status(of: File.kept.name)
      guard save.failure == nil, Self.isUnchanged(kept, since: save.kept) else {
        try staging.descriptor.unlink(Self.save)
        return nil
      }
      if save.file.isFile(of: try? directory.descriptor.status(of: File.value.name)) {
        // By a link, because a rename would wake all watchers of the value. There is no previous
        // value in between, and the value itself is on disk.
        if kept != nil {
          // Until the link is made, a change has to sync its own file.
          directory.keptFresh.store(0, ordering: .relaxed)
          try directory.descriptor.rename(
            File.kept.name, to: staging.descriptor, Self.past)
        }
        do throws(Errno) {
          try staging.descriptor.link(Self.save, to: directory.descriptor, File.kept.name)
        } catch {
          if kept != nil, error != .fileExists {
            try? staging.descriptor.rename(Self.past, to: directory.descriptor, File.kept.name)
          }
          throw error
        }
        if kept != nil { try staging.descriptor.unlink(Self.past) }
        try staging.descriptor.unlink(Self.save)
      } else {
        try save.file.setModified(to: 0)
        try staging.descriptor.rename(Self.save, to: directory.descriptor, File.kept.name)
        return directory
      }
      directory.keptFresh.store(
        (save.latestAt + container.options.keptAge).nanoseconds, ordering: .relaxed)
      return nil
    }
    if let unnamed, unnamed.trySyncNames() == nil {
      let age = (Instant.now - save.latestAt).inNanoseconds
      try? save.file.setModified(to: container.options.environment.sinceEpoch() - age)
    }
    if let failure = save.failure {
      container.log(
        .notice, "could not sync the value of '\(name)': \(failure); the next change is synced",
        about: logSubject, because: failure)
    }
  }

  private static func isUnchanged(_ kept: FileStatus?, since before: FileStatus?) -> Bool {
    if Mutants.has(.saveUnlooked) { return true }
    guard let kept, let before else { return kept == nil && before == nil }
    return kept.isSameFile(as: before) && kept.modified == before.modified
  }

  /// Runs a step of a save under the lock.
  ///
  /// An error has no effect on the value: the next change syncs its own file. Nothing is made that
  /// is missing: somebody may be removing the channel, or the container.
  private func attempt<Result>(
    _ patience: Patience, _ body: (_ staging: OpenDirectory) throws(Errno) -> Result?
  ) -> Result? {
    do {
      return try fenced("save", patience, forcibly: false, body)
    } catch {
      // A channel or container that was removed needs no save.
      if let error = error as? WormholeError, error.errno != Errno.noSuchFile.rawValue {
        container.log(
          .debug, "could not save the value of '\(name)': \(error)", about: logSubject,
          because: error)
      }
      return nil
    }
  }
}

extension Container {
  /// Returns the previous value of a slot whose `kept.plist` is missing because a save has taken
  /// the file out; nil if there is none.
  ///
  /// An entry that cannot be read is none: the damage of the value is the error to report.
  func pastValue(in slot: borrowing Descriptor) -> [UInt8]? {
    do {
      let locks = try options.sharing.openExisting("lock", in: slot)
      let fences = Slot.generations(of: try locks.names()).filter { $0.key.ends(with: ".d") }
      guard let latest = fences.max(by: { $0.value < $1.value }) else { return nil }
      let fence = try options.sharing.openExisting(latest.key, in: locks)
      guard case .sound(let bytes, _) = try reader.read(Slot.past, in: fence) else { return nil }
      return bytes
    } catch {
      return nil
    }
  }
}
