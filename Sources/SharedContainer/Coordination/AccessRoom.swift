internal import Synchronization
package import Syscalls

/// `system/coordination/` of one open container: where accesses to files lie.
///
///     lock/          the lock of arrivals, as every slot has it
///     waiting/ running/ overtaken/
///                    a file for each access; where it lies says how far it is
///     passed/        those that were passed over while they waited, until their processes have
///                    taken back what they made for them, and those that have ended and left
///                    something that could not be removed then; there once somebody was
///     processes/     a file for each process that has accesses, locked as long as it lives
///     presenters/    a file for each presenter; there only while somebody presents something
///
/// ``AccessMachine`` says in which order things are done here. Who cleans up: an access of a dead
/// process is removed by whoever it stands in the way of, its hidden directory first; what stands
/// in nobody's way by the next process that opens the room, and by `doctor --repair`.
package final class AccessRoom: Sendable {
  package let container: Container
  /// Its updates wait for nobody else's, but for being seen.
  let slot: Slot
  private let home = Monitor<Home?>(nil)
  private let process = Monitor<AccessProcess?>(nil)
  /// What those that were there at the last look are about; nil: it cannot be read.
  private let known = Monitor<[AccessName: AccessEntry?]>([:])
  let standing = Monitor<[String: LeaseObservation<HolderMark>]>([:])
  let bell = AccessBell()
  let presented = Monitor(PresenterListing())
  /// Processes that were asked something and stood still, with the mark that they had.
  let stopped = Monitor<[String: HolderMark]>([:])
  /// What dead writers claimed whose accesses were removed here.
  let buried = Monitor<[AccessClaim]>([])
  /// What those keep here who ask presenters.
  package let desk = Monitor<(any AnyObject & Sendable)?>(nil)
  /// Own files that could not be removed when their accesses ended.
  private let left = Monitor<Set<AccessName>>([])
  /// Whether nobody was there when this process last had the lock of arrivals.
  ///
  /// For whoever has that.
  var isEmpty: Bool {
    get { emptiness.load(ordering: .relaxed) }
    set { emptiness.store(newValue, ordering: .relaxed) }
  }
  private let emptiness = Atomic<Bool>(false)

  private struct Home {
    let directory: OpenDirectory
    /// Nil if what lies in it is to be looked at again.
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

  /// Which one it is, in an order that is the same for all: a copy has the same identifier.
  package let key: String

  // MARK: Its directories

  /// The directory that all of it lies in; what is missing in it is made.
  ///
  /// - Parameter slot: as it is open for the lock of arrivals.
  func directory(_ slot: SlotDirectory) throws(Errno) -> OpenDirectory {
    let open = home.withLock { $0 }
    if let open, open.slot === slot { return open.directory }
    let fresh = OpenDirectory(try slot.descriptor.duplicate())
    for name in AccessPlace.allCases.map(\.name) + [Self.processesName] {
      _ = try container.staging.ensureDirectory(name, in: fresh.descriptor)
    }
    home.withLock { $0 = Home(directory: fresh, slot: slot) }
    isEmpty = false
    if open == nil { sweep(in: fresh) }
    return fresh
  }

  /// Something in it was not there: somebody's hand may have removed it, and the next time it is
  /// made anew.
  func lookAtDirectories() {
    home.withLock { home in
      home = home.map { Home(directory: $0.directory, slot: nil) }
    }
  }

  /// The same, if it is there, for those who only look.
  package func existingDirectory() throws(Errno) -> OpenDirectory? {
    do throws(Errno) {
      let open = try slot.openDirectory(making: false)
      return open.isStale ? nil : OpenDirectory(try open.descriptor.duplicate())
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// This process's file, which says that it lives; made for its first access.
  func ownProcess(in home: OpenDirectory) throws(Errno) -> AccessProcess {
    try process.withLock { process throws(Errno) in
      if let process, process.isThere { return process }
      let made = try AccessProcess.make(in: home.descriptor, container)
      // What this process had begun under the other name is nobody's now.
      isEmpty = false
      process = made
      return made
    }
  }

  /// The directory, if it was opened already.
  var openHome: OpenDirectory? { home.withLock { $0?.directory } }

  /// This process's file, if it was made; somebody's hand may have removed it since.
  var knownProcess: AccessProcess? { process.withLock { $0 } }

  var ownName: String? { knownProcess?.name }

  // MARK: The accesses in it

  /// The names in one of the directories, which is opened anew: some file systems go on telling
  /// what was there when it was opened.
  func names(
    in place: AccessPlace, of home: OpenDirectory
  ) throws(Errno) -> [AccessName] {
    try names(in: home.descriptor.open(place.name, [.readOnly, .directory]))
  }

  private func names(in directory: borrowing Descriptor) throws(Errno) -> [AccessName] {
    var names: [AccessName] = []
    try directory.forEachName(isFresh: true) { name throws(Errno) in
      if let name = String(validatingCString: name).flatMap(AccessName.init) { names.append(name) }
      return true
    }
    return names
  }

  /// What an access is about; nil if it has gone, or is no file of ours.
  ///
  /// Names are used once and files written once, so each is read once. That the system fails to
  /// read it says nothing of it, and nobody may go past it for that.
  func entry(
    of name: AccessName, in place: AccessPlace, of home: OpenDirectory
  ) throws(Errno) -> AccessEntry? {
    if let known = known.withLock({ $0[name] }) { return known }
    var place: AccessPlace? = place
    while let here = place {
      switch try read(here.name + "/" + name.text, of: home) {
      case .missing: place = AccessPlace(rawValue: here.rawValue + 1)
      case .sound(let bytes, _):
        let entry = AccessEntry(bytes)
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

  private func read(_ path: String, of home: OpenDirectory) throws(Errno) -> FoundFile {
    try read(path, upTo: AccessEntry.largestFile, of: home) ?? .missing
  }

  /// What is no file of ours, nor one that we may read, is nil.
  func read(
    _ path: String, upTo largest: Int, of home: OpenDirectory
  ) throws(Errno) -> FoundFile? {
    var reading = container.reading
    reading.largest = largest
    do throws(FileReading.Refusal) {
      return try reading.read(path, in: home.descriptor)
    } catch {
      guard case .system(let error) = error, error != .accessDenied else { return nil }
      throw error
    }
  }

  /// Whether nobody can be there but others who have arrived since.
  ///
  /// Accesses arrive under the lock alone. If this process had it last, and found nobody then, and
  /// what it has begun itself has ended, the directories are empty: they need not be listed.
  func isKnownEmpty(for process: AccessProcess?) -> Bool {
    isEmpty && process?.isOnlyUser == true && left.withLock { $0.isEmpty }
  }

  /// Forgets those that have gone.
  func keepKnown(_ seen: Set<AccessName>) {
    known.withLock { known in
      guard known.count > seen.count + 16 else { return }
      known = known.filter { seen.contains($0.key) }
    }
  }

  /// Where the file of an access lies; nil: nowhere any more.
  ///
  /// It goes forward only, so a look in this order finds it.
  func place(
    of name: AccessName, in home: OpenDirectory, from first: AccessPlace = .waiting
  ) throws(Errno) -> AccessPlace? {
    for place in AccessPlace.allCases where place.rawValue >= first.rawValue {
      do throws(Errno) {
        _ = try home.descriptor.status(of: place.name + "/" + name.text)
        return place
      } catch {
        guard error == .noSuchFile else { throw error }
      }
    }
    return nil
  }

  /// Renames its file; false if it is not there any more.
  func move(
    _ name: AccessName, from place: AccessPlace, to next: AccessPlace, in home: OpenDirectory
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      try home.descriptor.rename(
        place.name + "/" + name.text, to: home.descriptor, next.name + "/" + name.text)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  /// Lets it wait no more; false if it does not.
  ///
  /// Its file is kept: its process may have made hidden directories for it, or make them still,
  /// and may die before it hears that it has to begin again.
  func pass(_ name: AccessName, in home: OpenDirectory) throws(Errno) -> Bool {
    let entry = try? entry(of: name, in: .waiting, of: home)
    do throws(Errno) {
      return try keep(name, from: .waiting, in: home)
    } catch {
      // On a full disk there may be no room to keep it; nobody is to be held up by that.
      guard try remove(name, from: .waiting, in: home) else { return false }
      _ = removeHidden(entry, of: name)
      return true
    }
  }

  /// Moves its file to where it is in nobody's way, and is found by whoever sweeps; false if it is
  /// not there any more.
  func keep(
    _ name: AccessName, from place: AccessPlace, in home: OpenDirectory
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try container.staging.ensureDirectory(Self.passedName, in: home.descriptor)
      try home.descriptor.rename(
        place.name + "/" + name.text, to: home.descriptor, Self.passedName + "/" + name.text)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  /// Its process has heard that it was passed over.
  func forgetPassed(_ name: AccessName, in home: OpenDirectory) throws(Errno) {
    _ = try unlink(Self.passedName + "/" + name.text, in: home)
  }

  /// Those that were passed over and whose processes have not heard of it.
  func passedNames(in home: OpenDirectory) throws(Errno) -> [AccessName] {
    do throws(Errno) {
      return try names(in: home.descriptor.open(Self.passedName, [.readOnly, .directory]))
    } catch {
      guard error == .noSuchFile else { throw error }
      return []
    }
  }

  func passedEntry(of name: AccessName, in home: OpenDirectory) throws(Errno) -> AccessEntry? {
    guard case .sound(let bytes, _) = try read(Self.passedName + "/" + name.text, of: home) else {
      return nil
    }
    return AccessEntry(bytes)
  }

  /// Unlinks its file; false if it is not there any more.
  func remove(
    _ name: AccessName, from place: AccessPlace, in home: OpenDirectory
  ) throws(Errno) -> Bool {
    try unlink(place.name + "/" + name.text, in: home)
  }

  private func unlink(_ path: String, in home: OpenDirectory) throws(Errno) -> Bool {
    do throws(Errno) {
      try home.descriptor.unlink(path)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  // MARK: What is left over

  /// An own file could not be removed: it is tried again with the next access.
  func leave(_ name: AccessName) { left.withLock { _ = $0.insert(name) } }

  func removeLeft(in home: OpenDirectory) {
    for name in left.withLock({ $0 }) {
      let failure = Errno.of { () throws(Errno) in try discard(name, in: home) }
      if failure == nil { left.withLock { _ = $0.remove(name) } }
    }
  }

  /// Removes what a dead process's access has left, its hidden directories first.
  func discard(_ name: AccessName, in home: OpenDirectory) throws(Errno) {
    let entry = try entry(of: name, in: .waiting, of: home)
    let isClean = removeHidden(entry, of: name)
    for place in AccessPlace.allCases {
      if !isClean, (try? keep(name, from: place, in: home)) == true { continue }
      _ = try remove(name, from: place, in: home)
    }
    guard let claim = entry?.claim, claim.writes else { return }
    buried.withLock { if $0.count < Self.mostBuried { $0.append(claim) } }
  }

  /// False if that may be possible later: where they lie they do no harm.
  private func removeHidden(_ entry: AccessEntry?, of name: AccessName) -> Bool {
    var isClean = true
    for path in entry?.hidden ?? [] {
      let failure = Errno.of { () throws(Errno) in try HiddenFile.remove(path, of: name) }
      guard let failure else { continue }
      container.log(.notice, "could not remove '\(path)': \(failure)")
      let meaning = WormholeError(failure, "remove", path)
      if meaning.mayPass || meaning.code == .full { isClean = false }
    }
    return isClean
  }

  /// Removes what those have left that were passed over and died before they heard of it.
  private func sweepPassed(in home: OpenDirectory) throws(Errno) -> Int {
    var swept = 0
    for name in try passedNames(in: home) where try !isAlive(name.process, in: home) {
      guard removeHidden(try passedEntry(of: name, in: home), of: name) else { continue }
      try forgetPassed(name, in: home)
      swept += 1
    }
    return swept
  }

  /// Of how many dead writers presenters are told at once.
  private static let mostBuried = 256

  /// Nothing depends on it.
  private func sweep(in home: OpenDirectory) {
    let failure = Errno.of { () throws(Errno) in try sweepDead(in: home) }
    if let failure { container.log(.notice, "could not sweep accesses: \(failure)") }
  }

  /// Removes what dead processes have left; answers how many accesses.
  @discardableResult
  package func sweepDead(in home: OpenDirectory) throws(Errno) -> Int {
    var swept = 0
    var dead: [String: Bool] = [:]
    for place in AccessPlace.allCases {
      for name in try names(in: place, of: home) {
        if dead[name.process] == nil { dead[name.process] = try !isAlive(name.process, in: home) }
        guard dead[name.process] == true else { continue }
        try discard(name, in: home)
        swept += 1
      }
    }
    swept += try sweepPassed(in: home)
    let processes = try home.descriptor.open(Self.processesName, [.readOnly, .directory])
    for name in try processes.names() where Staging.isOurs(name) {
      if try !isAlive(name, in: home) { try? processes.unlink(name) }
    }
    return swept + (try sweepPresenters(in: home))
  }
}
