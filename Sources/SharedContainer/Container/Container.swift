internal import PropertyLists
internal import Synchronization
package import Syscalls

/// A directory that processes share, open.
///
/// Opening checks that the directory is safe to use, makes what is missing, and sweeps what the
/// dead left in `staging/`. It takes no lock. Two open ones on the same directory see each other as
/// two processes do.
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
  /// That of containers which have noted no run of the machine yet.
  let firstEpoch: Int
  /// The epoch once it was asked for; 0 before.
  let knownEpoch = Atomic<Int>(0)
  let epochHold = Monitor<EpochHold?>(nil)
  /// By their place among the folders: setting up a dictionary takes longer than reading a file.
  private let folders = Monitor([OpenDirectory?](repeating: nil, count: Folder.allCases.count))
  private let slots = Monitor(SlotCache())
  private let openSlots = Monitor(OpenSlots())
  private let counts = Monitor(ContainerCounters())
  let leases = LeaseKeeper()
  private let owner = ProcessCopy.current
  private let watching = Monitor(WeakWatchTree())

  private struct WeakWatchTree {
    weak var tree: WatchTree?
  }

  private init(
    path: String, options: ContainerOptions, root: consuming Descriptor, identity: FileIdentity,
    staging: Staging, marker: ContainerMarker
  ) {
    self.path = path
    self.options = options
    self.root = root
    self.identity = identity
    self.staging = staging
    reading = FileReading(
      largest: options.largestFile,
      owner: options.sharing == .owner ? Processes.effectiveUser : nil,
      foreignWriters: options.sharing == .owner ? 0 : options.sharing.foreignWriters,
      isRelayed: self.root.isRelayed)
    id = marker.id
    firstEpoch = marker.epoch
  }

  /// Opens the container at a path; makes one there if there is none and it may.
  ///
  /// - Parameter create: without it, a directory that is no container is an error, and nothing is
  ///   made.
  package static func open(
    _ path: String, create: Bool = true, options: ContainerOptions = ContainerOptions()
  ) throws(WormholeError) -> Container {
    let opening = ContainerOpening(
      path: UserPath.withoutSlashes(path), options: options, mayCreate: create)
    let root = try opening.openRoot()
    let marker = try opening.findMarker(root)
    do throws(Errno) {
      let identity = FileIdentity(try root.status())
      let staging = Staging(
        try opening.ensureStaging(in: root), options.sharing, options.environment)
      let container = Container(
        path: path, options: options, root: root, identity: identity,
        staging: staging, marker: marker)
      staging.setMakeAnew { [weak container] () throws(Errno) in
        guard let container else { throw .noSuchFile }
        return try opening.ensureStaging(in: container.root)
      }
      if !options.isForReading {
        container.sweep()
        container.sweepGuestsIfPossible()
      }
      return container
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
      log(.notice, "could not sweep \(path)/staging: \(error)", because: error)
    }
  }

  /// Opens one of the container's own directories; makes it if it is missing.
  func openFolder(_ folder: Folder) throws(Errno) -> Descriptor {
    try staging.ensureDirectory(folder.rawValue, in: root)
  }

  /// One of the container's own directories; opened once, made if it is missing.
  func folder(_ folder: Folder) throws(Errno) -> OpenDirectory {
    let place = folder.place
    if let open = folders.withLock({ $0[place] }) { return open }
    let open = OpenDirectory(try openFolder(folder))
    return folders.withLock { folders in
      if let other = folders[place] { return other }
      folders[place] = open
      return open
    }
  }

  /// The same, but not made: ENOENT if it is missing.
  ///
  /// For those who only look, who would otherwise be in the way of whoever removes the container.
  func existingFolder(_ folder: Folder) throws(Errno) -> OpenDirectory {
    if let open = folders.withLock({ $0[folder.place] }) { return open }
    let named = OpenDirectory(try options.sharing.openExisting(folder.rawValue, in: root))
    return folders.withLock { folders in
      if let other = folders[folder.place] { return other }
      folders[folder.place] = named
      return named
    }
  }

  /// The directory that has the folder's name now, in the place of one that is open and had it
  /// before; nil if none has.
  func named(_ folder: Folder) throws(Errno) -> OpenDirectory? {
    let named = try root.directory(folder.rawValue, options.sharing)
    return folders.withLock { folders in
      if let open = folders[folder.place], let named, open.isSame(as: named) { return open }
      folders[folder.place] = named
      return named
    }
  }

  /// Forgets an open folder that was removed by hand; whether it was.
  func forgetIfStale(_ folder: Folder) -> Bool {
    folders.withLock { folders in
      guard let open = folders[folder.place], open.isStale else { return false }
      folders[folder.place] = nil
      return true
    }
  }

  /// The directories of it that are watched; kept by those who watch.
  func watchTree() -> WatchTree {
    watching.withLock { watching in
      if let tree = watching.tree { return tree }
      let tree = WatchTree(self)
      watching.tree = tree
      return tree
    }
  }

  /// Nobody watches with this one any more who does not already.
  func forget(_ tree: WatchTree) {
    watching.withLock { if $0.tree === tree { $0.tree = nil } }
  }

  /// The file of that name and its lock.
  ///
  /// The same object as long as somebody keeps it.
  package func slot(_ folder: Folder, _ name: String) throws(WormholeError) -> Slot {
    let escaped = try Self.escape(
      name, allowance: EscapedName.allowance(for: name, in: folder))
    return slots.withLock { cache in
      cache.slot(folder, escaped) { Slot(container: self, folder: folder, name: name, escaped) }
    }
  }

  /// The names in a folder, unescaped and sorted; what is in no form of ours is left out.
  package func names(in folder: Folder) throws(WormholeError) -> [String] {
    do throws(Errno) {
      let listing = OpenDirectory(try root.open(folder.rawValue, [.readOnly, .directory]))
      // A channel is a directory, a notice a file.
      let holdsDirectories = folder == .channels || folder == .system || folder == .members
      let names =
        try holdsDirectories ? listing.descriptor.directoryNames() : listing.descriptor.names()
      return names.compactMap {
        EscapedName.unescape($0, allowance: EscapedName.allowance(for: $0, in: folder))
      }.sorted()
    } catch {
      if error == .noSuchFile { return [] }
      throw WormholeError(error, "list", path + "/" + folder.rawValue)
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
        throw WormholeError(.invalidName, "use name", name, because: "it is empty")
      case .tooLong(let length):
        throw WormholeError(
          .invalidName, "use name", name,
          because: "it takes \(length) bytes once escaped, and \(EscapedName.limit) is the limit")
      }
    }
  }

  func noteOpened(_ slot: Slot) {
    for oldest in openSlots.withLock({ $0.add(slot) }) where !oldest.closeIfIdle() {
      openSlots.withLock { $0.keep(oldest) }
    }
  }

  /// Whether this is the process that has opened it, and no copy of that one.
  package var isOwned: Bool { owner.isCurrent }

  /// Throws in a copy of the process that has opened it.
  ///
  /// There every call on what it has open fails. This is for those that would not come so far: that
  /// would wait for a thread which the copy does not have.
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
  /// Whether its name, where it lies, was synced since it was opened.
  let isNameDurable = Atomic<Bool>(false)

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
  func directory(_ name: String, _ sharing: Sharing) throws(Errno) -> OpenDirectory? {
    try descriptor.directory(name, sharing)
  }
}

extension Descriptor {
  /// The directory of that name in it; nil if there is none, or something else has the name.
  fileprivate func directory(
    _ name: String, _ sharing: Sharing
  ) throws(Errno) -> OpenDirectory? {
    do throws(Errno) {
      return OpenDirectory(try sharing.openExisting(name, in: self))
    } catch {
      guard [.noSuchFile, .notADirectory, .tooManyLinks].contains(error) else { throw error }
      return nil
    }
  }
}
