internal import WormholeSyscalls

/// Checks whether the processes of accesses live, and run.
extension AccessDirectory {
  /// The visible state of a blocker.
  enum BlockerState {
    case gone
    /// Its process has ended.
    case dead
    case stands
    /// Its process has not run for this duration.
    case stoodStill(AccessPlace, Duration)
  }

  /// Whether the process with this file name lives.
  ///
  /// The check takes no lock, so the checking process cannot be mistaken for a holder; nor can a
  /// process that has a shared lock on the file, which every reader of the file can take.
  func isAlive(_ process: String, in home: AccessHome) throws(Errno) -> Bool {
    if process == ownName { return true }
    guard let file = try open(process, in: home) else { return false }
    return try file.isPresenceHeld()
  }

  private func open(_ process: String, in home: AccessHome) throws(Errno) -> Descriptor? {
    try ignoring([.noSuchFile, .tooManyLinks, .noDevice]) { () throws(Errno) in
      try home.descriptor.open(Self.processesName + "/" + process, .readOnlyNonBlocking)
    }
  }

  /// Returns the claim of a running access; nil if no running access has the name.
  package func running(_ token: AccessToken) -> AccessClaim? {
    guard token.container == container.id, let name = AccessName(token.name),
      let home = openHome ?? (try? existingDirectory()),
      (try? locate(name, in: home, from: .running)) != nil,
      (try? isAlive(name.process, in: home)) == true
    else { return nil }
    return (try? entry(of: name, in: .running, of: home))?.claim
  }

  func look(at name: AccessName, in home: AccessHome) throws(Errno) -> BlockerState {
    guard let place = try locate(name, in: home) else { return .gone }
    let process = name.process
    if process == ownName { return .stands }
    guard let file = try open(process, in: home), try file.isPresenceHeld() else {
      standing.withLock { $0[process] = nil }
      return .dead
    }
    let mark = try HolderMark(in: file)
    let stood = observe(process, mark)
    return stood > container.options.lease ? .stoodStill(place, stood) : .stands
  }

  /// Observes further blockers beside the first: when they are checked later, a suspension is
  /// already known.
  func observe(_ names: some Sequence<AccessName>, in home: AccessHome) {
    var seen: Set<UInt64> = []
    // Once for all names: it takes a lock, and thousands of waiters come here each second.
    let own = ownName.flatMap { UInt64($0, radix: 16) }
    // The accesses of a process with thousands of threads follow each other.
    var last = own
    for name in names where name.processNumber != own && name.processNumber != last {
      last = name.processNumber
      guard seen.insert(name.processNumber).inserted else { continue }
      guard seen.count <= Self.mostObserved else { return }
      let process = name.process
      guard let file = try? open(process, in: home), let mark = try? HolderMark(in: file)
      else { continue }
      _ = observe(process, mark)
    }
  }

  private static var mostObserved: Int { 16 }

  /// Returns how long the process's heartbeat has stopped, as far as this process has checked.
  private func observe(_ process: String, _ mark: HolderMark) -> Duration {
    let now = Instant.now
    return standing.withLock { standing in
      // Ended processes are never checked again.
      if standing.count > 256 { standing = [:] }
      var own =
        standing[process]
        ?? LeaseObservation<HolderMark>(lease: container.options.lease, now: now)
      _ = own.stoodStill(mark, at: now)
      standing[process] = own
      return own.stood
    }
  }

  /// Returns the heartbeat of a process; nil if there is none.
  func mark(of process: String, in home: AccessHome) throws(Errno) -> HolderMark? {
    guard let file = try open(process, in: home), try file.isPresenceHeld() else { return nil }
    return try HolderMark(in: file)
  }

  /// Returns the process of an access, as far as it is known.
  func holder(of process: String, in home: AccessHome) -> LockHolder? {
    guard let file = try? open(process, in: home), let mark = try? HolderMark(in: file) else {
      return nil
    }
    return LockHolder(mark)
  }
}
