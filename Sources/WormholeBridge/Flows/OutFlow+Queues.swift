internal import Wormhole
package import WormholeContainerStorage

/// The messages of queues that a flow carries; see ``QueueTraffic``.
package protocol FlowJobs: AnyObject {
  /// The entries without a number: messages lent to a machine, and ends of messages that the
  /// machine has lent.
  func entries(for machine: String) throws(WormholeError) -> [FlowEntry]
  /// The entries have numbers, durably.
  func bound(_ entries: [FlowEntry])
  /// The file of a lent message; nil if the message is another worker's by now.
  func body(of entry: FlowEntry) -> [UInt8]?
  /// The home has the end of a message.
  func settle(_ file: String, of queue: String) throws(WormholeError)
  /// Another machine's workers have ended with a message.
  func end(_ entry: FlowEntry, by machine: String) throws(WormholeError)
}

/// Messages from local programs to a queue of another machine.
extension OutFlow {
  /// The messages that wait at the proxy of a queue.
  ///
  /// A message with a file, or above the largest size, becomes a dead letter here.
  func messages(toQueue proxy: Proxy) throws(WormholeError) -> [FlowEntry] {
    var entries: [FlowEntry] = []
    for name in try proxy.waiting(atMost: Self.mostEntries) {
      if isStranger(name) {
        strangers.append((proxy, name))
        continue
      }
      let entry = FlowEntry(.message, to: proxy.resident, name)
      guard !isBound(entry), let sizes = try proxy.sizes(of: name) else { continue }
      if sizes.file != nil || sizes.message > LentQueue.largestMessage {
        if try proxy.claim(name) {
          try proxy.giveUp(
            name,
            "the queue's home is another machine, to which no files and no messages of more than "
              + "\(LentQueue.largestMessage) bytes go")
        }
        continue
      }
      entries.append(entry)
    }
    return entries
  }
}
