package import WormholeSyscalls

/// The workers of a queue: processes that take messages from one inbox at the same time.
///
/// A worker has a directory in the queue's `workers/`, with `claimed/` for its claims, and holds
/// the presence there as long as it runs. The directory's name is never used again, and states how
/// long a claim may last. If the presence is free, the worker is dead, and every other worker may
/// return its claims.
extension MemberDirectory {
  /// The name of a worker's directory: 16 digits drawn by chance, and the milliseconds for which
  /// the worker may have a message; 0 for ever.
  ///
  /// If the queue's home is another machine, the number of messages follows that the worker handles
  /// at the same time: the home lends no more.
  package struct WorkerName: Hashable, Sendable {
    package let text: String
    package let deadline: Duration?
    package let room: Int?
    /// More than 34 years, in milliseconds: a name with a longer deadline is no worker's.
    private static let longest: Int64 = 1 << 40 - 1

    init(_ digits: String, _ deadline: Duration?, room: Int? = nil) {
      // No claim may seem to last for ever because the time is short.
      let milliseconds =
        deadline.map { min(max(1, $0.inNanoseconds / 1_000_000), Self.longest) } ?? 0
      text = "\(digits).\(milliseconds)" + (room.map { ".\($0)" } ?? "")
      self.deadline = deadline == nil ? nil : .milliseconds(milliseconds)
      self.room = room
    }

    /// Nil for a text in another form.
    package init?(_ text: String) {
      let parts = text.parts(between: ".", keepingEmpty: true)
      guard parts.count == 2 || parts.count == 3, Randomness.isName(parts[0]),
        let milliseconds = Int64(parts[1]), milliseconds >= 0, milliseconds < 1 << 40,
        parts[1] == String(milliseconds)
      else { return nil }
      let room = parts.count == 3 ? Int(parts[2]) : nil
      guard
        parts.count == 2
          || room.map({ $0 > 0 && $0 < 1 << 16 && parts[2] == String($0) }) == true
      else { return nil }
      self.text = text
      self.room = room
      deadline = milliseconds == 0 ? nil : .milliseconds(milliseconds)
    }
  }

  /// How long the worker in this directory may have a message; nil for ever, or if this is not the
  /// directory of a worker.
  package var workerDeadline: Duration? { WorkerName(escaped)?.deadline }

  /// How many messages the worker in this directory handles at the same time, of a queue of another
  /// machine; 0 if this is not the directory of such a worker.
  package var workerRoom: Int { WorkerName(escaped)?.room ?? 0 }

  /// Makes a directory for a new worker, and takes its presence.
  ///
  /// The presence is taken before the directory becomes visible: at no moment can another worker
  /// take this one for dead, and remove its directory.
  ///
  /// - Parameter room: how many messages the worker handles at the same time.
  package func makeWorker(
    deadline: Duration?, room: Int = 1
  ) throws(Errno) -> (home: MemberDirectory, presence: Presence) {
    // Another tool may remove the directory.
    for _ in 0..<100 {
      let name = WorkerName(
        container.options.environment.randomName(), deadline,
        room: isAway ? min(max(1, room), 1 << 16 - 1) : nil)
      do throws(Errno) {
        var presence: Presence?
        try Self.make(name.text, in: part(.workers), [.claimed], container) {
          directory throws(Errno) in
          presence = try Self.takeHiddenPresence(in: directory)
        }
        guard let home = try worker(name), let presence else { continue }
        if try home.keeps(presence), try home.isNamed { return (home, presence) }
        presence.release()
      } catch {
        guard error == .noSuchFile else { throw error }
        _ = forgetIfStale(.workers)
      }
    }
    throw .busy
  }

  /// Whether this is the directory of a worker.
  package var isWorker: Bool { steps.count > 3 && WorkerName(escaped) != nil }

  /// The errors of an entry among the workers that was removed, or that no worker has made: a link,
  /// a file, or a directory that this user may not read or that others may write to.
  ///
  /// Such an entry must not keep the workers from the messages of the queue. All other errors say
  /// nothing about the entry.
  static let foreignEntries: Set<Errno> = [
    .noSuchFile, .notADirectory, .tooManyLinks, .accessDenied, .notPermitted,
  ]

