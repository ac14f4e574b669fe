internal import Synchronization
package import WormholeSyscalls

/// The directory of a member, `members/<name>/`, of a guest, `guests/<random>/`, of a queue,
/// `queues/<name>/`, or of a worker of a queue, `queues/<name>/workers/<random>/`.
///
/// The first process that needs the directory makes it, complete with all parts: a joining member,
/// or a sender to a member that has never joined. Each part is opened when it is first used.
package final class MemberDirectory: Sendable {
  /// The directories of a member directory.
  package enum Part: String, CaseIterable, Sendable {
    /// Messages that wait.
    case inbox
    /// Messages that are delayed; made when the first one is sent.
    case later
    /// Messages claimed by a receiver.
    case claimed
    /// Dead-lettered messages, with the reasons.
    case dead
    /// The outcomes of the member's sent messages.
    case receipts
    /// The latest context from each peer.
    case context
    /// Messages for the running process only.
    case live
    /// Files that belong to messages.
    case files
    /// The workers of a queue.
    case workers
    /// What this machine's workers have of a queue whose home is another machine.
    case away

    /// The parts of the directories in a folder.
    package static func parts(in folder: Container.Folder) -> [Part] {
      folder == .queues
        ? [.inbox, .later, .claimed, .dead, .files, .workers, .away]
        : allCases.filter { $0 != .workers && $0 != .away }
    }

    // Used at each step of a message, so without searching the names.
    fileprivate var place: Int {
      switch self {
      case .inbox: 0
      case .claimed: 1
      case .dead: 2
      case .receipts: 3
      case .context: 4
      case .live: 5
      case .files: 6
      case .workers: 7
      case .later: 8
      case .away: 9
      }
    }
  }

  package let container: Container
  package let folder: Container.Folder
  /// The unescaped name.
  package let name: String
  package let escaped: String
  package let home: OpenDirectory
  let parent: OpenDirectory
  /// The names that lead to the directory, from the container's own.
  let steps: [String]
  /// The path below the container's directory.
  package let path: String
  private let parts = OpenDirectories(count: Part.allCases.count)

  /// The file that a member locks for as long as its process runs.
  package static let presenceName = "presence"
  package static let profileName = "profile.plist"
  /// The processing state of the claimed messages.
  package static let progressName = "progress"

  fileprivate init(
    _ container: Container, _ folder: Container.Folder, _ name: String, _ escaped: String,
    home: consuming Descriptor, in parent: OpenDirectory
  ) {
    self.container = container
    self.folder = folder
    self.name = name
    self.escaped = escaped
    self.home = OpenDirectory(home)
    self.parent = parent
    steps = [folder.rawValue, escaped]
    path = steps.joined(separator: "/")
  }

  /// The directory of a worker of a queue.
  ///
  /// - Parameter steps: the names from the queue's directory to this one; nil for the usual names.
  init(
    worker: String, of queue: MemberDirectory, home: consuming Descriptor, in parent: OpenDirectory,
    steps: [String]? = nil
  ) {
    (container, folder) = (queue.container, queue.folder)
    (name, escaped) = (queue.name, worker)
    self.home = OpenDirectory(home)
    self.parent = parent
    self.steps = queue.steps + (steps ?? [Part.workers.rawValue, worker])
    path = self.steps.joined(separator: "/")
  }

  /// Whether the directory has been removed: files can no longer be made in a removed directory.
  package var isStale: Bool { home.isStale }

  /// The time when a name was last added or removed, by the clock of the file system.
  package var lastChange: Int64? { (try? home.descriptor.status())?.modified }

  /// The same time for a part; nil if the part is missing.
  package func lastChange(of part: Part) throws(Errno) -> Int64? {
    try existing(part)?.descriptor.status().modified
  }

  /// Whether the directory still has its name.
  package var isNamed: Bool {
    get throws(Errno) {
      let named = try ignoring(.noSuchFile, parent.descriptor.status(of: escaped))
      return try named?.isSameFile(as: home.descriptor.status()) ?? false
    }
  }

  /// Returns a part; made again if another tool has removed it.
  package func part(_ part: Part) throws(Errno) -> OpenDirectory {
    try parts.directory(part.place) { () throws(Errno) in
      try Self.ensure(part, in: home.descriptor, container)
    }
  }

  /// Returns a part; nil if it is missing, or foreign in the directory of a worker.
  package func existing(_ part: Part) throws(Errno) -> OpenDirectory? {
    if let open = parts.known(part.place), !open.isStale || !forgetIfStale(part) { return open }
    return try ignoring(isWorker ? Self.foreignEntries : [.noSuchFile]) { () throws(Errno) in
      try parts.directory(part.place) { () throws(Errno) in
        try container.options.sharing.openExisting(part.rawValue, in: home.descriptor)
      }
    }
  }

  /// Forgets an open part that another tool has removed; returns whether it was removed.
  func forgetIfStale(_ part: Part) -> Bool { parts.forgetIfStale(part.place) }

  /// Opens the present directory of the part's name, to replace the open one; nil if there is none.
  func named(_ part: Part) throws(Errno) -> OpenDirectory? {
    let named = try home.directory(part.rawValue, container.options.sharing)
    return parts.replace(part.place, by: named)
  }

  /// Uses the directory that has the part's name now; if opening fails, the next use opens it.
  func renew(_ part: Part) {
    do throws(Errno) {
      _ = try named(part)
    } catch {
      _ = parts.replace(part.place, by: nil)
    }
  }

  /// Replaces the open parts whose names lead to other directories; false if the member's own name
  /// leads to another directory, or if the check fails.
  package func lookAgain() -> Bool {
    guard (try? isNamed) == true else { return false }
    for part in Part.allCases where parts.known(part.place) != nil {
      // A part that cannot be checked is used as before.
      _ = try? named(part)
    }
    return true
  }

  /// Returns why this user may not write to a part, and a remedy; nil if writing seems to be
  /// allowed.
  package func denial(of part: Part) -> String? {
    container.options.sharing.denial(
      of: "\(path)/\(part.rawValue)", in: container.root.descriptor, at: container.path)
  }

  /// Logs that a step with the directory has failed, an error that no caller receives.
  ///
  /// - Parameter step: the words before the member's name, as in `cannot list the receipts of`.
  package func log(_ level: LogLevel, _ step: String, _ error: Errno) {
    let subject = LogSubject(member: name)
    container.log(level, "\(step) '\(name)': \(error)", about: subject, because: error)
  }

  /// Makes a part's own name durable, and the names above it, once.
  func syncNames(of part: OpenDirectory) throws(Errno) {
    guard !part.isNameDurable.load(ordering: .acquiring) else { return }
    try home.sync.sync(home.descriptor)
    try parent.sync.sync(parent.descriptor)
    // The other folders had their names before the container had its marker.
    if folder == .queues, steps.count == 2, !parent.isNameDurable.load(ordering: .acquiring) {
      let root = container.root
      if !Mutants.has(.noFolderSync) { try root.sync.sync(root.descriptor) }
      parent.isNameDurable.store(true, ordering: .releasing)
    }
    part.isNameDurable.store(true, ordering: .releasing)
  }

  private static func ensure(
    _ part: Part, in home: borrowing Descriptor, _ container: Container
  ) throws(Errno) -> Descriptor {
    try container.staging.ensureDirectory(part.rawValue, in: home)
  }

  /// Makes the directory with all its parts; it becomes visible when complete.
  ///
  /// - Parameter complete: called with the directory before it becomes visible.
  static func make(
    _ escaped: String, in parent: OpenDirectory, _ parts: [Part], _ container: Container,
    _ complete: (borrowing Descriptor) throws(Errno) -> Void = { _ throws(Errno) in }
  ) throws(Errno) {
    let sharing = container.options.sharing
    try Sharing.tolerating { () throws(Errno) in
      try container.staging.makeDirectory(escaped, in: parent.descriptor) {
        directory throws(Errno) in
        for part in parts { _ = try ensure(part, in: directory, container) }
        let presence = try directory.open(
          presenceName, .readWriteNew, mode: 0o600)
        if sharing == .group { try presence.setMode(sharing.fileMode) }
        try complete(directory)
      }
    }
  }
}

