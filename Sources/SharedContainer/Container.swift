internal import PropertyLists
package import Syscalls

/// A directory that processes share, open.
///
/// Opening checks that the directory is safe to use, makes what is missing, and sweeps what the
/// dead left in `staging/`. As long as it is open, a shared flock on `container.plist` says so.
/// Two open ones on the same directory see each other as two processes do.
package final class Container: Sendable {
  /// What lies in the directory under names of ours.
  package enum Folder: String, CaseIterable, Sendable {
    case channels, system, notices, members, guests, staging, damaged

    fileprivate var place: Int { Self.allCases.firstIndex(of: self)! }
  }

  package let path: String
  package let options: ContainerOptions
  package let root: Descriptor
  package let identity: FileIdentity
  /// The container's own name for itself, the same for all who open it.
  package let id: String
  let staging: Staging
  /// How values are read, with whose files are trusted asked once.
  let reading: FileReading
  /// Holds the shared flock that says that somebody has the container open.
  private let presence: OpenDirectory
  /// Rises with each start of the machine, so that what was stamped later compares as later.
  package let epoch: Int
  /// By their place among the folders: setting up a dictionary takes longer than reading a file.
  private let folders = Monitor([OpenDirectory?](repeating: nil, count: Folder.allCases.count))
  private let slots = Monitor(SlotCache())
  private let openSlots = Monitor(OpenSlots())
  private let counts = Monitor(ContainerCounters())

  private init(
    path: String, options: ContainerOptions, root: consuming Descriptor, identity: FileIdentity,
    staging: Staging, presence: OpenDirectory, marker: ContainerMarker
  ) {
    self.path = path
    self.options = options
    self.root = root
    self.identity = identity
    self.staging = staging
    reading = FileReading(
      largest: options.largestFile,
      owner: options.sharing == .owner ? Processes.effectiveUser : nil,
      mutants: options.environment.mutants)
    self.presence = presence
    id = marker.id
    epoch = marker.epoch
  }

  deinit { try? presence.descriptor.unlock() }

  /// Opens the container at a path; makes one there if there is none and it may.
  ///
  /// - Parameter create: without it, a directory that is no container is an error, and nothing is
  ///   made.
  package static func open(
    _ path: String, create: Bool = true, options: ContainerOptions = ContainerOptions()
  ) throws(WormholeError) -> Container {
    let opening = ContainerOpening(path: path, options: options, mayCreate: create)
    let (container, boot) = try openOnce(opening)
    if options.isForReading { return container }
    let now = options.environment.bootIdentifier()
    guard boot != now, !now.isEmpty else { return container }
    do {
      try container.raiseEpoch(boot: now)
    } catch let error as WormholeError {
      // Whoever can only read needs no epoch.
      guard [.readOnly, .permissionDenied, .full].contains(error.code) else { throw error }
      return container
    } catch {
      throw WormholeError(.system, "open container", path, because: "\(error)")
    }
    return try openOnce(opening).container
  }

  private static func openOnce(
    _ opening: ContainerOpening
  ) throws(WormholeError) -> (container: Container, boot: String) {
    let (path, options) = (opening.path, opening.options)
    let root = try opening.openRoot()
    let marker = try opening.openMarker(root)
    let content = marker.content
    do throws(Errno) {
      let identity = FileIdentity(try root.status())
      let staging = Staging(
        try opening.ensureDirectory(.staging, in: root), options.sharing, options.environment)
      let container = Container(
        path: path, options: options, root: root, identity: identity,
        staging: staging, presence: OpenDirectory(marker.file), marker: content)
      if !options.isForReading {
        container.sweep()
        container.sweepGuestsIfPossible()
      }
      return (container, content.boot)
    } catch {
      throw WormholeError(error, "open container", path)
    }
  }

  /// Nothing depends on it, and what can only be read is opened all the same.
  private func sweep() {
    do throws(Errno) {
      let swept = try staging.sweep()
      guard swept > 0 else { return }
      count { $0.swept += swept }
      log(.info, "swept \(swept) unfinished files that ended processes had left")
    } catch {
      log(.notice, "could not sweep \(path)/staging: \(error)")
    }
  }

  /// One of the container's own directories; made if it is missing.
  func folder(_ folder: Folder) throws(Errno) -> OpenDirectory {
    let place = folder.place
    if let open = folders.withLock({ $0[place] }) { return open }
    let opening = ContainerOpening(path: path, options: options, mayCreate: true)
    let open = OpenDirectory(try opening.ensureDirectory(folder, in: root))
    return folders.withLock { folders in
      if let other = folders[place] { return other }
      folders[place] = open
      return open
    }
  }

  /// The file of that name and its lock.
  ///
  /// The same object as long as somebody keeps it.
  package func slot(_ folder: Folder, _ name: String) throws(WormholeError) -> Slot {
    let escaped = try Self.escape(name)
    return slots.withLock { cache in
      cache.slot(folder, escaped) { Slot(container: self, folder: folder, name: name, escaped) }
    }
  }

  /// The names in a folder, unescaped and sorted; what is in no form of ours is left out.
  package func names(in folder: Folder) throws(WormholeError) -> [String] {
    do throws(Errno) {
      let listing = OpenDirectory(
        try ContainerOpening(path: path, options: options, mayCreate: true)
          .ensureDirectory(folder, in: root))
      // A channel is a directory, a notice a file.
      let holdsDirectories = folder == .channels || folder == .system || folder == .members
      let names =
        try holdsDirectories ? listing.descriptor.directoryNames() : listing.descriptor.names()
      return names.compactMap(EscapedName.unescape).sorted()
    } catch {
      throw WormholeError(error, "list", path + "/" + folder.rawValue)
    }
  }

  func escape(_ name: String) throws(WormholeError) -> String { try Self.escape(name) }

  package static func escape(_ name: String) throws(WormholeError) -> String {
    do throws(EscapedName.Problem) {
      return try EscapedName.escape(name)
    } catch {
      switch error {
      case .empty:
        throw WormholeError(.invalidName, "use name", name, because: "it is empty")
      case .tooLong(let length):
        throw WormholeError(
          .invalidName, "use name", name,
          because: "it takes \(length) bytes once escaped, and \(EscapedName.limit) is the limit")
      }
    }
  }

  func noteOpened(_ slot: Slot) {
    for oldest in openSlots.withLock({ $0.add(slot) }) { oldest.closeIfIdle() }
  }

  package var counters: ContainerCounters { counts.withLock { $0 } }

  func count(_ change: (inout ContainerCounters) -> Void) {
    counts.withLock { change(&$0) }
  }

  func log(_ level: LogLevel, _ message: String) {
    options.environment.log(level, message)
  }
}

/// Which directory it is, whatever its path.
package struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(_ status: FileStatus) {
    device = status.device
    inode = status.inode
  }
}

/// A directory that several share for as long as any needs it.
package final class OpenDirectory: Sendable {
  package let descriptor: Descriptor
  let sync = DirectorySync()
  package init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }

  /// Whether the directory has been removed.
  package var isStale: Bool { (try? descriptor.status().links) == 0 }

  /// Whether it is the same as another, whatever their names.
  func isSame(as other: OpenDirectory) -> Bool {
    guard let (own, its) = try? (descriptor.status(), other.descriptor.status()) else {
      return false
    }
    return own.isSameFile(as: its)
  }

  /// The directory of that name in it; nil if there is none, or something else has the name.
  func directory(_ name: String) throws(Errno) -> OpenDirectory? {
    do throws(Errno) {
      return OpenDirectory(try descriptor.open(name, [.readOnly, .directory]))
    } catch {
      guard [.noSuchFile, .notADirectory, .tooManyLinks].contains(error) else { throw error }
      return nil
    }
  }
}
