internal import Synchronization
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The previous value, which readers get if a power cut destroys the latest value (P7).
///
/// The previous value must have been the latest value within the second before the last change that
/// was not synced. The time of `kept.plist` is a time at which its value was the latest: the time
/// of writing, or the time at which an unsynced value took its place.
///
/// The file and its name have to be on disk. A file that is synced before it gets its name does not
/// have the name on disk yet: a power cut would bring back what had the name before, however old.
extension Commit {
  /// Whether a change without a sync would leave a previous value that is missing or too old, so
  /// that the new value must be synced before it gets the name.
  mutating func mustSync() -> Bool {
    (renewsKept, syncsName) = (false, false)
    if directory.lacksExchange.load(ordering: .relaxed) { return true }
    syncsName = !keepsPrevious()
    return syncsName
  }

  private mutating func keepsPrevious() -> Bool {
    guard case .sound(let bytes, let status) = old else {
      // If there is no value, its previous value may have been removed with it.
      if case .missing = old { return false }
      return !keptIsOld(nil)
    }
    guard BinaryPropertyList.isMarkedSynced(bytes), !Mutants.has(.syncBeforeNotice) else {
      return !keptIsOld(status)
    }
    // The old value becomes the previous value, and was the latest until this change.
    renewsKept = mayKeep() && makeNameDurable(status)
    return renewsKept
  }

  /// Makes the name of the old value durable, which was synced before it got its name.
  private func makeNameDurable(_ status: FileStatus) -> Bool {
    if Mutants.has(.trustName) { return true }
    if let own = slot.lockState.committed, own.isFile(of: status),
      own.isNameDurable.load(ordering: .acquiring)
    {
      return true
    }
    // A previous value's name was made durable before the file got this name too.
    if let kept = try? directory.descriptor.status(of: Slot.File.kept.name),
      kept.isSameFile(as: status)
    {
      return true
    }
    return directory.trySyncNames() == nil
  }

  /// Syncs the name of the new value, once the lock is free; a failure is an error only of a change
  /// that has asked for it.
  func syncName(_ operation: @autoclosure () -> String) throws(WormholeError) {
    guard !Mutants.has(.noDirectorySync) else { return }
    do throws(Errno) {
      if isDurable {
        try directory.syncNames()
      } else if let failure = directory.trySyncNames() {
        return container.log(
          .notice, "could not sync the name of the value of '\(slot.name)': \(failure)",
          about: slot.logSubject, because: failure)
      }
      staged?.isNameDurable.store(true, ordering: .releasing)
    } catch {
      throw slot.unsynced(operation(), error)
    }
  }

  private mutating func keptIsOld(_ old: FileStatus?) -> Bool {
    let now = Instant.now
    if now.nanoseconds < directory.keptFresh.load(ordering: .relaxed) { return false }
    guard let status = try? directory.descriptor.status(of: Slot.File.kept.name),
      status.kind == .regular
    else { return true }
    if let old, status.isSameFile(as: old), !Mutants.has(.syncBeforeNotice) {
      // The old value was saved after its commit.
      renewsKept = true
      return false
    }
    let age = Duration.nanoseconds(
      container.options.environment.sinceEpoch() - status.modified)
    guard age >= .zero || Mutants.has(.trustFuture), age < container.options.keptAge else {
      return true
    }
    noteFresh(until: now + (container.options.keptAge - age))
    return false
  }

  /// Stores in the file of the previous value that the value was the latest at this time.
  ///
  /// The file is in the staging directory once more, under the name of the new value: a process
  /// whose lock was taken over does not find the file there. For a file of another user the time
  /// stays as it is, and other processes sync earlier than they have to.
  func renewKept(_ time: Int64) {
    try? staging.descriptor.setModified(of: Self.next, to: time)
    let age = Duration.nanoseconds(container.options.environment.sinceEpoch() - time)
    noteFresh(until: .now + (container.options.keptAge - age))
  }

  private func noteFresh(until moment: Instant) {
    directory.keptFresh.store(moment.nanoseconds, ordering: .relaxed)
  }

  /// Whether the previous value's name leads to a plain file, or to nothing: a foreign entry is not
  /// replaced.
  func mayKeep() -> Bool {
    (try? directory.descriptor.status(of: Slot.File.kept.name))?.kind ?? .regular == .regular
  }
}
