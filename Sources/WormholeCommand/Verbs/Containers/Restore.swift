import FoundationEssentials
import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let restore = Verb(
    "restore", "put the content of a dump into a container", [], [.replacing, .power],
    [
      "Reads the lines that 'dump' has written from standard input, and puts each into the "
        + "container: a channel's value as a new version, so that versions continue and never go "
        + "back; the keys of a suite; and each message behind the messages that wait, in the order "
        + "of the dump, marked as redelivered. A message or a value whose time to live is over is "
        + "left out; another value expires at the moment that the dump states. A delayed message "
        + "keeps its time, and a dead letter becomes a dead letter again.",
      "A channel that has a value is not replaced: the names at the beginning of the dump are "
        + "checked first, and if one of them has a value, nothing is done. A key of a suite is not "
        + "replaced either. With --replace, both are; channels and keys that the dump does not "
        + "name stay as they are.",
      "A line that cannot be used ends the command: the error states the number of the line. "
        + "Nothing after the line is done, and everything before it is.",
      "With --power, values, suites, messages and their files are synced.",
      "At the end, the numbers in the last line are compared with the channels, suites and "
        + "messages that the dump has, also expired ones: a difference is an error that states "
        + "what is missing, and everything that was restored stays.",
    ],
    [
      Example("wormhole restore <cinema.dump", "put a dump into the container"),
      Example("wormhole restore --replace <cinema.dump", "replace channels that have values"),
    ]
  ) { invocation in
    let folder = RestoreFolder()
    try Interruption.prepare { folder.remove() }
    defer { folder.remove() }
    let container = try invocation.open(create: true) { options in
      // Suites are written as the container's options state.
      if let durability = invocation.durability { options.durability = durability }
    }
    try EnclosingLock.refuseChange(of: container, "restore")
    var restore = Restore(container, invocation, folder)
    return try restore.run()
  }
}

extension Option {
  static let replacing = Option("replace", nil, "replace channels that have a value")
}

/// Puts a dump into a container, line by line.
private struct Restore {
  private let container: SharedContainer
  private let output: Output
  private let isReplacing: Bool
  private let durability: Durability?
  private let progress: Progress
  private var counts = (channels: 0, suites: 0, messages: 0)
  /// The lines of the dump, with those of values and messages that have expired.
  private var lines = (channels: 0, suites: 0, messages: 0)
  /// The counts of the last line.
  private var end: [Int]?
  /// The message whose file is being collected, and the bytes that are missing.
  private var pending: (message: PortableMessage, missing: Int)?
  /// The path of its file; nil if the message has expired, and is left out.
  private var path: String?
  private let folder: RestoreFolder

  /// A line is longer than its value, whose data are in base64.
  private static let longestLine = 1 << 28

  init(_ container: SharedContainer, _ invocation: Invocation, _ folder: RestoreFolder) {
    (self.container, self.folder, output) = (container, folder, invocation.output)
    isReplacing = invocation.has(.replacing)
    durability = invocation.durability
    progress = Progress(output)
  }

  mutating func run() throws -> Int32 {
    var reader = LineReader()
    var number = 0
    while let lines = try reader.next(limit: Self.longestLine) {
      for line in lines {
        number += 1
        do {
          try put(line)
        } catch let problem as DumpProblem {
          progress.clear()
          throw Failure(
            .data, "invalidValue", "cannot restore line \(number): \(problem.reason)",
            ["line": .integer(Int64(number))])
        } catch var error as WormholeError {
          progress.clear()
          error.reason = "line \(number): \(error.reason)"
          throw error
        }
        progress.show("\(number) lines")
      }
    }
    if let pending {
      throw Failure(
        .data, "invalidValue",
        "cannot restore message '\(pending.message.id)': the dump ends inside its file")
    }
    try checkEnd()
    return 0
  }

  private func checkEnd() throws {
    let found = [counts.channels, counts.suites, counts.messages]
    progress.finish(
      "\(found[0]) channels, \(found[1]) suites and \(found[2]) messages were restored")
    guard let end else {
      return output.tell("the dump has no last line, and may be incomplete")
    }
    var differences: [String] = []
    let present = [
      (lines.channels, "channels"), (lines.suites, "suites"), (lines.messages, "messages"),
    ]
    for (stated, (count, noun)) in zip(end, present) where stated != count {
      differences.append(
        count < stated
          ? "\(stated - count) of \(stated) \(noun) are missing"
          : "it has \(count) \(noun) in place of \(stated)")
    }
    guard !differences.isEmpty else { return }
    throw Failure(
      .data, "invalidValue",
      "cannot restore the whole dump: by its last line, \(differences.joined(separator: ", ")); "
        + "everything else was restored")
  }

