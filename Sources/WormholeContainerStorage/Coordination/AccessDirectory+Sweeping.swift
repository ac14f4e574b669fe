internal import WormholeSyscalls

/// Files that accesses leave behind: hidden directories, and the files of dead processes' accesses.
///
/// The removal may take long, since other users may fill the directories. It therefore never runs
/// under the lock of arrivals, and the number of files is bounded.
extension AccessDirectory {
  /// The result of removing an access's hidden directories.
  enum CleaningResult: Comparable {
    case done
    /// Another process may complete the removal, or this process a little later.
    case unfinished
    /// A hidden directory without proof of its maker remains until a person removes it.
    case unproven
  }

  /// The limit of files in a single removal.
  private static let mostRemoved = 100_000
  /// The limit of dead writers in one notice to presenters.
  private static let mostBuried = 256

  // MARK: Hidden directories

  /// The properties that prove the maker of an access's hidden directories.
  func maker(_ entry: AccessEntry) -> HiddenDirectory.Maker {
    HiddenDirectory.Maker(
      container: (try? EscapedName.escape(container.id)) ?? "container",
      identity: entry.identity ?? "", owner: entry.owner)
  }

  /// Opens a hidden directory that an access's entry names; nil if there is none.
  func hidden(
    _ path: String, of name: AccessName, _ entry: AccessEntry
  ) throws(HiddenDirectory.Trouble) -> HiddenDirectory? {
    guard HiddenFile.isPath(path, of: name, entry.claim) || Mutants.has(.noHiddenProof) else {
      throw .misplaced
    }
    return try HiddenDirectory.open(path, by: maker(entry))
  }

  /// Removes the hidden directories of an access, with proof of their maker.
  func removeHidden(
    _ entry: AccessEntry?, of name: AccessName, most: Int = mostRemoved,
    isOver: @escaping () -> Bool = { false }
  ) -> CleaningResult {
    guard let entry else { return .done }
    let isOwn = entry.owner == Processes.effectiveUser
    var removal = TreeRemoval(most: most, owner: isOwn ? nil : entry.owner, isOver: isOver)
    var cleaning = CleaningResult.done
    for path in entry.hidden {
      do throws(HiddenDirectory.Trouble) {
        guard let hidden = try hidden(path, of: name, entry) else { continue }
        if try !hidden.remove(&removal, isOver: isOver) { cleaning = max(cleaning, .unfinished) }
      } catch {
        // The access cannot have made a directory there.
        if case .misplaced = error { continue }
        container.log(.notice, "could not remove '\(path)': \(error.reason)")
        cleaning = max(cleaning, error.mayPass ? .unfinished : .unproven)
      }
    }
    return cleaning
  }

  /// Returns the hidden directories that sweeping leaves in place, with the reasons.
  func unproven(_ entry: AccessEntry, of name: AccessName) -> [(path: String, reason: String)] {
    entry.hidden.compactMap { path in
      do throws(HiddenDirectory.Trouble) {
        try hidden(path, of: name, entry)?.refuseOthers()
        return nil
      } catch {
        if case .misplaced = error { return nil }
        return error.mayPass ? nil : (path, error.reason)
      }
    }
  }

  // MARK: Accesses

  /// Removes remaining files, before an access or a presenter of this process starts.
  func removeLeftovers(isOver: @escaping () -> Bool = { false }) {
    if let openHome { removeLeft(in: openHome, isOver: isOver) }
    let isFirst = hasSwept.withLock { !exchange(&$0, with: true) }
    guard isFirst else { return }
    var isCut = false
    let failure = Errno.of { () throws(Errno) in
      guard let home = try existingDirectory() else { return }
      try sweepDead(in: home) {
        if isOver() { isCut = true }
        return isCut
      }
    }
    if let failure { container.log(.notice, "could not sweep accesses: \(failure)") }
    // Otherwise the files would stay as long as this process has no other reason to sweep.
    if failure != nil || isCut { hasSwept.withLock { $0 = false } }
  }

