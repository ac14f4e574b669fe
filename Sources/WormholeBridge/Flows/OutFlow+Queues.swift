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
