internal import Syscalls

/// Whether those that have accesses live, and run.
extension AccessRoom {
  /// What can be seen of an access that is in the way.
  enum Sight {
    case gone
    /// Its process has ended.
    case dead
    case stands
    /// Its process has not run for so long.
    case stoodStill(AccessPlace, Duration)
  }

  /// Whether the process that shows itself under this name lives.
  ///
  /// Whoever asks takes no lock, so that it cannot be mistaken for a holder.
  func isAlive(_ process: String, in home: OpenDirectory) throws(Errno) -> Bool {
    if process == ownName { return true }
    guard let file = try open(process, in: home) else { return false }
    return try file.isPresenceLocked()
  }

  private func open(_ process: String, in home: OpenDirectory) throws(Errno) -> Descriptor? {
    do throws(Errno) {
      return try home.descriptor.open(
        Self.processesName + "/" + process, [.readOnly, .nonBlocking])
    } catch {
      guard [.noSuchFile, .tooManyLinks, .noDevice].contains(error) else { throw error }
      return nil
    }
  }

  /// What an access is about that runs; nil if there is none of that name.
  package func running(_ token: AccessToken) -> AccessClaim? {
    guard token.container == container.id, let name = AccessName(token.name),
      let home = openHome ?? (try? existingDirectory()),
      (try? place(of: name, in: home, from: .running)) != nil,
      (try? isAlive(name.process, in: home)) == true
    else { return nil }
    return (try? entry(of: name, in: .running, of: home))?.claim
  }

  func look(at name: AccessName, in home: OpenDirectory) throws(Errno) -> Sight {
    guard let place = try place(of: name, in: home) else { return .gone }
    if name.process == ownName { return .stands }
    guard let file = try open(name.process, in: home), try file.isPresenceLocked() else {
      standing.withLock { $0[name.process] = nil }
      return .dead
    }
    let mark = try HolderMark(in: file)
    let stood = observe(name.process, mark)
    return stood > container.options.lease ? .stoodStill(place, stood) : .stands
  }

  /// Notes that others beside the first are in the way: that they stand still is to be known when
  /// their turn comes.
  func observe(_ names: some Sequence<AccessName>, in home: OpenDirectory) {
    var seen: Set<String> = []
    for name in names where name.process != ownName && seen.insert(name.process).inserted {
      guard seen.count <= Self.mostObserved else { return }
      guard let file = try? open(name.process, in: home), let mark = try? HolderMark(in: file)
      else { continue }
      _ = observe(name.process, mark)
    }
  }

  private static var mostObserved: Int { 16 }

  /// How long the process's mark has stood still, as far as anybody here has looked.
  private func observe(_ process: String, _ mark: HolderMark) -> Duration {
    let now = container.options.environment.now()
    return standing.withLock { standing in
      // One that has ended is never looked at again.
      if standing.count > 256 { standing = [:] }
      var own =
        standing[process]
        ?? LeaseObservation<HolderMark>(lease: container.options.lease, now: now)
      _ = own.stoodStill(mark, at: now)
      standing[process] = own
      return own.stood
    }
  }

  /// What a process shows of itself; nil if it shows nothing.
  func mark(of process: String, in home: OpenDirectory) throws(Errno) -> HolderMark? {
    guard let file = try open(process, in: home), try file.isPresenceLocked() else { return nil }
    return try HolderMark(in: file)
  }

  /// Who has an access, as far as that can be known.
  func holder(of name: AccessName, in home: OpenDirectory) -> LockHolder? {
    holder(of: name.process, in: home)
  }

  func holder(of process: String, in home: OpenDirectory) -> LockHolder? {
    guard let file = try? open(process, in: home), let mark = try? HolderMark(in: file) else {
      return nil
    }
    return LockHolder(mark)
  }
}
