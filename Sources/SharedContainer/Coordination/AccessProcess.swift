internal import Synchronization
internal import Syscalls

/// What this process shows of itself to those who wait for its accesses: `processes/<p>`, which it
/// has a lock on for as long as it lives, and a mark in it that changes while it runs.
///
/// One for all of its accesses. The lock is one of the open file's description, as that on a
/// member's `presence`; the mark is that of lock files. It is renewed as long as an access waits
/// or runs, and it is another one each time that there is one again.
final class AccessProcess: Sendable {
  let name: String
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
    self.leases = leases
    self.file = file
    state = Monitor(State(mark: mark))
  }

  /// Shows this process, under a name that nobody has had.
  static func make(
    in home: borrowing Descriptor, _ container: Container
  ) throws(Errno) -> AccessProcess {
    let name = container.options.environment.randomName()
    let mark = HolderMark(of: .current)
    let visible = "processes/" + name
    let file = try withUnsafeBytes(of: mark.words) { bytes throws(Errno) in
      try container.staging.withFile(bytes, isGuarded: true) { staged, file throws(Errno) in
        // Before others can see it: one without a lock is a dead one's.
        guard try file.tryPresenceLock() else { throw .busy }
        let staging = try container.staging.directory()
        try staging.descriptor.publish(staged, to: home, visible)
        return try locked(file, as: visible, in: home)
      }
    }
    return AccessProcess(name, file, mark, container.leases)
  }

  /// The file as others see it.
  ///
  /// Where the name came by a link, since the file system cannot rename without replacing, it may
  /// be another file to the kernel, which has no lock: so it is with FUSE. It has no access yet
  /// that anybody could take for a dead one's.
  private static func locked(
    _ file: borrowing Descriptor, as name: String, in home: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    let seen = try home.open(name, [.readWrite, .nonBlocking], isGuarded: true)
    if try seen.isPresenceLocked() { return try file.duplicate() }
    guard try seen.tryPresenceLock() else { throw .busy }
    // Somebody who took it for a dead one's may have removed it.
    _ = try home.status(of: name)
    return seen
  }

  deinit {
    // An access that nobody has ended must not have marks written to what has the number next.
    if let tenure = state.withLock({ $0.tenure }) { _ = leases.end(tenure) }
  }

  /// Whether others can see it: somebody's hand may have removed it.
  var isThere: Bool { (try? file.status().links) ?? 0 > 0 }

  /// Whether whoever asks, having begun one, has begun the only one that has not ended.
  var isOnlyUser: Bool { state.withLock { $0.users == 1 } }

  func nextNumber() -> Int { counted.add(1, ordering: .relaxed).newValue }

  /// From here on it is seen to run.
  func begin(_ container: Container) throws(Errno) {
    try state.withLock { state throws(Errno) in
      if state.users == 0 {
        state.mark.begin()
        try state.mark.write(to: file)
        state.tenure = try leases.begin(
          state.mark, in: file, lease: container.options.shownLease, cap: nil, at: .now)
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