  private mutating func put(_ bytes: [UInt8]) throws {
    guard !bytes.isEmpty else { return }
    let line = try DumpLine(bytes)
    if case .piece(let data) = line { return try add(data) }
    guard pending == nil else {
      throw DumpProblem("the file of the message before is incomplete")
    }
    guard end == nil else { throw DumpProblem("a line after the last one") }
    switch line {
    case .begin, .piece: break
    case .names(let names): if !isReplacing { for name in names { try checkFree(name) } }
    case .channel(let name, let value, let until):
      lines.channels += 1
      try put(name, value, until)
    case .suite(let name, let values):
      lines.suites += 1
      try put(suite: name, values)
    case .message(let message):
      lines.messages += 1
      try put(message)
    case .end(let counts): end = counts
    }
  }

  // MARK: Channels and settings

  private func checkFree(_ name: String) throws {
    let channel = container.channel(name, of: PropertyListValue.self)
    if let metadata = try channel.metadata, !metadata.isCleared { throw Self.taken(name) }
  }

  private static func taken(_ name: String) -> WormholeError {
    WormholeError(
      .conflict, "restore channel", name, because: "the channel has a value",
      hint: "replace the values of such channels with --replace, or restore into another container")
  }

  private mutating func put(
    _ name: String, _ value: PropertyListValue, _ until: Date?
  ) throws {
    if let until, until <= Date(sinceEpochNow: Clocks.sinceEpoch) { return }
    let channel = container.channel(name, of: PropertyListValue.self)
    if isReplacing {
      try channel.put(value, until: until, durability: durability)
    } else if let until {
      let metadata = try channel.metadata
      guard metadata?.isCleared != false else { throw Self.taken(name) }
      try channel.put(
        value, until: until, ifVersion: metadata?.version ?? 0, durability: durability)
    } else {
      _ = try channel.updateVersionIfNeeded(durability: durability) { present in
        guard present == nil else { throw Self.taken(name) }
        present = value
        return .commit
      }
    }
    counts.channels += 1
  }

  private mutating func put(suite name: String, _ values: [String: PropertyListValue]) throws {
    try container.defaults(name).update { present in
      if !self.isReplacing, let key = values.keys.sorted().first(where: { present[$0] != nil }) {
        throw WormholeError(
          .conflict, "restore suite", name, because: "the key '\(key)' has a value",
          hint: "replace the values of such keys with --replace")
      }
      present.merge(values) { $1 }
    }
    counts.suites += 1
  }

  // MARK: Messages

  private mutating func put(_ message: PortableMessage) throws {
    let hasExpired = message.expires.map { $0 <= Date(sinceEpochNow: Clocks.sinceEpoch) } ?? false
    guard let file = message.file else {
      guard !hasExpired else { return }
      try container.peer(message.to, from: message.from).restore(
        message, file: nil, durability: durability ?? .process)
      counts.messages += 1
      return
    }
    // The pieces of an expired message's file are left out, too.
    path = nil
    if !hasExpired { path = try folder.makeFile(file.name) }
    pending = (message, file.size)
    if file.size == 0 { try finishFile() }
  }

  private mutating func add(_ data: Data) throws {
    guard let (message, missing) = pending else { throw DumpProblem("a piece of no file") }
    guard data.count <= missing else { throw DumpProblem("the file has too many bytes") }
    if let path {
      try naming(
        "write", path, Descriptor.open(path: path, [.writeOnly, .append]).writeFully(Array(data)))
    }
    pending = (message, missing - data.count)
    if missing == data.count { try finishFile() }
  }

  private mutating func finishFile() throws {
    guard let (message, _) = pending else { return }
    pending = nil
    guard let path else { return }
    try container.peer(message.to, from: message.from).restore(
      message, file: path, durability: durability ?? .process)
    counts.messages += 1
  }
}

/// The temporary directory with the file of the message that is being restored.
///
/// A signal may remove the directory at any moment: so each file is made completely before the
/// removal, or not at all.
final class RestoreFolder: Sendable {
  private struct State {
    var path: String?
    var isRemoved = false
  }

  private let state = Monitor(State())

  /// Makes an empty file with the name that the receiver gets; returns its path.
  ///
  /// After the removal of the directory, the call throws.
  func makeFile(_ name: String) throws -> String {
    let parent = Processes.environment("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
    return try naming("make a file in", parent) { () throws(Errno) in
      try state.withLock { state throws(Errno) in
        if state.isRemoved { throw .interrupted }
        let place =
          state.path ?? "\(parent)/wormhole-restore-\(Processes.current)-\(Clocks.sinceBoot)"
        if state.path == nil {
          try Descriptor.makeDirectory(path: place, mode: 0o700)
          state.path = place
        }
        let folder = try Descriptor.open(path: place, .readOnlyDirectory)
        _ = try folder.open(name, .writeOnlyNew, mode: 0o600)
        return "\(place)/\(name)"
      }
    }
  }

  /// Removes the directory, with an incomplete file; a second call does nothing.
  func remove() {
    state.withLock { state in
      state.isRemoved = true
      guard let place = state.path.take(),
        let folder = try? Descriptor.open(path: place, .readOnlyDirectory)
      else { return }
      for name in (try? folder.names()) ?? [] { try? folder.unlink(name) }
      try? Descriptor.removeDirectory(path: place)
    }
  }
}
