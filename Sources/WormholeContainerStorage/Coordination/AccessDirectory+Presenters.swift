internal import WormholePropertyLists
package import WormholeSyscalls

/// Presenters of files: an access asks its presenters before, and notifies them afterwards.
///
/// `presenters/` exists only while a presenter is registered: otherwise an access needs only one
/// call. A presenter removes its own file; after its process has died, an access that would have
/// asked the presenter removes the file.
extension AccessDirectory {
  static let presentersName = "presenters"
  /// The limit of presenters that are read; further files are ignored.
  private static let mostPresenters = 10_000

  private func openSlot() throws(Errno) -> SlotDirectory { try slot.openDirectory(making: true) }

  private func anyHome() throws(Errno) -> AccessHome? {
    if let openHome { return openHome }
    return try existingDirectory()
  }

  /// Makes a presenter visible to later accesses.
  ///
  /// - Parameter prepare: called with the presenter's name before the file is visible.
  package func present(
    _ entry: PresenterEntry, _ prepare: (PresenterName) -> Void
  ) throws(WormholeError) -> PresenterName {
    let subject = entry.paths.first?.text ?? ""
    do throws(Errno) {
      guard let bytes = try? entry.encoded() else { throw .invalidArgument }
      removeLeftovers()
      let home = try directory(openSlot())
      let name = PresenterName(
        process: try ownProcess(in: home).name, number: try ownProcess(in: home).nextNumber())
      prepare(name)
      try publish(bytes, as: name, in: home)
      return name
    } catch {
      if error == .noSuchFile { lookAtDirectories() }
      throw WormholeError(error, "present", subject, accessesIn: container)
    }
  }

  private func publish(
    _ bytes: [UInt8], as name: PresenterName, in home: AccessHome
  ) throws(Errno) {
    let staging = container.staging
    var tries = 0
    try staging.publish(bytes, sync: false, as: name.text) { () throws(Errno) in
      OpenDirectory(try staging.ensureDirectory(Self.presentersName, in: home.descriptor))
    } renewing: { error in
      // The last presenter removes the directory.
      tries += 1
      return error == .noSuchFile && tries < 100
    }
  }

  /// Removes a presenter.
  package func unpresent(_ name: PresenterName) {
    guard let home = openHome else { return }
    remove(name, in: home)
  }

  private func remove(_ name: PresenterName, in home: AccessHome) {
    if let folder = try? home.descriptor.open(Self.presentersName, [.path, .directory]) {
      try? folder.unlink(name.text)
    }
    // Fails unless this was the last presenter.
    try? container.options.sharing.removeEmpty(Self.presentersName, in: home.descriptor)
  }

  /// Returns all presenters with readable files, whether or not their processes live.
  package func everyPresenter() throws(Errno) -> [PresenterName: PresenterEntry] {
    guard let home = try anyHome() else { return [:] }
    return try everyPresenter(in: home)
  }

