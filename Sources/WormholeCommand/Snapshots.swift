import Wormhole
import WormholeCommandLine
import WormholePropertyLists

/// Output of a channel's value.
extension Output {
  /// Writes one object: the value with its metadata.
  func write(object snapshot: UntypedSnapshot) throws {
    try write(
      .channel,
      [
        "channel": .string(snapshot.channel),
        "version": .integer(Int64(snapshot.metadata.version)), "value": snapshot.value,
        "cleared": .boolean(snapshot.value == nil), "writer": .string(snapshot.metadata.writer),
        "writtenAt": DateText.format(snapshot.metadata.writtenAt).map { .string($0) },
        "recovered": .boolean(snapshot.metadata.isRecovered),
        "home": snapshot.metadata.home.map { .string($0) },
        "expiresAt": snapshot.metadata.expiresAt.flatMap { DateText.format($0) }.map {
          .string($0)
        },
        "confirmedAt": snapshot.metadata.confirmedAt.flatMap { DateText.format($0) }.map {
          .string($0)
        },
      ])
  }

  /// Writes a line, with the channel's name first in the case of several channels.
  func write(line snapshot: UntypedSnapshot, named: Bool) throws {
    if isJSON { return try write(object: snapshot) }
    let value = try snapshot.value.map(distinct) ?? Self.cleared
    try write(line: named ? "\(try snapshot.channel.inOneLine())\t\(value)" : value)
  }

  /// The line of a channel without a value.
  private static let cleared = "(cleared)"

  /// Returns the value on one line, other than the line of a channel without a value.
  private func distinct(_ value: PropertyListValue) throws -> String {
    if case .string(Self.cleared) = value { return "\"\(Self.cleared)\"" }
    return try value.inOneLine()
  }

  /// Writes the present value of a channel, and its version.
  func write(change value: PropertyListValue?, _ version: Int, of channel: String) throws {
    guard isJSON else { return explain("channel '\(channel)' has version \(version)") }
    try write(
      .change,
      ["channel": .string(channel), "version": .integer(Int64(version)), "value": value])
  }
}
