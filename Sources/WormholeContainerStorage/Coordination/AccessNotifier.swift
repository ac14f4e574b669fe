internal import WormholeSyscalls

/// Wakes the process's threads when an access ends.
///
/// All waits of a container share a notifier. It starts to watch with the first wait, and stops at
/// the first notice for which no thread waits: repeated waits do not pay for a new watch each time.
///
/// Each thread waits for the end of one access: the latest of its blockers, because the earlier
/// ones usually end before. So the end of an access wakes the next waiter, and not all of them. A
/// name that the kernel has reported as removed is never used again: no waiter looks for its file.
final class AccessNotifier: Sendable {
  /// A waiting thread.
  private final class Waiter: Sendable {
    let isWoken = Monitor(false)

    func wake() { isWoken.signal { $0 = true } }
  }

  private struct State {
    /// The number of notices that concern all waiters.
    var rings = 0
    var waiters = 0
    var watches: [NamedWatch] = []
    /// The accesses whose files were removed since the watch began.
    var ended: Set<AccessName> = []
    var sleepers: [AccessName: [Waiter]] = [:]

    /// Remembers that an access has ended; returns the threads that wait for this access.
    mutating func end(_ name: AccessName) -> [Waiter] {
      if ended.count > AccessNotifier.mostEnded { ended = [] }
      ended.insert(name)
      return sleepers.removeValue(forKey: name) ?? []
    }
  }

  private let state = Monitor(State())

  /// The largest number of remembered names; waiters look for the files of forgotten ones.
  private static let mostEnded = 100_000

  /// The number of received notices that concern all waiters.
  var rings: Int { state.withLock { $0.rings } }

  /// The number of sleeping threads, for tests.
  var sleeperCount: Int {
    state.withLock { $0.sleepers.values.reduce(0) { $0 + $1.count } }
  }

  /// Starts to watch for a thread that waits until ``leave()``.
  func enter(_ room: AccessDirectory) {
    let begins = state.withLock { state in
      state.waiters += 1
      return state.watches.isEmpty
    }
    guard begins else { return }
    // Without a watch, a waiter checks at each tick.
    let watches = room.watches { [weak self] in self?.hear($0) }
    let spare = state.withLock { state in
      guard state.watches.isEmpty else { return watches }
      state.watches = watches
      return []
    }
    for watch in spare { watch.stop() }
  }

  func leave() { state.withLock { $0.waiters -= 1 } }

  /// Takes a notice: the names of removed files, or nil for any other change.
  func hear(_ removed: [AccessName]?) {
    let (woken, unused) = state.withLock { state -> ([Waiter], [NamedWatch]) in
      guard state.waiters > 0 else {
        defer { state.watches = [] }
        state.ended = []
        return ([], state.watches)
      }
      guard let removed else {
        state.rings += 1
        return (exchange(&state.sleepers, with: [:]).values.flatMap(\.self), [])
      }
      return (removed.flatMap { state.end($0) }, [])
    }
    for waiter in woken { waiter.wake() }
    for watch in unused { watch.stop() }
  }

  /// Notes the end of an access of this process, without waiting for the kernel's notice.
  ///
  /// Of a thousand waiters, each would otherwise wait for the notifying thread once more.
  func noteEnd(of name: AccessName) {
    let woken = state.withLock { state -> [Waiter] in
      guard state.waiters > 0 else { return [] }
      return state.end(name)
    }
    for waiter in woken { waiter.wake() }
  }

  /// The number of blockers, from the last one on, whose files are known to be removed.
  func endedCount(of blockers: [AccessName]) -> Int {
    state.withLock { state in
      blockers.reversed().prefix { state.ended.contains($0) }.count
    }
  }

  /// Sleeps until the latest of the blockers ends that has not ended yet, or until a notice that
  /// concerns all waiters.
  ///
  /// - Parameters:
  ///   - blockers: the latest first.
  ///   - rings: the number of such notices before the blockers were checked.
  func wait(for blockers: [AccessName], since rings: Int, until deadline: Instant) {
    let waiter = Waiter()
    let awaited = state.withLock { state -> AccessName? in
      guard state.rings == rings, let last = blockers.last, !state.ended.contains(last),
        let name = blockers.first(where: { !state.ended.contains($0) })
      else { return nil }
      state.sleepers[name, default: []].append(waiter)
      return name
    }
    guard let awaited else { return }
    let _: Void? = waiter.isWoken.wait(until: deadline) { $0 ? () : nil }
    state.withLock { state in
      guard var waiters = state.sleepers[awaited] else { return }
      waiters.removeAll { $0 === waiter }
      state.sleepers[awaited] = waiters.isEmpty ? nil : waiters
    }
  }
}

extension AccessDirectory {
  fileprivate func watches(
    _ hear: @escaping @Sendable (_ removed: [AccessName]?) -> Void
  ) -> [NamedWatch] {
    // The kernel reports the end of a process when it closes the process's file.
    (AccessPlace.allCases.map(\.name) + [Self.processesName]).compactMap { name in
      let isProcesses = name == Self.processesName
      let mask: InotifyMask = isProcesses ? [.closedAfterWriting, .deleted] : .deleted
      let path = [Container.Folder.system.rawValue, slot.escaped, name]
      return try? NamedWatch(container, path, mask) { signal in
        guard case .changed(let names) = signal, !isProcesses else { return hear(nil) }
        hear(names.compactMap { AccessName($0) })
      }
    }
  }
}
