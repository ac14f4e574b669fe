internal import WormholePropertyLists
internal import WormholeSyscalls

/// An open container: a directory for several processes.
///
/// Opening checks that the directory is safe to use, makes missing parts, and sweeps the files of
/// dead processes in `staging/`. Opening takes no lock. Two instances for the same directory see
/// each other as two processes do.
package final class Container: Sendable {
  /// The directories of a container.
  package enum Folder: String, CaseIterable, Sendable {
    case channels, system, notices, members, guests, staging, damaged
    /// Made by the first program that uses a queue.
    case queues

    /// The folders that each container has from the beginning.
    static let first = allCases.filter { $0 != .queues }

    fileprivate var place: Int { Self.allCases.firstIndex(of: self)! }

    /// The first part of the names of settings, in `system/`.
    package static let suitePrefix = "defaults."
    /// The first part of the names of the slots with named locks, in `system/`.
    package static let lockPrefix = "lock."
    /// The first part of the names of the slots with the starts of members, in `system/`.
    package static let wakePrefix = "wake."
    private static let prefixes = [suitePrefix, lockPrefix, wakePrefix]

    /// The number of bytes by which a name in this folder may exceed ``EscapedName/limit``: a name
    /// of the user may have the full length after a prefix of the library.
    func allowance(for name: String) -> Int {
      guard self == .system else { return 0 }
      return Self.prefixes.first { name.utf8.starts(with: $0.utf8) }?.utf8.count ?? 0
    }
  }

  package let path: String
  package let options: ContainerOptions
  /// How changes wait for a lock and hold it, unless the caller says otherwise.
  let policy: LockPolicy
  /// As ``ContainerOptions/shownLease``, in nanoseconds.
  let shownLease: Int64
  package let root: OpenDirectory
  package let identity: FileIdentity
  /// The identifier of the container, the same for all processes that open it.
  package let id: String
  let staging: Staging
  /// The rules for reading values; the trusted owner is determined once.
  let reader: FileReader
  /// The epoch of containers without an epoch record.
  let firstEpoch: Int
  private let folders = OpenDirectories(count: Folder.allCases.count)
  private let counts = Monitor(ContainerCounters())
  private let owner = ProcessCopy.current
  /// The parts of higher layers that belong to this container.
  let services = Services()

  init(
    path: String, options: ContainerOptions, root: OpenDirectory, identity: FileIdentity,
    staging: Staging, marker: ContainerMarker
  ) {
    self.path = path
    self.options = options
    policy = LockPolicy(lease: options.lease, cap: options.cap)
    shownLease = options.shownLease.inNanoseconds
    self.root = root
    self.identity = identity
    self.staging = staging
    reader = FileReader(
      largest: options.largestFile,
      owner: options.sharing == .owner ? Processes.effectiveUser : nil,
      foreignWriters: options.sharing == .owner ? 0 : options.sharing.foreignWriters,
      isRelayed: root.descriptor.isRelayed)
    id = marker.id
    firstEpoch = marker.epoch
  }

  /// Opens one of the container's directories; makes a missing one.
  func openFolder(_ folder: Folder) throws(Errno) -> Descriptor {
    try staging.ensureDirectory(folder.rawValue, in: root.descriptor)
  }

  /// Returns one of the container's directories; opened once, made if it is missing.
  func folder(_ folder: Folder) throws(Errno) -> OpenDirectory {
    try folders.directory(folder.place) { () throws(Errno) in try openFolder(folder) }
  }

  /// Returns a directory of the container without making one: ENOENT if it is missing.
  ///
  /// For readers: making directories would interfere with a process that removes the container.
  func existingFolder(_ folder: Folder) throws(Errno) -> OpenDirectory {
    try folders.directory(folder.place) { () throws(Errno) in
      try options.sharing.openExisting(folder.rawValue, in: root.descriptor)
    }
  }

  /// Opens the present directory of the folder's name, to replace the open one; nil if there is
  /// none.
  func named(_ folder: Folder) throws(Errno) -> OpenDirectory? {
    let named = try root.directory(folder.rawValue, options.sharing)
    return folders.replace(folder.place, by: named)
  }

  /// Forgets an open folder that another tool has removed; returns whether it was removed.
  func forgetIfStale(_ folder: Folder) -> Bool { folders.forgetIfStale(folder.place) }

  /// The names in a folder, unescaped and sorted; foreign file names are left out.
  package func names(in folder: Folder) throws(WormholeError) -> [String] {
    do throws(Errno) {
      let listing = OpenDirectory(
        try options.sharing.openExisting(folder.rawValue, in: root.descriptor))
      // A channel is a directory, a notice a file.
      let holdsDirectories = [.channels, .system, .members, .queues].contains(folder)
      let names =
        try holdsDirectories ? listing.descriptor.directoryNames() : listing.descriptor.names()
      return names.compactMap {
        EscapedName.unescape($0, allowance: folder.allowance(for: $0))
      }.sorted()
    } catch {
      if error == .noSuchFile { return [] }
      throw WormholeError(error, "list", path + "/" + folder.rawValue, in: self, folder.rawValue)
    }
  }

  func escape(_ name: String) throws(WormholeError) -> String { try Self.escape(name) }

  package static func escape(
    _ name: String, allowance: Int = 0
  ) throws(WormholeError) -> String {
    do throws(EscapedName.Problem) {
      return try EscapedName.escape(name, allowance: allowance)
    } catch {
      switch error {
      case .empty:
        throw WormholeError(.invalidName, "use name", name, because: "the name is empty")
      case .tooLong(let length):
        throw WormholeError(
          .invalidName, "use name", name,
          because: "the escaped name takes \(length) bytes, and the limit is \(EscapedName.limit)")
      }
    }
  }

  /// Whether this process opened the container itself, and did not inherit it by a fork.
  package var isOwned: Bool { owner.isCurrent }

  /// Throws in a forked child of the process that has opened the container.
  ///
  /// In the child every call on an open descriptor fails. Without this check, some calls would
  /// first wait for a thread that the child does not have.
  package func checkOwner(
    _ operation: @autoclosure () -> String, _ name: @autoclosure () -> String
  ) throws(WormholeError) {
    guard !isOwned else { return }
    throw WormholeError(.ownerDied, operation(), name())
  }

  package var counters: ContainerCounters { counts.withLock { $0 } }

  func count(_ change: (inout ContainerCounters) -> Void) {
    counts.withLock { change(&$0) }
  }
}

extension Container {
  /// Whether the container's path still leads to its directory.
  package var isInPlace: Bool {
    (try? Descriptor.status(ofPath: path, following: false)).map(FileIdentity.init) == identity
  }
}

extension Container {
  /// Logs an event that is no caller's error.
  package func log(
    _ level: LogLevel, _ text: String, about subject: LogSubject = LogSubject(),
    because cause: (any Error)? = nil
  ) {
    var entry = LogEntry(level, text)
    entry.container = path
    entry.channel = subject.channel
    entry.suite = subject.suite
    entry.member = subject.member
    entry.message = subject.message
    if let cause { entry.take(cause) }
    options.environment.log(entry)
  }

  /// Logs an error that no caller receives.
  package func log(
    _ level: LogLevel, _ error: WormholeError, about subject: LogSubject = LogSubject()
  ) {
    log(level, "\(error)", about: subject, because: error)
  }
}
