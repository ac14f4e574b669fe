internal import Synchronization
package import WormholeSyscalls

/// `system/coordination/` of an open container: the directory of accesses to files.
///
///     lock/          the lock of arrivals, as in every slot
///     waiting/ running/ overtaken/
///                    a file for each access; the directory is the state of the access
///     passed/        accesses that were skipped during their wait, until their processes have
///                    removed their hidden directories, and ended accesses that left files which
///                    could not be removed; made for the first such access
///     processes/     a file for each process that has accesses, locked as long as it lives
///     presenters/    a file for each presenter; exists only while there are presenters
///
/// ``AccessMachine`` defines the order of the steps. Clean-up: an access of a dead process is
/// removed by the process that it blocks, its hidden directory first; an access that blocks no
/// process is removed by the next process that opens the directory, and by `doctor --repair`. A
/// holder of the lock of arrivals removes nothing.
package final class AccessDirectory: Sendable {
  package let container: Container
  /// Its lock is held only while an access arrives, and no other lock is taken in that time, so an
  /// update of another slot may enclose it.
  let slot: Slot
  private let home = Monitor<Home?>(nil)
  private let process = Monitor<AccessProcess?>(nil)
  /// The claims of the accesses in the last listing; nil for an unreadable entry.
  private let known = Monitor<[AccessName: AccessEntry?]>([:])
  let standing = Monitor<[String: LeaseObservation<HolderMark>]>([:])
  let bell = AccessNotifier()
  let presented = Monitor(PresenterListing())
  /// Suspended processes with an unanswered request, and their heartbeats at the last check.
  let stopped = Monitor<[String: HolderMark]>([:])
  /// The claims of dead writers whose accesses were removed here.
  let buried = Monitor<[AccessClaim]>([])
  /// State that requesters of presenters store here.
  package let desk = Monitor<(any AnyObject & Sendable)?>(nil)
  /// Ended accesses of this process whose files or hidden directories could not be removed yet.
  let left = Monitor<Set<AccessName>>([])
  /// Whether this process has swept the files of dead processes, or does so now.
  let hasSwept = Monitor(false)
  /// Whether the listings were empty when this process last held the lock of arrivals.
  ///
  /// For the holder of the lock.
  var isEmpty: Bool {
    get { emptiness.load(ordering: .relaxed) }
    set { emptiness.store(newValue, ordering: .relaxed) }
  }
  private let emptiness = Atomic<Bool>(false)

  private struct Home {
    let directory: AccessHome
    /// Nil if the content has to be checked again.
    let slot: SlotDirectory?
  }

  static let slotName = "coordination"
  static let processesName = "processes"
  static let passedName = "passed"

  package init(_ container: Container) throws(WormholeError) {
    self.container = container
    key = container.id + " " + container.path
    slot = Slot(
      container: container, folder: .system, name: Self.slotName,
      try Container.escape(Self.slotName), isInnermost: true)
  }

  /// Identifies the directory, with the same order in all processes; a copied container has the
  /// same identifier, so the path is included.
  package let key: String

  // MARK: Directories

  /// Returns the directory of accesses; missing parts are made.
  ///
  /// - Parameter slot: the directory that is open for the lock of arrivals.
  func directory(_ slot: SlotDirectory) throws(Errno) -> AccessHome {
    if let open = home.withLock({ $0 }), open.slot === slot { return open.directory }
    let fresh = AccessHome(try slot.descriptor.duplicate(), container.options.sharing)
    for place in AccessPlace.allCases {
      let made = try container.staging.ensureDirectory(place.name, in: fresh.descriptor)
      _ = try fresh.hold(OpenDirectory(made), as: place)
    }
    _ = try container.staging.ensureDirectory(Self.processesName, in: fresh.descriptor)
    home.withLock { $0 = Home(directory: fresh, slot: slot) }
    isEmpty = false
    return fresh
  }

  /// Checks the directories at the next use: a part was missing, perhaps removed by another tool,
  /// and is made again.
  func lookAtDirectories() {
    home.withLock { home in
      home = home.map { Home(directory: $0.directory, slot: nil) }
    }
  }

  /// Returns the directory for a reader; nil if it is missing.
  func existingDirectory() throws(Errno) -> AccessHome? {
    guard let open = try ignoring(.noSuchFile, slot.openDirectory(making: false)), !open.isStale
    else { return nil }
    return AccessHome(try open.descriptor.duplicate(), container.options.sharing)
  }

  /// Returns the own file in `processes/`, the proof of the process's life; made for the first
  /// access.
  func ownProcess(in home: AccessHome) throws(Errno) -> AccessProcess {
    try process.withLock { process throws(Errno) in
      if let process, try process.isThere(in: home.descriptor) { return process }
      let made = try AccessProcess.make(in: home.descriptor, container)
      // Earlier accesses of this process, under the lost name, count as a dead process's now.
      isEmpty = false
      process = made
      return made
    }
  }

  /// The directory, if already open.
  var openHome: AccessHome? { home.withLock { $0?.directory } }

  /// The own file in `processes/`, if made; another tool may have removed the file since.
  var knownProcess: AccessProcess? { process.withLock { $0 } }

  var ownName: String? { knownProcess?.name }

  // MARK: Accesses

  /// Opens a state's directory again, and returns the names of its accesses.
  func names(
    in place: AccessPlace, of home: AccessHome
  ) throws(Errno) -> [AccessName] {
    try names(in: home.reopen(place).descriptor)
  }

  /// Returns the names of all plain files; a planted entry of another kind blocks no access.
  private func names(in directory: borrowing Descriptor) throws(Errno) -> [AccessName] {
    var names: [AccessName] = []
    try directory.forEachFile(isFresh: true) { name, isPlain throws(Errno) in
      guard isPlain || Mutants.has(.trustStamps) else { return true }
      if let name = AccessName(name) { names.append(name) }
      return true
    }
    return names
  }

  /// Returns the access names in a state's directory that do not belong to plain files.
  func strangers(
    in place: AccessPlace, of home: AccessHome
  ) throws(Errno) -> [AccessName] {
    var names: [AccessName] = []
    try home.reopen(place).descriptor.forEachFile(isFresh: true) { name, isPlain throws(Errno) in
      if !isPlain, let name = AccessName(name) { names.append(name) }
      return true
    }
    return names
  }

  /// Whether no program would choose this stamp now.
  ///
  /// An access of an earlier run of the machine may have such a stamp: its process is dead.
  func isTooFarAhead(_ name: AccessName) -> Bool {
    let clock = UInt64(clamping: container.options.environment.sinceBoot())
    return name.stamp > clock + AccessName.farthest
  }

  /// Returns the content of an access's file; nil if the file is gone, or foreign.
  ///
  /// Names are used once and files written once, so each file is read once. A failure of the system
  /// to read the file proves nothing, and no process may overtake the access because of it.
  func entry(
    of name: AccessName, in place: AccessPlace, of home: AccessHome
  ) throws(Errno) -> AccessEntry? {
    if let known = known.withLock({ $0[name] }) { return known }
    var place: AccessPlace? = place
    while let here = place {
      switch try read(name.text, in: home.folder(here).descriptor) {
      case .missing: place = AccessPlace(rawValue: here.rawValue + 1)
      case .sound(let bytes, let status):
        let entry = AccessEntry(bytes, owner: status.owner)
        if entry == nil { container.log(.warning, "cannot read access '\(name.text)'") }
        known.withLock { $0[name] = .some(entry) }
        return entry
      case .damaged(let reason, _):
        container.log(.warning, "cannot read access '\(name.text)': \(reason)")
        known.withLock { $0[name] = .some(nil) }
        return nil
      }
    }
    return nil
  }

  private func read(
    _ name: String, in directory: borrowing Descriptor
  ) throws(Errno) -> FoundFile {
    try read(name, upTo: AccessEntry.largestFile, in: directory) ?? .missing
  }

  /// Nil for a foreign file, or a file without read permission.
  func read(
    _ path: String, upTo largest: Int, in directory: borrowing Descriptor
  ) throws(Errno) -> FoundFile? {
    try ignoring(.accessDenied) { () throws(Errno) in
      try container.reader.readUsable(path, in: directory, atMost: largest)
    } ?? nil
  }

  /// Whether the directories can contain only accesses that have arrived since.
  ///
  /// Accesses arrive only under the lock. If this process was its last holder, and found no access
  /// then, and its own accesses have ended, the directories are empty: no listing is needed.
  func isKnownEmpty(for process: AccessProcess?) -> Bool {
    isEmpty && process?.isOnlyUser == true && left.withLock { $0.isEmpty }
  }

  /// Forgets the entries of accesses that are gone.
  func keepKnown(_ seen: Set<AccessName>) {
    known.withLock { known in
      guard known.count > seen.count + 16 else { return }
      known = known.filter { seen.contains($0.key) }
    }
  }

  /// Returns the directory of an access's file; nil if the file is gone.
  ///
  /// The file only moves forward, so a search in the order of the states finds it.
  func locate(
    _ name: AccessName, in home: AccessHome, from first: AccessPlace = .waiting
  ) throws(Errno) -> AccessPlace? {
    for place in AccessPlace.allCases where place.rawValue >= first.rawValue {
      let status = try ignoring(.noSuchFile, home.folder(place).descriptor.status(of: name.text))
      if status?.kind == .regular { return place }
    }
    return nil
  }

  /// Renames the access's file; false if it is no longer in the directory.
  func move(
    _ name: AccessName, from place: AccessPlace, to next: AccessPlace, in home: AccessHome
  ) throws(Errno) -> Bool {
    try ignoring(.noSuchFile) { () throws(Errno) -> Void in
      try home.folder(place).descriptor.rename(
        name.text, to: home.folder(next).descriptor, name.text)
    } != nil
  }

  /// Unlinks the access's file; false if it is no longer in the directory.
  func remove(
    _ name: AccessName, from place: AccessPlace, in home: AccessHome
  ) throws(Errno) -> Bool {
    try unlink(name, in: home.folder(place).descriptor)
  }

  private func unlink(
    _ name: AccessName, in directory: borrowing Descriptor
  ) throws(Errno) -> Bool {
    try ignoring(.noSuchFile, directory.unlink(name.text)) != nil
  }

  // MARK: Skipped accesses

  /// Ends the wait of an access; false for an access that does not wait.
  ///
  /// The file is stored in `passed/`: the process may have made hidden directories for the access,
  /// or may still make them, and may die before the access starts again.
  func pass(_ name: AccessName, in home: AccessHome) throws(Errno) -> Bool {
    let entry = try? entry(of: name, in: .waiting, of: home)
    do throws(Errno) {
      return try keep(name, from: .waiting, in: home)
    } catch {
      // On a full disk the rename may fail; a full disk must not block other processes.
      guard try remove(name, from: .waiting, in: home) else { return false }
      _ = removeHidden(entry, of: name)
      return true
    }
  }

  /// Moves the access's file to `passed/`, where it blocks no access and sweepers find it; false if
  /// it is no longer in the first directory.
  func keep(
    _ name: AccessName, from place: AccessPlace, in home: AccessHome
  ) throws(Errno) -> Bool {
    try ignoring(.noSuchFile) { () throws(Errno) -> Void in
      let passed = try container.staging.ensureDirectory(Self.passedName, in: home.descriptor)
      try home.folder(place).descriptor.rename(name.text, to: passed, name.text)
    } != nil
  }

  /// Removes a skipped access's file from `passed/`, once its process has noticed the skip.
  func forgetPassed(_ name: AccessName, in home: AccessHome) throws(Errno) {
    _ = try ifPassed(in: home) { passed throws(Errno) in try unlink(name, in: passed) }
  }

  /// Skipped accesses whose processes have not noticed the skip yet.
  func passedNames(in home: AccessHome) throws(Errno) -> [AccessName] {
    try ifPassed(in: home) { passed throws(Errno) in try names(in: passed) } ?? []
  }

  func passedEntry(of name: AccessName, in home: AccessHome) throws(Errno) -> AccessEntry? {
    let found = try ifPassed(in: home) { passed throws(Errno) in
      try read(name.text, in: passed)
    }
    guard case .sound(let bytes, let status) = found else { return nil }
    return AccessEntry(bytes, owner: status.owner)
  }

  /// Nil if there is no directory `passed/`, or if an entry of another kind has its name.
  private func ifPassed<Result>(
    in home: AccessHome, _ body: (borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result? {
    try ignoring([.noSuchFile, .notADirectory, .tooManyLinks]) { () throws(Errno) in
      try body(home.open(Self.passedName))
    }
  }
}

extension WormholeError {
  /// The error of a call on the directories of accesses to files.
  init(_ error: Errno, _ operation: String, _ subject: String, accessesIn container: Container) {
    self.init(
      error, operation, subject, in: container, "system/\(AccessDirectory.slotName)",
      AccessDirectory.folders)
  }
}

extension AccessDirectory {
  /// The directories of the accesses' slot, beside those that every slot has.
  static let folders =
    AccessPlace.allCases.map(\.name) + [passedName, processesName, presentersName]
}
