internal import Synchronization
internal import Syscalls

/// A slot's directory, open.
final class SlotDirectory: Sendable {
  let descriptor: Descriptor
  /// The directory it lies in: `.power` makes sure that its own name there is durable first.
  let parent: OpenDirectory
  let sync = DirectorySync()
  /// What ``keepsOpen`` has found: 0 as long as nobody has asked, 1 for yes, 2 for no.
  private let openness = Atomic<Int>(0)
  private let isNameDurable = Atomic<Bool>(false)
  /// Until when the kept value is known to be young enough.
  let keptFresh = Atomic<Int64>(0)

  init(open name: String, in parent: OpenDirectory, _ sharing: Sharing) throws(Errno) {
    descriptor = try sharing.openExisting(name, in: parent.descriptor)
    self.parent = parent
  }

  /// Makes the directory with the lock file of the first generation in it; it appears complete.
  static func make(
    _ name: String, in parent: OpenDirectory, _ container: Container
  ) throws(Errno) {
    do throws(Errno) {
      try container.staging.makeDirectory(name, in: parent.descriptor) { made throws(Errno) in
        try makeLocks(in: made, container)
      }
    } catch {
      guard error == .fileExists || error == .directoryNotEmpty else { throw error }
    }
  }

  /// Makes `lock/` with the lock file of the first generation, or what is missing of it.
  static func makeLocks(
    in directory: borrowing Descriptor, _ container: Container
  ) throws(Errno) {
    let locks = try container.staging.ensureDirectory("lock", in: directory)
    do throws(Errno) {
      try container.withNewLockFile { name, _ throws(Errno) in
        try container.staging.directory().descriptor.link(name, to: locks, "1")
      }
    } catch {
      guard error == .fileExists else { throw error }
    }
  }

  /// Whether a file may stay open that has lost its name: some file systems give it another, and
  /// then its directory cannot be removed.
  ///
  /// Found out by the first who commits: who only reads need not know.
  var keepsOpen: Bool {
    let known = openness.load(ordering: .relaxed)
    if known != 0 { return known == 1 }
    let keeps = !descriptor.isRelayed
    openness.store(keeps ? 1 : 2, ordering: .relaxed)
    return keeps
  }

  /// Whether the directory has been removed: then nothing more can be made in it.
  var isStale: Bool { (try? descriptor.status().links) == 0 }

  /// Makes the directory's own name durable, once.
  func syncName() throws(Errno) {
    guard !isNameDurable.load(ordering: .acquiring) else { return }
    try descriptor.sync()
    try parent.sync.sync(parent.descriptor)
    isNameDurable.store(true, ordering: .releasing)
  }
}

/// The slots whose directories are open, oldest first.
///
/// Each takes up to four descriptors, of which a process usually may have 1024, and a program may
/// have a thousand channels: the oldest are closed, and open again when they are used.
struct OpenSlots {
  private struct Entry {
    weak var slot: Slot?
  }

  static let limit = 64
  private var entries: [Entry] = []

  /// Notes one more; answers which ones are to be closed for it.
  mutating func add(_ slot: Slot) -> [Slot] {
    entries.removeAll { $0.slot == nil || $0.slot === slot }
    entries.append(Entry(slot: slot))
    guard entries.count > Self.limit else { return [] }
    let oldest = entries.prefix(Self.limit / 4)
    entries.removeFirst(oldest.count)
    return oldest.compactMap(\.slot)
  }

  /// Notes one again that was in use, and is closed another time.
  mutating func keep(_ slot: Slot) { entries.append(Entry(slot: slot)) }
}

/// The slots in use, so that all who ask for one name share one queue and one set of descriptors.
struct SlotCache {
  private struct Key: Hashable {
    let folder: Container.Folder
    let name: String
  }

  private struct Entry {
    weak var slot: Slot?
  }

  /// The first that was asked for.
  ///
  /// A program that starts, looks at one value and ends needs no other, and
  /// setting up a dictionary takes longer than reading the value's file.
  private var first: (key: Key, entry: Entry)?
  private var known: [Key: Entry]?

  /// Entries of slots that are gone are dropped when there are this many.
  private static let sweepAt = 256
  private var nextSweep = SlotCache.sweepAt

  mutating func slot(
    _ folder: Container.Folder, _ name: String, _ make: () -> Slot
  ) -> Slot {
    let key = Key(folder: folder, name: name)
    if let first, first.key == key, let slot = first.entry.slot { return slot }
    if let slot = known?[key]?.slot { return slot }
    let slot = make()
    guard first?.entry.slot != nil else {
      first = (key, Entry(slot: slot))
      return slot
    }
    known = known ?? [:]
    known?[key] = Entry(slot: slot)
    if let all = known, all.count > nextSweep {
      let left = all.filter { $0.value.slot != nil }
      known = left
      nextSweep = max(Self.sweepAt, left.count * 2)
    }
    return slot
  }
}
