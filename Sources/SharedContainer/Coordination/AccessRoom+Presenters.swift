package import Syscalls

/// Those who present files: they are asked before an access, and told afterwards.
///
/// `presenters/` is there only while somebody presents something, so an access that has nobody to
/// ask finds that out with one call. A file in it is removed by its presenter, or, once the process
/// is dead, by whoever would have asked it.
extension AccessRoom {
  static let presentersName = "presenters"
  /// How many are looked at; more are left alone.
  private static let mostPresenters = 10_000

  private func openSlot() throws(Errno) -> SlotDirectory { try slot.openDirectory(making: true) }

  private func anyHome() throws(Errno) -> OpenDirectory? {
    if let openHome { return openHome }
    return try existingDirectory()
  }

  /// Shows a presenter to those who begin accesses from now on.
  ///
  /// - Parameter prepare: gets its name before anybody can see it.
  package func present(
    _ entry: PresenterEntry, _ prepare: (PresenterName) -> Void
  ) throws(WormholeError) -> PresenterName {
    let subject = entry.paths.first?.text ?? ""
    do throws(Errno) {
      guard let bytes = try? entry.encoded(), bytes.count <= PresenterEntry.largestFile else {
        throw .invalidArgument
      }
      let home = try directory(openSlot())
      let name = PresenterName(
        process: try ownProcess(in: home).name, number: try ownProcess(in: home).nextNumber())
      prepare(name)
      try place(bytes, as: name, in: home)
      return name
    } catch {
      if error == .noSuchFile { lookAtDirectories() }
      throw WormholeError(error, "present", subject)
    }
  }

  private func place(
    _ bytes: [UInt8], as name: PresenterName, in home: OpenDirectory
  ) throws(Errno) {
    var tries = 0
    while true {
      let failure = Errno.of { () throws(Errno) in
        let folder = try container.staging.ensureDirectory(
          Self.presentersName, in: home.descriptor)
        var failure: Errno?
        bytes.withUnsafeBytes { bytes in
          failure = Errno.of { () throws(Errno) in
            try container.staging.place(bytes, sync: false, in: folder, as: name.text)
          }
        }
        if let failure { throw failure }
      }
      guard let failure else { return }
      // Whoever was the last one there removes the directory.
      tries += 1
      guard failure == .noSuchFile, tries < 100 else { throw failure }
    }
  }

  /// It presents no more.
  package func unpresent(_ name: PresenterName) {
    guard let home = openHome else { return }
    remove(name, in: home)
  }

  private func remove(_ name: PresenterName, in home: OpenDirectory) {
    try? home.descriptor.unlink(Self.presentersName + "/" + name.text)
    // It fails unless it was the last one.
    try? home.descriptor.removeDirectory(Self.presentersName)
  }

  /// All whose files can be read, whether they live or not.
  package func everyPresenter() throws(Errno) -> [PresenterName: PresenterEntry] {
    guard let home = try anyHome() else { return [:] }
    return try everyPresenter(in: home)
  }

  private func everyPresenter(
    in home: OpenDirectory
  ) throws(Errno) -> [PresenterName: PresenterEntry] {
    let directory: Descriptor
    let state: SettledDirectory?
    do throws(Errno) {
      // Before the names are read: what comes later shows.
      state = SettledDirectory(
        try home.descriptor.status(of: Self.presentersName),
        now: container.options.environment.sinceEpoch())
      let last = presented.withLock { $0 }
      if let state, last.directory == state { return last.entries.compactMapValues { $0 } }
      directory = try home.descriptor.open(Self.presentersName, [.readOnly, .directory])
    } catch {
      guard [.noSuchFile, .notADirectory, .tooManyLinks].contains(error) else { throw error }
      return [:]
    }
    var names: [PresenterName] = []
    try directory.forEachName(isFresh: true) { name throws(Errno) in
      if let name = String(validatingCString: name).flatMap(PresenterName.init) {
        names.append(name)
      }
      return names.count < Self.mostPresenters
    }
    let before = presented.withLock { $0 }
    var found = PresenterListing(directory: state)
    for name in names {
      if let known = before.entries[name] {
        found.entries[name] = known
        continue
      }
      do throws(Errno) {
        found.entries[name] = try entry(of: name, in: home)
      } catch {
        // Not noted: it is read the next time.
        found.directory = nil
        container.log(.warning, "cannot read presenter '\(name.text)': \(error)")
      }
    }
    presented.withLock { $0 = found }
    return found.entries.compactMapValues { $0 }
  }

  private func entry(
    of name: PresenterName, in home: OpenDirectory
  ) throws(Errno) -> PresenterEntry? {
    let reason: String
    let path = Self.presentersName + "/" + name.text
    switch try read(path, upTo: PresenterEntry.largestFile, of: home) {
    case .missing: return nil
    case .sound(let bytes, _):
      if let entry = PresenterEntry(bytes) { return entry }
      reason = "it is in no form that is known"
    case .damaged(let why, _): reason = why
    case nil: reason = "it is no file of a presenter's"
    }
    container.log(.warning, "cannot read presenter '\(name.text)': \(reason)")
    return nil
  }

