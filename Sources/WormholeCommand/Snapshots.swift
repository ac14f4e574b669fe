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
      ])
  }

  /// Writes a line, with the channel's name first in the case of several channels.
  func write(line snapshot: UntypedSnapshot, named: Bool) throws {
    if isJSON { return try write(object: snapshot) }
    let value = try snapshot.value.map { try $0.inOneLine() } ?? "(cleared)"
    try write(line: named ? "\(try snapshot.channel.inOneLine())\t\(value)" : value)
  }

  /// Writes the present value of a channel, and its version.
  func write(change value: PropertyListValue?, _ version: Int, of channel: String) throws {
    guard isJSON else { return explain("channel '\(channel)' has version \(version)") }
    try write(
      .change,
      ["channel": .string(channel), "version": .integer(Int64(version)), "value": value])
  }
}
