internal import PropertyLists
internal import Synchronization
internal import Syscalls

/// A shared lock on `container.plist`, which says that a living process stamps messages in this
/// epoch.
///
/// While anybody has one there was no restart, and the epoch stays. It is a lock of the open file's
/// description, so whoever wants to know asks and takes none, and keeps nobody waiting however it
/// is stopped.
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
    // Before closing, which a program that is just being started may put off.
    _ = try? with { file throws(Errno) in try file.releasePresenceLock() }
    close()
  }
}

extension Container {
  /// Rises with each start of the machine, so that what was stamped later compares as later.
  ///
  /// Found out when it is first asked for, and the same from then on.
  package func epoch() throws(WormholeError) -> Int {
    let known = knownEpoch.load(ordering: .relaxed)
    if known != 0 { return known }
    return try epochHold.withLock { hold throws(WormholeError) in
      if let hold { return hold.epoch }
      let new = try holdEpoch()
      hold = new
      knownEpoch.store(new.epoch, ordering: .relaxed)
      return new.epoch
    }
  }

  /// The epoch that was noted last, which may be that of an earlier run of the machine; 0 if
  /// nobody has stamped anything yet.
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
        // Whoever raises it first says so and then looks for locks. So if nothing is said now, this
        // one's was there to be seen.
        if let epoch = try isCovered(boot, slot) { return EpochHold(epoch, file) }
        file.letGo()
      }
      try settleEpoch(boot, slot)
    }
    throw WormholeError(
      .conflict, "find the epoch of", path, because: "others changed it again and again")
  }

  /// The epoch, if this process may go by it.
  private func isCovered(_ boot: String, _ slot: Slot) throws(WormholeError) -> Int? {
    guard let record = try EpochRecord(slot.read(), path: path) else { return nil }
    let now = options.environment.sinceBoot()
    return record.covers(boot, now: now) ? record.epoch : nil
  }

  private func lockMarker() throws(WormholeError) -> GuardedFile {
    let isLocked: Bool?
    let file: GuardedFile
    do throws(Errno) {
      file = try GuardedFile(
        opening: ContainerOpening.markerName, in: root, .readOnlyNonBlocking)
      isLocked = try file.with { file throws(Errno) in try file.trySharedPresenceLock() }
    } catch {
      throw WormholeError(error, "find the epoch of", path)
    }
    guard isLocked == true else {
      throw WormholeError(
        .refused, "find the epoch of", path,
        because: "a foreign program has a lock on \(ContainerOpening.markerName) to itself",
        hint: "look in /proc/locks which, and end it")
    }
    return file
  }

  /// Notes another name of the run of the machine, and raises the epoch if nobody holds it.
  ///
  /// In two steps: what is undecided lets nobody take the epoch that was, and who had it before is
  /// seen in the second. Whoever finds it undecided, as its decider was killed or stopped, decides.
  private func settleEpoch(_ boot: String, _ slot: Slot) throws(WormholeError) {
    let environment = options.environment
    let patience = Patience(until: environment.now() + .seconds(10))
    let operation = "note the run of the machine in"
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
    } catch let error as WormholeError {
      throw error
    } catch {
      throw WormholeError(.system, operation, path, because: "\(error)")
    }
  }

  private func isEpochHeld() throws(WormholeError) -> Bool {
    if Mutants.has(.everyNewBootRaises) { return false }
    do throws(Errno) {
      return try root.open(ContainerOpening.markerName, .readOnlyNonBlocking).isPresenceLocked()
    } catch {
      throw WormholeError(error, "find the epoch of", path)
    }
  }

  private var exhaustion: WormholeError {
    WormholeError(
      .full, "find the epoch of", path,
      because: "it has had \(EpochRecord.last) epochs, and a stamp has room for no more",
      hint: "make a new container, and let the members of this one join there")
  }
}