  private func everyPresenter(
    in home: AccessHome
  ) throws(Errno) -> [PresenterName: PresenterEntry] {
    let directory: Descriptor
    let state: SettledDirectory?
    do throws(Errno) {
      // Read before the names: later changes then become visible.
      state = SettledDirectory(
        try home.descriptor.status(of: Self.presentersName),
        now: container.options.environment.sinceEpoch())
      let last = presented.withLock { $0 }
      if let state, last.directory == state { return last.entries.compactMapValues { $0 } }
      directory = try home.open(Self.presentersName)
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
        // Not stored: the next call reads the file again.
        found.directory = nil
        container.log(.warning, "cannot read presenter '\(name.text)': \(error)")
      }
    }
    presented.withLock { $0 = found }
    return found.entries.compactMapValues { $0 }
  }

  private func entry(
    of name: PresenterName, in home: AccessHome
  ) throws(Errno) -> PresenterEntry? {
    let reason: String
    let path = Self.presentersName + "/" + name.text
    switch try read(path, upTo: PresenterEntry.largestFile, in: home.descriptor) {
    case .missing: return nil
    case .sound(let bytes, _):
      if let entry = try? PresenterEntry(bytes) { return entry }
      reason = "the format is unknown"
    case .damaged(let why, _): reason = why
    case nil: reason = "the file was not created by a presenter"
    }
    container.log(.warning, "cannot read presenter '\(name.text)': \(reason)")
    return nil
  }

  /// Returns the presenters to ask before an access, or to notify afterwards.
  ///
  /// The files of dead processes are removed.
  ///
  /// - Parameter isKnown: whether the caller would have been notified of the end of the process.
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

  /// Removes the files of dead processes; returns their number.
  ///
  /// A process that cannot be checked counts as living.
  func sweepPresenters(in home: AccessHome) throws(Errno) -> Int {
    var swept = 0
    for name in try everyPresenter(in: home).keys
    where (try? isAlive(name.process, in: home)) == false {
      remove(name, in: home)
      swept += 1
    }
    return swept
  }

  // MARK: Processes

  /// Renews the process's heartbeat during a reply; the returned closure ends the renewal.
  package func showRunning() -> @Sendable () -> Void {
    guard let home = openHome else { return {} }
    guard let process = knownProcess ?? (try? ownProcess(in: home)),
      (try? process.begin(container)) != nil
    else { return {} }
    return { process.end() }
  }

  /// Makes the own file in `processes/`, if missing; returns its name.
  package func showProcess() throws(WormholeError) -> String {
    // Without the file, other processes would take this process for dead.
    if let process = knownProcess, let openHome,
      (try? process.isThere(in: openHome.descriptor)) == true
    {
      return process.name
    }
    removeLeftovers()
    do throws(Errno) {
      return try ownProcess(in: directory(openSlot())).name
    } catch {
      throw WormholeError(error, "coordinate accesses in", container.path, accessesIn: container)
    }
  }

  /// Whether the process lives; true if the check fails.
  package func lives(_ process: String) -> Bool {
    guard let home = openHome else { return true }
    return (try? isAlive(process, in: home)) ?? true
  }

  /// Returns the accesses of other processes with write claims on related paths.
  package func writers(
    of paths: [AccessPath], but purpose: String
  ) throws(Errno) -> Set<AccessName> {
    guard let home = try existingDirectory() else { return [] }
    var found: Set<AccessName> = []
    let own = ownName
    for place in AccessPlace.allCases {
      for name in try names(in: place, of: home) where name.process != own {
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

  /// Whether neither the access nor its process has ended.
  package func isUnderWay(_ name: AccessName) -> Bool {
    guard let home = openHome, let sight = try? look(at: name, in: home) else {
      return true
    }
    return switch sight {
    case .gone, .dead: false
    case .stands, .stoodStill: true
    }
  }

  /// Returns and clears the claims of dead writers whose accesses were removed here.
  package func takeBuried() -> [AccessClaim] {
    buried.withLock { exchange(&$0, with: []) }
  }
}

/// Whether processes that were asked still run: a running process changes its heartbeat as soon as
/// it has read the request.
package struct AskedProcesses {
  private var seen: [String: LeaseObservation<HolderMark>] = [:]
  private var asked: Set<String> = []

  package init() {}

  /// Whether waiting for the process is useless: it is dead, or its heartbeat has stopped for a
  /// lease since it was asked, or an earlier check with the same heartbeat has found a suspension.
  package mutating func isLost(_ process: String, in room: AccessDirectory) -> Bool {
    guard process != room.ownName else { return false }
    // The process lived when it was found, and most have replied before the next check.
    if asked.insert(process).inserted, room.stopped.withLock({ $0[process] == nil }) {
      return false
    }
    guard let home = room.openHome else { return false }
    guard let mark = try? room.mark(of: process, in: home) else { return !room.lives(process) }
    if room.stopped.withLock({ $0[process] == mark }) { return true }
    let now = Instant.now
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
