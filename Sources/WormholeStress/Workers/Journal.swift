import SharedContainer
import Syscalls

/// What one worker has done, in the order in which it did so, through all of its lives.
///
/// Each entry is one line, written by one call: what stands there has happened, whatever becomes of
/// its writer. An entry is begun before the call it tells of, and ended after that.
final class Journal: Sendable {
  /// What an entry tells.
  enum Event: Equatable, Sendable {
    /// A process begins, and what is to befall it by itself.
    case life(number: Int, faults: String)
    /// A call begins; the rest says what it is.
    case begin(Operation)
    /// The call that was begun last has ended.
    case end(Result)
    /// A message has come.
    case got(token: String, from: String, isRedelivered: Bool)
    /// A message was acknowledged, or the call to do so has failed.
    case acknowledged(token: String, isSure: Bool)
    /// A state that somebody has told has come.
    case heard(token: String, from: String)
    /// A sender was told how a message has ended.
    case told(token: String, end: String)
    /// A question has come.
    case asked(token: String)
    /// The body of an access begins.
    case inside(token: String)
    /// It is about to end: what it found in each of its files, and what it leaves there; nothing if
    /// it has failed.
    case outside(token: String, before: [SharedFiles.Content], after: [SharedFiles.Content])
    /// Something was seen that must not be.
    case broken(String)
    /// How many descriptors and threads there are, how many of these are no queue's, and how much
    /// memory, in KiB.
    case holding(descriptors: Int, threads: Int, ownThreads: Int, memory: Int)
  }

  /// A call, and what it is made with.
  enum Operation: Equatable, Sendable {
    case put(channel: String, token: String, expected: Int?)
    case clear(channel: String)
    case read(channel: String)
    case add(channel: String)
    case send(to: String, tokens: [String])
    case sendFile(to: String, token: String)
    case cancel(token: String)
    case ask(of: String, token: String)
    /// Tells another a state.
    case tell(to: String, token: String)
    /// Puts or reads where somebody removes and replaces the directory.
    case stray(isRead: Bool)
    /// Reads and writes files that lie elsewhere.
    case access(token: String, uses: [SharedFiles.Use], takesOver: Bool)
    case leave
  }

  /// What has come of a call.
  enum Result: Equatable, Sendable {
    case done
    /// The version that there is now, and what is there; "-" for nothing.
    case version(Int, String)
    case number(Int)
    case truth(Bool)
    /// Nothing has happened.
    case refused(String)
    /// It is not known whether anything has happened.
    case failed(String)

    var isRefusal: Bool {
      if case .refused = self { true } else { false }
    }
  }

  private let file: Descriptor

  init(_ path: String) throws {
    file = try Descriptor.open(path: path, [.writeOnly, .create, .append], mode: 0o600)
  }

  /// Writes an entry down.
  func note(_ event: Event) {
    let line = "\(Instant.now.nanoseconds)\t\(event.words.joined(separator: "\t"))\n"
    // Without its journal a worker proves nothing.
    do {
      try Array(line.utf8).withUnsafeBytes { try file.writeFully($0) }
    } catch {
      Processes.exitAtOnce(Worker.lostItsJournal)
    }
  }

  /// An entry that was read, and when it was made.
  struct Entry: Sendable {
    let time: Int64
    let event: Event
  }

  /// All entries of a journal; a line that its writer's death has cut off is left out.
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
