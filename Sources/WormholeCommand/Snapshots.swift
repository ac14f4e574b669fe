import Wormhole
import WormholeCommandLine
import WormholePropertyLists

/// Output of a channel's value.
extension Output {
  /// Writes one object: the value with its metadata.
  func write(object snapshot: UntypedSnapshot) throws {
    try write(.channel, snapshot.fields)
  }

  /// Writes the present value of a channel, and its version.
  func write(change value: PropertyListValue?, _ version: Int, of channel: String) throws {
    guard isJSON else { return explain("channel '\(channel)' has version \(version)") }
    try write(
      .change,
      ["channel": .string(channel), "version": .integer(Int64(version)), "value": value])
  }
}

extension UntypedSnapshot {
  /// The fields of the object that `--json` writes.
  var fields: [String: PropertyListValue?] {
    [
      "channel": .string(channel), "version": .integer(Int64(metadata.version)), "value": value,
      "cleared": .boolean(value == nil), "writer": .string(metadata.writer),
      "writtenAt": DateText.format(metadata.writtenAt).map { .string($0) },
      "recovered": .boolean(metadata.isRecovered), "home": metadata.home.map { .string($0) },
      "expiresAt": metadata.expiresAt.flatMap { DateText.format($0) }.map { .string($0) },
      "confirmedAt": metadata.confirmedAt.flatMap { DateText.format($0) }.map { .string($0) },
    ]
  }

  /// The line of a channel without a value.
  private static let cleared = "(cleared)"

  /// The value on one line, other than the line of a channel without a value.
  var inOneLine: String {
    get throws {
      if case .string(Self.cleared)? = value { return "\"\(Self.cleared)\"" }
      return try value?.inOneLine() ?? Self.cleared
    }
  }
}

extension WrittenLine {
  /// A line with the value, and the channel's name first in the case of several channels.
  init(_ snapshot: UntypedSnapshot, named: Bool) {
    self.init(snapshot.channel, .channel) { snapshot.fields }
    plain = {
      let value = try snapshot.inOneLine
      return named ? "\(try snapshot.channel.inOneLine())\t\(value)" : value
    }
    (value, version) = (snapshot.value, snapshot.metadata.version)
    sender = snapshot.metadata.writer
  }
}
