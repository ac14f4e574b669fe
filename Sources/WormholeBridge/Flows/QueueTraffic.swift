internal import Wormhole
package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The queues that a bridge carries, of the own machine and of others.
///
/// At the home, each machine with workers of a queue has one worker of the queue. Elsewhere, the
/// lent messages and the ends are in the queue's `away/`.
final class QueueTraffic: FlowJobs {
  /// A worker of a queue, for another machine.
  struct Lender: Hashable {
    let queue: String
    let machine: String
  }

  /// A queue whose home is another machine.
  struct BorrowedQueue {
    let machine: String
    let queue: WorkedQueue
    var look = WorkedQueue.Look()
    /// When the home was heard last.
    var heard: Instant
  }

  /// The operator's decisions about the queues of this machine.
  var entries: [String: QueueList.Entry] = [:]
  var unread = UnreadEntries()
  /// The queues of this machine that an operator has named.
  var own: Set<String> { Set(entries.filter { $0.value.heir == nil }.keys) }
  /// The own queues that are no proxies here, or no longer.
  var settled: Set<String> = []
  /// The own queues that the last heartbeat has left out.
  ///
  /// Other machines miss the queues' home, and would give back lent messages at once.
  var unstated: Set<String> = []
  /// Since when the own queues that are to move lend nothing more.
  var draining: [String: Instant] = [:]
  /// The queues that were given away, after the end of this machine's workers.
  var free: Set<String> = []
  /// The messages of other machines' heartbeats without a claim here.
  var late: [Lender: Set<String>] = [:]
  var lenders: [Lender: LentQueue] = [:]
  var worked: [String: BorrowedQueue] = [:]
  /// The homes of queues elsewhere, by the heartbeats.
  var homes: [String: String] = [:]
  /// The reasons for queues that are not carried.
  var conflicts: [String: String] = [:]
  /// How many ends have come too late, by queue.
  var refused: [String: Int] = [:]
  var nextLook = Instant(nanoseconds: 0)
  /// The machines whose flows may lack entries.
  private var news: Set<String> = []

  /// A machine gets no more messages of a queue at a time.
  static let largestRoom = 1024
  /// After so long without the home, a machine gives back the messages that no worker has begun.
  static let longestSilence = Duration.seconds(4)
  /// The longest time for which a move waits for the ends of lent messages.
  static let longestDrain = Duration.seconds(30)

  // MARK: Flows

  func note(_ machine: String) { news.insert(machine) }

  /// Whether entries may wait for a number; forgets the answer.
  func takeNews(of machine: String) -> Bool { news.remove(machine) != nil }

  func entries(for machine: String) throws(WormholeError) -> [FlowEntry] {
    var entries: [FlowEntry] = []
    for (lender, queue) in lenders where lender.machine == machine {
      entries += queue.fresh.map { FlowEntry(.job(FlowJob($0)), to: .queue(lender.queue), $0.name) }
    }
    for (name, one) in worked where one.machine == machine {
      for ended in one.look.ended {
        guard let origin = MessageOrigin(ended.origin), origin.machine == machine,
          let job = origin.job
        else {
          // The end cannot be reported.
          try settle(ended.file, of: name)
          continue
        }
        entries.append(
          FlowEntry(
            .worked(job, ended.end), to: .queue(name), origin.name, source: .worked(ended.file)))
      }
    }
    return entries
  }

  func bound(_ entries: [FlowEntry]) {
    var ids: Set<String> = []
    for entry in entries { if case .job(let job) = entry.kind { ids.insert(job.id) } }
    guard !ids.isEmpty else { return }
    for queue in lenders.values { queue.bound(ids) }
  }

  func body(of entry: FlowEntry) -> [UInt8]? {
    guard let job = entry.job else { return nil }
    for (lender, queue) in lenders where lender.queue == entry.receiver {
      if let bytes = queue.bytes(of: job.id) { return bytes }
    }
    return nil
  }

  func settle(_ file: String, of queue: String) throws(WormholeError) {
    guard let one = worked[queue] else { return }
    try one.queue.forget(file)
    worked[queue]?.look.ended.removeAll { $0.file == file }
  }

  func end(_ entry: FlowEntry, by machine: String) throws(WormholeError) {
    guard case .worked(let job, let end) = entry.kind else { return }
    let lender = lenders[Lender(queue: entry.receiver, machine: machine)]
    let isAccepted = try lender?.end(job.id, end) == true
    // Another machine may invent names.
    if !isAccepted, own.contains(entry.receiver) { refused[entry.receiver, default: 0] += 1 }
  }

  /// Ends the work: lent messages go back.
  func stop() {
    for queue in lenders.values { queue.stop() }
    for one in worked.values { one.queue.stop() }
    (lenders, worked) = ([:], [:])
  }
}

/// A machine's statement about the workers of a queue.
struct WorkerStatement: Equatable {
  /// The home of the queue, as the machine knows it.
  let home: String
  let room: Int
  /// The IDs of the messages without an end.
  let held: Set<String>
}

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