extension Container {
  /// Returns the directory of a member or a guest; nil if there is none.
  package func existingMember(
    _ name: String, in folder: Folder = .members
  ) throws(WormholeError) -> MemberDirectory? {
    let escaped = try Self.escape(name)
    do throws(Errno) {
      return try openMember(name, escaped, folder)
    } catch {
      if error == .noSuchFile { return nil }
      throw WormholeError(
        error, "open member", name, in: self, "\(folder.rawValue)/\(escaped)",
        MemberDirectory.Part.allCases.map(\.rawValue))
    }
  }

  /// Returns the directory of a member or a guest; made if there is none.
  package func member(
    _ name: String, in folder: Folder = .members
  ) throws(WormholeError) -> MemberDirectory {
    let escaped = try Self.escape(name)
    do throws(Errno) {
      if let home = try ignoring(.noSuchFile, openMember(name, escaped, folder)) { return home }
      return try makeMember(name, escaped, folder)
    } catch {
      throw WormholeError(
        error, "open member", name, in: self, "\(folder.rawValue)/\(escaped)",
        MemberDirectory.Part.allCases.map(\.rawValue))
    }
  }

  func makeMember(
    _ name: String, _ escaped: String, _ folder: Folder
  ) throws(Errno) -> MemberDirectory {
    var tries = 0
    while true {
      do throws(Errno) {
        let parts = MemberDirectory.Part.parts(in: folder).filter { $0 != .later && $0 != .away }
        try MemberDirectory.make(escaped, in: self.folder(folder), parts, self)
        return try openMember(name, escaped, folder)
      } catch {
        // Another process may remove it each time, or may remove all member directories.
        tries += 1
        guard error == .noSuchFile, tries < 100 else { throw error }
        _ = forgetIfStale(folder)
      }
    }
  }

  func openMember(
    _ name: String, _ escaped: String, _ folder: Folder
  ) throws(Errno) -> MemberDirectory {
    do throws(Errno) {
      let parent = try existingFolder(folder)
      return MemberDirectory(
        self, folder, name, escaped,
        home: try options.sharing.openExisting(escaped, in: parent.descriptor), in: parent)
    } catch {
      // The folder may have been removed and made again.
      guard error == .noSuchFile, forgetIfStale(folder) else { throw error }
      return try openMember(name, escaped, folder)
    }
  }
}
