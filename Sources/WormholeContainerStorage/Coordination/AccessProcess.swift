internal import Synchronization
internal import WormholeSyscalls

/// The visible file of a process, for waiters on its accesses: `processes/<p>`, with a lock that is
/// held as long as the process lives, and a heartbeat that changes while the process runs.
///
/// All accesses of the process in a container share this object. The lock is an exclusive lock of
/// the open file description, similar to the lock on a member's `presence`. Only the owner may
/// write to the file, in a group's container too: another user cannot hold an exclusive lock on it.
/// The heartbeat has the format of lock files. It is renewed as long as an access waits or runs,
/// and each time the first access starts, the heartbeat gets a new value.
final class AccessProcess: Sendable {
  let name: String
  /// The path of the file, in the directory of accesses.
  private let path: String
  private let file: Descriptor
  private let state: Monitor<State>
  private let counted = Atomic<Int>(0)
  private let leases: LeaseKeeper

  private struct State {
    var mark: HolderMark
    var users = 0
    var tenure: Int?
  }

  private init(
    _ name: String, _ file: consuming Descriptor, _ mark: HolderMark, _ leases: LeaseKeeper
  ) {
    self.name = name
    path = AccessDirectory.processesName + "/" + name
    self.leases = leases
    self.file = file
    state = Monitor(State(mark: mark))
  }

  /// Creates the file of the process, under a new name.
  static func make(
    in home: borrowing Descriptor, _ container: Container
  ) throws(Errno) -> AccessProcess {
    let name = container.options.environment.randomName()
    let mark = HolderMark(of: .current)
    // Opening by path would follow a link.
    let processes = try container.options.sharing.openExisting("processes", in: home)
    let words = CollectionOfOne(mark.words)
    let file = try container.staging.withFile(
      words.span.bytes, isPrivate: true, isGuarded: true
    ) { staged, file throws(Errno) in
      if container.options.sharing == .group { try file.setMode(0o640) }
      // Lock before publishing: a file without a lock belongs to a dead process.
      guard try file.tryPresenceLock() else { throw .busy }
      let staging = try container.staging.directory()
      try staging.descriptor.publish(staged, to: processes, name)
      return try locked(file, as: name, in: processes)
    }
    return AccessProcess(name, file, mark, container.leases)
  }

  /// Opens the published file, as a waiter would.
  ///
  /// If the file system cannot rename without replacing, the name was made by a hard link. The
  /// kernel may then treat the linked file as another file without a lock, as with FUSE. No access
  /// uses the name yet, so no access can be taken for a dead process's in the meantime.
  private static func locked(
    _ file: borrowing Descriptor, as name: String, in processes: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    let seen = try processes.open(name, [.readWrite, .nonBlocking], isGuarded: true)
    if try seen.isPresenceHeld() { return try file.duplicate() }
    guard try seen.tryPresenceLock() else { throw .busy }
    // A sweeper may have removed the file, as a dead process's.
    _ = try processes.status(of: name)
    return seen
  }

  deinit {
    // Without this, an access that was never ended would write heartbeats to the next file with the
    // same descriptor number.
    if let tenure = state.withLock({ $0.tenure }) { _ = leases.end(tenure) }
  }

  /// Whether waiters can see the file.
  ///
  /// Another tool may have removed the file, or may have moved `processes/` or the directory of
  /// accesses away. A failure of the system to look proves nothing.
  func isThere(in home: borrowing Descriptor) throws(Errno) -> Bool {
    try ignoring(.noSuchFile, home.status(of: path)) != nil
  }

  /// Whether the caller's access is the only active access of the process.
  var isOnlyUser: Bool { state.withLock { $0.users == 1 } }

  func nextNumber() -> Int { counted.add(1, ordering: .relaxed).newValue }

  /// From here on, the heartbeat shows that the process runs.
  func begin(_ container: Container) throws(Errno) {
    try state.withLock { state throws(Errno) in
      if state.users == 0 {
        state.mark.begin()
        try state.mark.write(to: file)
        state.tenure = try leases.begin(
          state.mark, in: file, lease: container.shownLease, cap: nil, at: .now)
      }
      state.users += 1
    }
  }

  func end() {
    state.withLock { state in
      state.users -= 1
      guard state.users == 0, let tenure = state.tenure else { return }
      _ = leases.end(tenure)
      state.tenure = nil
    }
  }
}