  /// Those who are to be asked before an access, or told after it.
  ///
  /// What dead processes have left of them is removed.
  ///
  /// - Parameter isKnown: whether whoever calls would have heard of the end of that process.
  package func presenters(
    of paths: [AccessPath], but purposes: Set<String>, _ isKnown: (PresenterEntry) -> Bool
  ) throws(Errno) -> [PresenterName: PresenterEntry] {
    guard let home = try anyHome() else { return [:] }
    var related: [PresenterName: PresenterEntry] = [:]
    var living: [String: Bool] = [:]
    for (name, entry) in try everyPresenter(in: home)
    where !purposes.contains(entry.purpose) && entry.isRelated(to: paths) {
      let lives =
        living[name.process]
        ?? (isKnown(entry) || (try? isAlive(name.process, in: home)) ?? true)
      living[name.process] = lives
      if lives { related[name] = entry } else { remove(name, in: home) }
    }
    return related
  }

  /// Removes what dead processes have left; answers how many.
  func sweepPresenters(in home: OpenDirectory) throws(Errno) -> Int {
    var swept = 0
    for name in try everyPresenter(in: home).keys where try !isAlive(name.process, in: home) {
      remove(name, in: home)
      swept += 1
    }
    return swept
  }

  // MARK: Those who are asked, and those who ask

  /// Shows that this process runs, for as long as it answers; what is given back ends that.
  package func showRunning() -> @Sendable () -> Void {
    guard let home = openHome else { return {} }
    guard let process = knownProcess ?? (try? ownProcess(in: home)),
      (try? process.begin(container)) != nil
    else { return {} }
    return { process.end() }
  }

  /// Makes what shows this process, if it has not been made yet; answers its name.
  package func showProcess() throws(WormholeError) -> String {
    if let ownName { return ownName }
    do throws(Errno) {
      return try ownProcess(in: directory(openSlot())).name
    } catch {
      throw WormholeError(error, "coordinate in", container.path)
    }
  }

  /// Whether that process lives; what cannot be found out is taken for alive.
  package func lives(_ process: String) -> Bool {
    guard let home = openHome else { return true }
    return (try? isAlive(process, in: home)) ?? true
  }

  /// Accesses of others that may be writing there just now.
  package func writers(
    of paths: [AccessPath], but purpose: String
  ) throws(Errno) -> Set<AccessName> {
    guard let home = try existingDirectory() else { return [] }
    var found: Set<AccessName> = []
    for place in AccessPlace.allCases {
      for name in try names(in: place, of: home) where name.process != ownName {
        guard let claim = try entry(of: name, in: place, of: home)?.claim, claim.purpose != purpose
        else { continue }
        let isRelated = claim.parts.contains { part in
          part.writes && paths.contains { $0.isRelated(to: part.path) }
        }
        if isRelated { found.insert(name) }
      }
    }
    return found
  }

  /// Whether an access has not ended, and its process neither.
  package func isUnderWay(_ name: AccessName) -> Bool {
    guard let home = openHome, let sight = try? look(at: name, in: home) else {
      return true
    }
    return switch sight {
    case .gone, .dead: false
    case .stands, .stoodStill: true
    }
  }

  /// What dead writers claimed whose accesses were removed here since the last call.
  package func takeBuried() -> [AccessClaim] {
    buried.withLock { buried in
      defer { buried = [] }
      return buried
    }
  }
}

/// Whether processes that were asked something run: those that do change their marks, as soon as
/// they have read what they are asked.
package struct AskedProcesses {
  private var seen: [String: LeaseObservation<HolderMark>] = [:]
  private var asked: Set<String> = []

  package init() {}

  /// Whether there is no use in waiting for it: it is dead, or its mark has stood still for a lease
  /// since it was asked, or since somebody here found that before.
  package mutating func isLost(_ process: String, in room: AccessRoom) -> Bool {
    guard process != room.ownName else { return false }
    // It lived when it was found, and most have answered before anybody looks again.
    if asked.insert(process).inserted, room.stopped.withLock({ $0[process] == nil }) {
      return false
    }
    guard let home = room.openHome else { return false }
    guard let mark = try? room.mark(of: process, in: home) else { return !room.lives(process) }
    if room.stopped.withLock({ $0[process] == mark }) { return true }
    let now = room.container.options.environment.now()
    var own = seen[process] ?? LeaseObservation(lease: room.container.options.lease, now: now)
    let stoodStill = own.stoodStill(mark, at: now)
    seen[process] = own
    guard stoodStill else { return false }
    room.stopped.withLock { stopped in
      if stopped.count > 256 { stopped = [:] }
      stopped[process] = mark
    }
    return true
  }

}
