import WormholeContainerStorage
import WormholeSyscalls

/// The actions of one worker, in their order, through all of its processes.
///
/// Each entry is a single line, written by a single call: an event in the journal has happened,
/// even if its writer dies afterwards. An entry begins before the call that it describes, and ends
/// after the call.
final class Journal: Sendable {
  /// The content of an entry.
  enum Event: Equatable, Sendable {
    /// A process has started, with the faults that it injects into itself.
    case life(number: Int, faults: String)
    /// A call begins, with its arguments.
    case begin(Operation)
    /// The call that began last has ended.
    case end(Result)
    /// A message has arrived.
    case got(token: String, from: String, isRedelivered: Bool)
    /// A message was acknowledged, or the acknowledgement has failed.
    case acknowledged(token: String, isSure: Bool)
    /// A message of the shared queue has arrived.
    case tookJob(token: String, isRedelivered: Bool)
    /// A message of the shared queue was acknowledged, or the acknowledgement has failed.
    case endedJob(token: String, isSure: Bool)
    /// A context from another member has arrived.
    case heard(token: String, from: String)
    /// A sender was notified of the outcome of a message.
    case told(token: String, end: String)
    /// A request has arrived.
    case asked(token: String)
    /// The body of an access begins.
    case inside(token: String)
    /// The body of an access is about to end: the content found in each of its files, and the
    /// content left there; both are empty if the access has failed.
    case outside(token: String, before: [SharedFiles.Content], after: [SharedFiles.Content])
    /// A forbidden observation.
    case broken(String)
    /// The number of descriptors and threads, the number of threads that belong to no queue, and
    /// the memory in KiB.
    case holding(descriptors: Int, threads: Int, ownThreads: Int, memory: Int)
  }

  /// A call, with its arguments.
  enum Operation: Equatable, Sendable {
    case put(channel: String, token: String, expected: Int?)
    case clear(channel: String)
    case read(channel: String)
    case add(channel: String)
    case send(to: String, tokens: [String])
    case sendFile(to: String, token: String)
    case cancel(token: String)
    /// Sends a message to the queue that all workers share, with an ordering key or without.
    case job(token: String, key: String?)
    case ask(of: String, token: String)
    /// Sets a context for another member.
    case tell(to: String, token: String)
    /// Puts or reads a value of the channel whose directory is removed and replaced.
    case stray(isRead: Bool)
    /// Reads and writes files outside of the container.
    case access(token: String, uses: [SharedFiles.Use], takesOver: Bool)
    case leave
  }

  /// The result of a call.
  enum Result: Equatable, Sendable {
    case done
    /// The current version, and the token of its value; "-" for no value.
    case version(Int, String)
    case number(Int)
    case truth(Bool)
    /// The call had no effect.
    case refused(String)
    /// The effect of the call is unknown.
    case failed(String)

    var isRefusal: Bool {
      if case .refused = self { true } else { false }
    }
  }

  private let file: Descriptor

  init(_ path: String) throws {
    file = try Descriptor.open(path: path, [.writeOnly, .create, .append], mode: 0o600)
  }

  /// Writes an entry.
  func note(_ event: Event) {
    let line = "\(Instant.now.nanoseconds)\t\(event.words.joined(separator: "\t"))\n"
    // Without its journal a worker proves nothing.
    do {
      try file.writeFully(Array(line.utf8))
    } catch {
      Processes.exitAtOnce(Worker.lostItsJournal)
    }
  }

  /// An entry of a journal, with its time.
  struct Entry: Sendable {
    let time: Int64
    let event: Event
  }

  /// Returns all entries of a journal, without a last line that the writer's death has cut off.
  static func read(_ path: String) throws -> [Entry] {
    guard let file = try? Descriptor.open(path: path, [.readOnly]) else { return [] }
    var bytes = [UInt8](repeating: 0, count: try file.status().size)
    let count = try bytes.withUnsafeMutableBytes { try file.readFully(into: $0) }
    return bytes[..<count].split(separator: UInt8(ascii: "\n")).compactMap { line in
      let words = String(decoding: line, as: UTF8.self)
        .split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
      guard let time = words.first.flatMap({ Int64($0) }), let event = Event(words.dropFirst())
      else { return nil }
      return Entry(time: time, event: event)
    }
  }
}