  /// Records an own access with remaining files: the next access tries the removal again.
  func leave(_ name: AccessName) { left.withLock { _ = $0.insert(name) } }

  func removeLeft(
    in home: AccessHome, most: Int = mostRemoved, isOver: @escaping () -> Bool = { false }
  ) {
    for name in left.withLock({ $0 }) {
      var cleaning = CleaningResult.unfinished
      _ = Errno.of { () throws(Errno) in
        cleaning = try discard(name, in: home, most: most, isOver: isOver)
      }
      if cleaning != .unfinished { left.withLock { _ = $0.remove(name) } }
    }
  }

  /// Removes the files of an access, its hidden directories first.
  ///
  /// If a directory cannot be removed now, or nothing proves that the access made it, the file of
  /// the access is stored in `passed/`, so that the directory is found.
  @discardableResult
  func discard(
    _ name: AccessName, in home: AccessHome, most: Int = mostRemoved,
    isOver: @escaping () -> Bool = { false }
  ) throws(Errno) -> CleaningResult {
    let placed = try entry(of: name, in: .waiting, of: home)
    let entry = if let placed { placed } else { try passedEntry(of: name, in: home) }
    let cleaning = removeHidden(entry, of: name, most: most, isOver: isOver)
    for place in AccessPlace.allCases {
      if cleaning != .done, (try? keep(name, from: place, in: home)) == true { continue }
      _ = try remove(name, from: place, in: home)
    }
    // No other process learns of the writer after the removal of its file, whatever fails next. An
    // access of this process has notified the presenters itself.
    if let claim = placed?.claim, claim.writes, name.process != ownName {
      bury(CollectionOfOne(claim))
    }
    if cleaning == .done { try forgetPassed(name, in: home) }
    return cleaning
  }

  /// Keeps claims of dead writers, of whose changes the presenters have not been told.
  package func bury(_ claims: some Collection<AccessClaim>) {
    buried.withLock { buried in buried += claims.prefix(Self.mostBuried - buried.count) }
  }

  /// Removes the files of dead processes; returns the number of removed accesses.
  ///
  /// Unreadable or unremovable files stay in place, and delay no further removal.
  @discardableResult
  func sweepDead(
    in home: AccessHome, isOver: @escaping () -> Bool = { false }
  ) throws(Errno) -> Int {
    var dead: [String: Bool] = [:]
    func isDead(_ process: String) -> Bool {
      if let known = dead[process] { return known }
      let isDead = (try? isAlive(process, in: home)) == false
      dead[process] = isDead
      return isDead
    }
    var names: Set<AccessName> = []
    for place in AccessPlace.allCases { names.formUnion(try self.names(in: place, of: home)) }
    names.formUnion(try passedNames(in: home))
    var swept = 0
    for name in names where isDead(name.process) {
      guard !isOver() else { return swept }
      var cleaning = CleaningResult.unfinished
      let failure = Errno.of { () throws(Errno) in
        cleaning = try discard(name, in: home, isOver: isOver)
      }
      if let failure { container.log(.notice, "could not remove '\(name.text)': \(failure)") }
      if cleaning == .done { swept += 1 }
    }
    let processes = try home.open(Self.processesName)
    for name in try processes.names() where Randomness.isName(name) && isDead(name) {
      try? processes.unlink(name)
    }
    return swept + (try sweepPresenters(in: home))
  }
}

extension HiddenDirectory.Trouble {
  var reason: String {
    switch self {
    case .system(let error): "\(error)"
    case .misplaced: "the directory is not beside a file of the write access"
    case .unproven(let reason): reason
    case .closed: "the user may not enter the directory"
    case .filled: "the directory does not become empty"
    }
  }

  /// Whether a retry may succeed.
  fileprivate var mayPass: Bool {
    switch self {
    case .system, .filled: true
    case .misplaced, .unproven, .closed: false
    }
  }
}
