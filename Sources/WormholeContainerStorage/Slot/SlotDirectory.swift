internal import Synchronization
internal import WormholeSyscalls

/// A slot's directory, open.
final class SlotDirectory: Sendable {
  let descriptor: Descriptor
  /// The parent directory: `.power` first makes the slot's own name there durable.
  let parent: OpenDirectory
  let sync = DirectorySync()
  /// The result of ``keepsOpen``: 0 as long as it is unknown, 1 for yes, 2 for no.
  private let openness = Atomic<Int>(0)
  private let isNameDurable = Atomic<Bool>(false)
  /// The time until which the previous value is known to be young enough.
  let keptFresh = Atomic<Int64>(0)
  /// Whether an exchange of two files was refused: then every change is synced.
  let lacksExchange = Atomic<Bool>(false)

  init(open name: String, in parent: OpenDirectory, _ sharing: Sharing) throws(Errno) {
    descriptor = try sharing.openExisting(name, in: parent.descriptor)
    self.parent = parent
  }

  /// Makes the directory with the lock file of the first generation in it; it becomes visible when
  /// complete.
  static func make(
    _ name: String, in parent: OpenDirectory, _ container: Container
  ) throws(Errno) {
    try Sharing.tolerating { () throws(Errno) in
      try container.staging.makeDirectory(name, in: parent.descriptor) { made throws(Errno) in
        try makeLocks(in: made, container)
      }
    }
  }

  /// Makes `lock/` with the lock file of the first generation, or the missing parts.
  static func makeLocks(
    in directory: borrowing Descriptor, _ container: Container
  ) throws(Errno) {
    let locks = try container.staging.ensureDirectory("lock", in: directory)
    try ignoring(.fileExists) { () throws(Errno) in
      try container.withNewLockFile { name, _ throws(Errno) in
        try container.staging.directory().descriptor.link(name, to: locks, "1")
      }
    }
  }

  /// Whether a file may stay open after it has lost its name: some file systems give it another
  /// name, and then its directory cannot be removed.
  ///
  /// Determined at the first commit: readers need not know.
  var keepsOpen: Bool {
    let known = openness.load(ordering: .relaxed)
    if known != 0 { return known == 1 }
    let keeps = !descriptor.isRelayed
    openness.store(keeps ? 1 : 2, ordering: .relaxed)
    return keeps
  }

  /// Whether the directory has been removed: files can no longer be made in a removed directory.
  var isStale: Bool { (try? descriptor.status().links) == 0 }

  /// Makes the names in the directory durable, and once the directory's own name.
  func syncNames() throws(Errno) {
    guard !isNameDurable.load(ordering: .acquiring) else { return try sync.sync(descriptor) }
    try descriptor.sync()
    if !Mutants.has(.noNameSync) { try parent.sync.sync(parent.descriptor) }
    isNameDurable.store(true, ordering: .releasing)
  }

  /// As ``syncNames()``, for a change that does not ask for it; returns the error.
  ///
  /// Some file systems sync no directory: there, no change can wait for its name.
  func trySyncNames() -> Errno? {
    let failure = Errno.of { () throws(Errno) in try syncNames() }
    return failure == .invalidArgument ? nil : failure
  }
}

/// The slots whose directories are open, oldest first.
///
/// Each slot takes up to four descriptors. A process usually may have 1024, and a program may have
/// a thousand channels: the oldest slots are closed, and opened again when they are used.
struct OpenSlots {
  static let limit = 64
  private var entries: [SlotReference] = []

  /// Adds a slot; returns the slots to close in exchange.
  mutating func add(_ slot: Slot) -> [Slot] {
    entries.removeAll { $0.slot == nil || $0.slot === slot }
    entries.append(SlotReference(slot: slot))
    guard entries.count > Self.limit else { return [] }
    let oldest = entries.prefix(Self.limit / 4)
    entries.removeFirst(oldest.count)
    return oldest.compactMap(\.slot)
  }

  /// Adds a slot again that was in use, and is closed at another time.
  mutating func keep(_ slot: Slot) { entries.append(SlotReference(slot: slot)) }
}

private struct SlotReference { weak var slot: Slot? }

/// The slots in use: all callers for a name share a queue and a set of descriptors.
struct SlotCache {
  private struct Key: Hashable {
    let folder: Container.Folder
    let name: String
  }

  /// The first requested slot.
  ///
  /// A program that starts, reads one value and ends needs no other slot, and setting up a
  /// dictionary takes longer than reading the value's file.
  private var first: (key: Key, entry: SlotReference)?
  private var known: [Key: SlotReference]?

  /// The number of entries at which the entries of released slots are dropped.
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
      first = (key, SlotReference(slot: slot))
      return slot
    }
    known = known ?? [:]
    known?[key] = SlotReference(slot: slot)
    if let all = known, all.count > nextSweep {
      let left = all.filter { $0.value.slot != nil }
      known = left
      nextSweep = max(Self.sweepAt, left.count * 2)
    }
    return slot
  }
}
