internal import WormholePropertyLists
package import WormholeSyscalls

/// A consumer of a stream: its position, and its client's request for messages.
package final class HubConsumer {
  package struct Pull {
    package let reply: String
    var missing: Int
    let expires: Instant
    package internal(set) var nextBeat: Instant
  }

  package let name: String
  let stream: String
  private let filter: String
  /// The numbers of the undelivered messages that the stream had at first.
  private var backlog: [Int] = []
  /// The number of the next message behind the backlog.
  private var next: Int
  package private(set) var deliveries = 0
  /// The number of the last message that was delivered.
  private(set) var last = 0
  package internal(set) var pull: Pull?

  /// Makes the consumer that a request describes; nil if the request is invalid.
  init?(_ request: HubMessage, of log: [HubMessage]) {
    let parts = request.apiParts
    guard parts.count > 4, let json = try? JSONPropertyList.decode(request.payload),
      let settings = json["config"], json["stream_name"]?.stringValue == parts[2]
    else { return nil }
    (stream, name) = (parts[2], parts[3])
    filter = parts[4...].joined(separator: ".")
    next = settings["opt_start_seq"]?.intValue ?? 1
    guard settings["deliver_policy"]?.stringValue == "last_per_subject" else { return }
    next = log.count + 1
    for (index, message) in log.enumerated() where message.subject.isSubject(of: filter) {
      if !log[(index + 1)...].contains(where: { $0.subject == message.subject }) {
        backlog.append(index + 1)
      }
    }
  }

  /// Returns the number of messages of the log that wait for the consumer.
  func pending(in log: [HubMessage]) -> Int {
    guard next <= log.count else { return backlog.count }
    return backlog.count + log[(next - 1)...].count { $0.subject.isSubject(of: filter) }
  }

  /// Takes the number of the next message, which counts as a delivery; nil if none waits.
  func takeNext(in log: [HubMessage]) -> Int? {
    guard let number = nextNumber(in: log) else { return nil }
    deliveries += 1
    last = number
    return number
  }

  private func nextNumber(in log: [HubMessage]) -> Int? {
    if !backlog.isEmpty { return backlog.removeFirst() }
    while next <= log.count {
      next += 1
      if log[next - 2].subject.isSubject(of: filter) { return next - 1 }
    }
    return nil
  }
}
