import FoundationEssentials
import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists

extension Verb {
  static let dump = Verb(
    "dump", "write the content of a container as JSON lines", [], [.withMessages],
    [
      "Writes a first line with the form of the dump; the names of the channels that have a "
        + "value, a thousand in a line; a line for each of these channels, with the value, its "
        + "version, time and writer, and the moment at which it expires; a line for each suite of "
        + "settings; and a last line with the numbers of channels, suites and messages. With "
        + "--messages, also a line for each message that waits for a member or a queue, with its "
        + "headers, and for each dead letter; the file of a message follows in pieces, in base64.",
      "Values are JSON. Where JSON has no such type, a value is written as an object with the "
        + "keys type and value: data in base64, a date as text, a real that is not finite, and a "
        + "dictionary that has exactly these two keys.",
      "Each channel, each suite and each message is one that existed as a whole at one moment; "
        + "the container may be in use, and different channels may be of different moments. Not "
        + "written: presence and profiles, locks, accesses to files, requests and immediate "
        + "messages, contexts, outcomes, and messages that a receiver has claimed. A value that "
        + "cannot be read is reported and left out, and the exit status is then 65.",
    ],
    [
      Example("wormhole dump >cinema.dump", "channels and settings"),
      Example("wormhole dump --messages >cinema.dump", "waiting messages and dead letters too"),
      Example(
        "wormhole dump | wormhole --container copy restore", "copy into another container"),
    ]
  ) { invocation in
    let container = try invocation.open(create: false) { $0.isForReading = true }
    var dump = Dump(container, invocation.output)
    return try dump.write(messages: invocation.has(.withMessages))
  }
}

extension Option {
  static let withMessages = Option("messages", nil, "write waiting messages and dead letters too")
}

/// Writes a dump.
private struct Dump {
  private let container: SharedContainer
  private let output: Output
  private let progress: Progress
  private var counts = (channels: 0, suites: 0, messages: 0)
  private var isWhole = true
  /// Lines are collected, because each write of a short line costs a system call.
  private var buffer: [UInt8] = []

  private static let bufferSize = 1 << 16
  private static let namesInLine = 1000
  /// The bytes of a file in a line; a multiple of three, so that each piece is whole base64.
  private static let pieceSize = 48 << 10

  init(_ container: SharedContainer, _ output: Output) {
    (self.container, self.output) = (container, output)
    progress = Progress(output)
  }

  mutating func write(messages: Bool) throws -> Int32 {
    try write([
      "wormhole": .integer(Int64(DumpLine.version)), "container": .string(container.storage.path),
    ])
    try writeChannels()
    try writeSuites()
    if messages { try writeMessages() }
    try write([
      "end": .array([counts.channels, counts.suites, counts.messages].map { .integer(Int64($0)) })
    ])
    try flush()
    progress.finish(
      "\(counts.channels) channels, \(counts.suites) suites and \(counts.messages) messages were "
        + "written")
    return isWhole ? 0 : ExitCode.data.rawValue
  }

  private mutating func write(_ object: [String: PropertyListValue]) throws {
    let line = try JSONPropertyList.encode(.dictionary(object), limits: DumpLine.limits)
    buffer += Array(line.utf8) + [UInt8(ascii: "\n")]
    if buffer.count >= Self.bufferSize { try flush() }
  }

  private mutating func flush() throws {
    try output.write(buffer)
    buffer.removeAll(keepingCapacity: true)
  }

  /// Makes a line; a value that cannot be read is reported and left out.
  ///
  /// The caller writes the line: a refused write is not about the value, and ends the dump.
  ///
  /// - Returns: nil for no line.
  private mutating func reading(
    _ body: (SharedContainer) throws -> [String: PropertyListValue]?
  ) throws -> [String: PropertyListValue]? {
    do {
      return try body(container)
    } catch let error as WormholeError
      where [.damaged, .refused, .permissionDenied, .tooLarge, .typeMismatch].contains(error.code)
    {
      isWhole = false
      output.tell(Failure(error))
      return nil
    }
  }

  private mutating func writeChannels() throws {
    let names = try container.channels().filter(mayHaveValue)
    var rest = names[...]
    while !rest.isEmpty {
      try write(["names": .array(rest.prefix(Self.namesInLine).map { .string($0) })])
      rest = rest.dropFirst(Self.namesInLine)
    }
    for name in names {
      if let line = try reading({ try Self.line(of: name, in: $0) }) {
        try write(line)
        counts.channels += 1
      }
      progress.show("\(counts.channels) of \(names.count) channels")
    }
  }

  /// A cleared or expired channel has no line, and its name must not hold up a restore.
  private func mayHaveValue(_ name: String) -> Bool {
    let metadata = try? container.channel(name, of: PropertyListValue.self).metadata
    return metadata?.isCleared != true
  }

  /// Returns the line of a channel; nil for a channel without a value, or removed in the meantime.
  private static func line(
    of name: String, in container: SharedContainer
  ) throws -> [String: PropertyListValue]? {
    guard let snapshot = try container.unshaped(name), let value = snapshot.value else {
      return nil
    }
    var object: [String: PropertyListValue] = [
      "channel": .string(name), "value": DumpValue.written(value),
      "version": .integer(Int64(snapshot.metadata.version)),
      "writer": .string(snapshot.metadata.writer),
    ]
    object["expiresAt"] = snapshot.metadata.expiresAt.flatMap { DateText.format($0) }.map {
      .string($0)
    }
    object["writtenAt"] = DateText.format(snapshot.metadata.writtenAt).map { .string($0) }
    return object
  }

  private mutating func writeSuites() throws {
    for name in try container.suiteNames() {
      let line = try reading { container in
        let values = try container.defaults(name).dictionaryRepresentation()
        guard !values.isEmpty else { return nil }
        return [
          "suite": .string(name), "values": .dictionary(values.mapValues(DumpValue.written)),
        ]
      }
      guard let line else { continue }
      try write(line)
      counts.suites += 1
    }
  }

  private mutating func writeMessages() throws {
    var dump = self
    try container.forEachPortableMessage { message, file in
      try dump.write(message.dumped)
      try file?.forEachPiece(of: Self.pieceSize) { piece in
        try dump.write(["piece": .string(piece.base64EncodedString())])
      }
      dump.counts.messages += 1
      dump.progress.show("\(dump.counts.messages) messages")
    } failure: { error in
      dump.isWhole = false
      dump.output.tell(Failure(error))
    }
    self = dump
  }
}
