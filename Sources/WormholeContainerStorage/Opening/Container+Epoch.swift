internal import Synchronization
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A shared lock on `container.plist`, the sign of a living process that stamps messages in this
/// epoch.
///
/// While any process holds the lock, the machine has not restarted, and the epoch stays. The lock
/// belongs to the open file description, so a process can test for it without taking a lock, and
/// delays no other process wherever it is suspended.
final class EpochHold: Sendable {
  let epoch: Int
  private let file: GuardedFile

  init(_ epoch: Int, _ file: GuardedFile) {
    self.epoch = epoch
    self.file = file
  }

  deinit { file.letGo() }
}

extension GuardedFile {
  fileprivate func letGo() {
    // Unlock before closing, because a child that is being spawned may still have the file open.
    _ = try? with { file throws(Errno) in try file.releasePresenceLock() }
    close()
  }
}

/// The epoch of one open container, after the first call for it.
private final class KnownEpoch: Service {
  /// The epoch; 0 before the first call.
  let number = Atomic<Int>(0)
  let hold = Monitor<EpochHold?>(nil)
}

extension Container {
  private var known: KnownEpoch { services.get(KnownEpoch.init) }

  /// Rises with each start of the machine, so that later stamps compare as later.
  ///
  /// Determined at the first call, and constant from then on.
  package func epoch() throws(WormholeError) -> Int {
    let known = known
    let number = known.number.load(ordering: .relaxed)
    if number != 0 { return number }
    return try known.hold.withLock { hold throws(WormholeError) in
      if let hold { return hold.epoch }
      let new = try holdEpoch()
      hold = new
      known.number.store(new.epoch, ordering: .relaxed)
      return new.epoch
    }
  }

  /// The epoch that was recorded last, possibly in an earlier run of the machine; 0 if no process
  /// has stamped a message yet.
  package func recordedEpoch() throws(WormholeError) -> Int {
    try EpochRecord(epochSlot().read(), path: path)?.epoch ?? firstEpoch
  }

  private func epochSlot() throws(WormholeError) -> Slot {
    Slot(
      container: self, folder: .system, name: "epoch", try Self.escape("epoch"), isInnermost: true)
  }

  private func holdEpoch() throws(WormholeError) -> EpochHold {
    let slot = try epochSlot()
    let boot = options.environment.bootIdentifier()
    for _ in 0..<100 {
      if try isCovered(boot, slot) != nil {
        let file = try lockMarker()
        // To raise the epoch, a process first records the epoch as undecided, and tests for locks
        // afterwards. If nothing is undecided now, a later test finds this lock.
        if let epoch = try isCovered(boot, slot) { return EpochHold(epoch, file) }
        file.letGo()
      }
      try settleEpoch(boot, slot)
    }
    throw WormholeError(
      .conflict, "find the epoch of", path, because: "other processes changed the epoch repeatedly",
      hint: "try again")
  }

  /// Returns the epoch, if valid for this process.
  private func isCovered(_ boot: String, _ slot: Slot) throws(WormholeError) -> Int? {
    guard let record = try EpochRecord(slot.read(), path: path) else { return nil }
    let now = options.environment.sinceBoot()
    return record.covers(boot, now: now) ? record.epoch : nil
  }

  private func lockMarker() throws(WormholeError) -> GuardedFile {
    let (file, isLocked) = try naming("find the epoch of", path) { () throws(Errno) in
      let file = try GuardedFile(
        opening: ContainerMarker.fileName, in: root.descriptor, .readOnlyNonBlocking)
      return (file, try file.with { file throws(Errno) in try file.trySharedPresenceLock() })
    }
    guard isLocked == true else {
      throw WormholeError(
        .refused, "find the epoch of", path,
        because: "a foreign program holds an exclusive lock on \(ContainerMarker.fileName)",
        hint: "find the program in /proc/locks, and end the program")
    }
    return file
  }

  /// Records a new boot identifier, and raises the epoch if no process holds it.
  ///
  /// In two steps: after the first, no process can take the old epoch, and the second tests for
  /// processes that hold it. If the deciding process was killed or suspended in between, the next
  /// process decides.
  private func settleEpoch(_ boot: String, _ slot: Slot) throws(WormholeError) {
    let environment = options.environment
    let patience = Patience(within: .seconds(10))
    let operation = "record the boot of the host in"
    do {
      if !Mutants.has(.decideAtOnce) {
        try slot.change(operation, patience: patience) { content in
          var record = try EpochRecord(content, path: path) ?? EpochRecord(epoch: firstEpoch)
          guard !record.isUndecided, !record.covers(boot, now: environment.sinceBoot()) else {
            return .none
          }
          record.isUndecided = true
          return .put(try record.encoded())
        }
      }
      try slot.change(operation, durability: .power, patience: patience) { content in
        var record = try EpochRecord(content, path: path) ?? EpochRecord(epoch: firstEpoch)
        guard !record.covers(boot, now: environment.sinceBoot()) else { return .none }
        guard record.isUndecided || Mutants.has(.decideAtOnce) else { return .none }
        if try record.epoch == 0 || !isEpochHeld() {
          guard record.epoch < EpochRecord.last else { throw exhaustion }
          record.epoch += 1
        }
        record.note(boot, now: environment.sinceBoot())
        record.isUndecided = false
        return .put(try record.encoded())
      }
    } catch {
      throw error as? WormholeError
        ?? WormholeError(.system, operation, path, because: "\(error)")
    }
  }

  private func isEpochHeld() throws(WormholeError) -> Bool {
    if Mutants.has(.everyNewBootRaises) { return false }
    return try naming("find the epoch of", path) { () throws(Errno) in
      try root.descriptor.open(ContainerMarker.fileName, .readOnlyNonBlocking)
        .isPresenceLockedOrShared()
    }
  }

  private var exhaustion: WormholeError {
    WormholeError(
      .full, "find the epoch of", path,
      because: "the container has reached the limit of \(EpochRecord.last) epochs",
      hint: "create a new container, and let all members join the new container")
  }
}
