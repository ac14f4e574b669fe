internal import Syscalls

/// Wakes the threads of this process that wait for accesses to end.
///
/// One for all of them. It listens from the first wait on, and stops at the first notice that
/// nobody here waits for: whoever waits again and again does not pay for a watch each time.
final class AccessBell: Sendable {
  private struct State {
    var rings = 0
    var waiters = 0
    var watches: [NamedWatch] = []
  }

  private let state = Monitor(State())

  /// How often it has rung.
  var rings: Int { state.withLock { $0.rings } }

  /// Begins to listen, for one that waits until ``leave()``.
  func enter(_ room: AccessRoom) {
    let begins = state.withLock { state in
      state.waiters += 1
      return state.watches.isEmpty
    }
    guard begins else { return }
    // What cannot be watched is looked at with each tick.
    let watches = room.watches { [weak self] in self?.ring() }
    let spare = state.withLock { state in
      guard state.watches.isEmpty else { return watches }
      state.watches = watches
      return []
    }
    for watch in spare { watch.stop() }
  }

  func leave() { state.withLock { $0.waiters -= 1 } }

  private func ring() {
    let unused = state.signal { state -> [NamedWatch] in
      state.rings += 1
      guard state.waiters == 0 else { return [] }
      defer { state.watches = [] }
      return state.watches
    }
    for watch in unused { watch.stop() }
  }

  /// Sleeps until it has rung more often than that.
  func wait(since rings: Int, until deadline: Instant) {
    let _: Void? = state.wait(until: deadline) { $0.rings > rings ? () : nil }
  }
}

extension AccessRoom {
  fileprivate func watches(_ ring: @escaping @Sendable () -> Void) -> [NamedWatch] {
    // A process's end is told when the kernel closes its file.
    (AccessPlace.allCases.map(\.name) + [Self.processesName]).compactMap { name in
      let mask: InotifyMask =
        name == Self.processesName ? [.closedAfterWriting, .deleted] : .deleted
      let path = [Container.Folder.system.rawValue, slot.escaped, name]
      return try? NamedWatch(container, path, mask) { _ in ring() }
    }
  }
}
