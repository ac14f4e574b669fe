import WormholeLibC
internal import WormholeCLinux

/// Signals that call a closure in place of their action, until ``end()`` or the first of them.
///
/// After the first signal all of them have their earlier actions again: a second signal ends a
/// process that does not end by itself.
package final class CaughtSignals: Sendable {
  private let watch = Watch.ofThisProcess.current
  private let key: Int

  /// - Parameter numbers: the signals; those that the process ignores, as its parent process may
  ///   have arranged, stay ignored.
  package init(_ numbers: Set<Int32>, _ call: @escaping @Sendable () -> Void) throws(Errno) {
    key = try watch.add(numbers.filter { !Signals.isIgnored($0) }, Action(call))
  }

  /// Gives the signals their earlier actions.
  ///
  /// A signal that has arrived before calls the closure, or has its earlier action.
  package func end() {
    // The threads and handlers of a forked child are its own.
    if watch === Watch.ofThisProcess.current { watch.remove(key) }
  }
}

/// The thread that waits for the signals of all closures.
private final class Watch: Sendable {
  static let ofThisProcess = OneForEachProcess { Watch() }

  private struct State {
    var next = 0
    var closures: [Int: (numbers: Set<Int32>, call: Action)] = [:]
    var hasThread = false

    /// The signals that call a closure, a bit for each, the lowest for signal 1.
    var bits: UInt64 {
      closures.values.reduce(0) { bits, closure in
        closure.numbers.reduce(bits) { $0 | Self.bit($1) }
      }
    }

    static func bit(_ number: Int32) -> UInt64 { 1 << UInt64(number - 1) }

    /// How many of the closures a signal calls.
    func count(_ number: Int32) -> Int {
      closures.values.count { $0.numbers.contains(number) }
    }

    /// Catches the signals without a closure, or no signal if the system refuses one.
    func catchNew(_ numbers: Set<Int32>) throws(Errno) {
      let new = numbers.filter { count($0) == 0 }.sorted()
      for (index, number) in new.enumerated() where linux_catch_signal(number) != 0 {
        let error = Errno.current
        for caught in new[..<index] { linux_release_signal(caught) }
        throw error
      }
    }

    /// Removes a closure.
    ///
    /// Its signals have their earlier actions, unless another closure needs them.
    mutating func remove(_ key: Int) -> Action? {
      guard let removed = closures.removeValue(forKey: key) else { return nil }
      for number in removed.numbers where count(number) == 0 { linux_release_signal(number) }
      return removed.call
    }
  }

  private let state = Monitor(State())

  func add(_ numbers: Set<Int32>, _ call: Action) throws(Errno) -> Int {
    try state.withLock { state throws(Errno) in
      if !state.hasThread {
        guard linux_begin_awaiting_signals() == 0 else { throw .current }
        try Thread("wormhole-signal") { self.wait() }.detach()
        state.hasThread = true
      }
      do throws(Errno) {
        try state.catchNew(numbers)
      } catch {
        // No later call would end the thread, because no closure is left.
        if state.closures.isEmpty { linux_end_awaiting_signals() }
        throw error
      }
      state.next += 1
      state.closures[state.next] = (numbers, call)
      return state.next
    }
  }

  func remove(_ key: Int) {
    state.withLock { state in
      if state.remove(key) != nil, state.closures.isEmpty { linux_end_awaiting_signals() }
    }
  }

  private func wait() {
    while true {
      let arrived = linux_await_signals()
      let (calls, uncaught, isOver) = state.withLock { state in
        // A catch may have been refused, or have ended, after its signal had arrived.
        let uncaught = arrived & ~state.bits
        let keys = state.closures.filter { _, closure in
          closure.numbers.contains { arrived & State.bit($0) != 0 }
        }.keys
        let calls = keys.compactMap { state.remove($0) }
        state.hasThread = !state.closures.isEmpty
        return (calls, uncaught, !state.hasThread)
      }
      for call in calls { call.perform() }
      linux_raise_signals(uncaught)
      if isOver { return }
    }
  }
}
