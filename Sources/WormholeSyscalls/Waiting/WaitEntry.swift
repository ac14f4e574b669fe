import WormholeLibC

/// A descriptor for which a thread waits together with others.
///
/// The owner keeps the descriptor open during the wait.
package struct WaitEntry: Sendable {
  private var entry: pollfd

  /// - Parameters:
  ///   - number: the descriptor.
  ///   - reads: whether the wait ends when the descriptor is readable.
  ///   - writes: whether the wait ends when the descriptor is writable.
  package init(_ number: CInt, reads: Bool = true, writes: Bool = false) {
    let events = (reads ? POLLIN : 0) | (writes ? POLLOUT : 0)
    entry = pollfd(fd: number, events: Int16(truncatingIfNeeded: events), revents: 0)
  }

  /// Whether the descriptor is readable, or its other end has gone.
  package var isReadable: Bool { has(POLLIN) || isOver }
  /// Whether the other end has gone, or the connection has failed.
  package var isOver: Bool { has(POLLHUP) || has(POLLERR) || has(POLLNVAL) }

  private func has(_ event: some BinaryInteger) -> Bool {
    entry.revents & Int16(truncatingIfNeeded: event) != 0
  }

  /// Waits until one of the descriptors is ready, or until the deadline.
  ///
  /// The wait also ends when a signal arrives: the caller checks again.
  package static func wait(
    for awaited: inout [WaitEntry], until deadline: Instant?
  ) throws(Errno) {
    var entries = awaited.map(\.entry)
    try ignoring(
      .interrupted,
      perform(.poll, retrying: false) {
        WormholeLibC.poll(&entries, nfds_t(entries.count), millisecondsLeft(until: deadline))
      })
    for index in awaited.indices { awaited[index].entry = entries[index] }
  }
}