  /// Returns the directory of a worker; nil if it was removed, or if the entry is foreign.
  package func worker(_ name: WorkerName) throws(Errno) -> MemberDirectory? {
    guard let workers = try existing(.workers) else { return nil }
    return try ignoring(Self.foreignEntries) { () throws(Errno) in
      let home = try container.options.sharing.openExisting(name.text, in: workers.descriptor)
      return MemberDirectory(worker: name.text, of: self, home: home, in: workers)
    }
  }

  /// The names of the directories of workers, unordered.
  package func workerNames() throws(Errno) -> [WorkerName] {
    try names(in: .workers) { WorkerName(String(cString: $0)) }
  }

  /// The workers, living and dead, in no order; none for a directory that is not a queue's.
  package func workers() throws(Errno) -> [MemberDirectory] {
    guard folder == .queues, !isWorker else { return [] }
    let names = try workerNames()
    var workers: [MemberDirectory] = []
    for name in names { if let worker = try worker(name) { workers.append(worker) } }
    return workers
  }

  /// Whether a directory among the workers cannot be read: a worker may have claims there that are
  /// not listed.
  package func hasUnknownClaims() throws(Errno) -> Bool {
    guard folder == .queues, !isWorker, let workers = try existing(.workers) else { return false }
    for name in try workerNames() {
      if let worker = try worker(name) {
        let claims = Part.claimed.rawValue
        if try worker.existing(.claimed) == nil, try worker.home.hasDirectory(claims) {
          return true
        }
      } else if try workers.hasDirectory(name.text) {
        return true
      }
    }
    return false
  }

  /// Watches the end of a worker.
  ///
  /// The kernel reports the end shortly before it releases the presence.
  package func watchEnd(
    _ handler: @escaping @Sendable () -> Void
  ) throws(Errno) -> NamedWatch {
    try NamedWatch(container, steps, .closedAfterWriting, name: Self.presenceName) { _ in
      handler()
    }
  }

  /// The errors of a presence or of claims that no worker has made.
  private static let foreignParts: Set<Errno> = [
    .notADirectory, .isADirectory, .tooManyLinks, .noDevice, .accessDenied, .notPermitted,
  ]

  /// Removes the directory of a dead worker without claims; false if a claim is left, if the worker
  /// lives, or if a part of the directory is foreign.
  package func removeDeadWorker() throws(Errno) -> Bool {
    let presence: Presence?
    do throws(Errno) {
      // The presence keeps the directory of a worker that is just starting from being removed.
      presence = try takePresence()
    } catch {
      if Self.foreignParts.contains(error) { return false }
      // The worker has left meanwhile, with its directory, in which no presence can be made.
      guard error == .noSuchFile, try !isNamed else { throw error }
      return true
    }
    guard let presence else { return false }
    return try ignoring(Self.foreignParts, { () throws(Errno) in try removeWorker(presence) })
      ?? false
  }

  /// Removes a worker's directory, and releases its presence.
  package func removeWorker(_ presence: Presence) throws(Errno) -> Bool {
    defer { presence.release() }
    guard try isNamed else { return true }
    do throws(Errno) {
      try container.options.sharing.removeEmpty(Part.claimed.rawValue, in: home.descriptor)
    } catch {
      if error == .directoryNotEmpty { return false }
      guard error == .noSuchFile else { throw error }
    }
    // Another process may have removed the directory, or have added something to it.
    try ignoring([.noSuchFile, .directoryNotEmpty]) { () throws(Errno) in
      try home.descriptor.unlink(Self.presenceName)
      try parent.descriptor.removeDirectory(escaped)
    }
    return true
  }
}

extension OpenDirectory {
  fileprivate func hasDirectory(_ name: String) throws(Errno) -> Bool {
    try ignoring(.noSuchFile, descriptor.status(of: name))?.kind == .directory
  }
}
