internal import WormholeSyscalls

/// Wakes the process's threads when an access ends.
///
/// All waits of a container share a bell. It starts to watch with the first wait, and stops at the
/// first notice for which no thread waits: repeated waits do not pay for a new watch each time.
final class AccessNotifier: Sendable {
  private struct State {
    var rings = 0
    var waiters = 0
    var watches: [NamedWatch] = []
  }

  private let state = Monitor(State())

  /// The number of received notices.
  var rings: Int { state.withLock { $0.rings } }

  /// Starts to watch for a thread that waits until ``leave()``.
  func enter(_ room: AccessDirectory) {
    let begins = state.withLock { state in
      state.waiters += 1
      return state.watches.isEmpty
    }
    guard begins else { return }
    // Without a watch, a waiter checks at each tick.
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

  /// Sleeps until the number of notices is higher than `rings`.
  func wait(since rings: Int, until deadline: Instant) {
    let _: Void? = state.wait(until: deadline) { $0.rings > rings ? () : nil }
  }
}

extension AccessDirectory {
  fileprivate func watches(_ ring: @escaping @Sendable () -> Void) -> [NamedWatch] {
    // The kernel reports the end of a process when it closes the process's file.
    (AccessPlace.allCases.map(\.name) + [Self.processesName]).compactMap { name in
      let mask: InotifyMask =
        name == Self.processesName ? [.closedAfterWriting, .deleted] : .deleted
      let path = [Container.Folder.system.rawValue, slot.escaped, name]
      return try? NamedWatch(container, path, mask) { _ in ring() }
    }
  }
}
