import PropertyLists
import Wormhole

/// How what a channel holds is written.
extension Output {
  /// One object: the value with its metadata.
  func write(object snapshot: Wormhole.Unshaped) throws {
    var object: [String: PropertyListValue] = [
      "channel": .string(snapshot.channel), "version": .integer(Int64(snapshot.metadata.version)),
      "from": .string(snapshot.metadata.from), "recovered": .boolean(snapshot.metadata.isRecovered),
      "cleared": .boolean(snapshot.value == nil),
    ]
    object["sent"] = DateText.format(snapshot.metadata.sent).map { .string($0) }
    object["value"] = snapshot.value
    try write(object)
  }

  /// One line, begun with the channel's name where several are told of.
  func write(line snapshot: Wormhole.Unshaped, named: Bool) throws {
    if isJSON { return try write(object: snapshot) }
    let value = try snapshot.value.map { try $0.inOneLine() } ?? "(cleared)"
    try write(line: named ? "\(try snapshot.channel.inOneLine())\t\(value)" : value)
  }

  /// That a channel has a version now.
  func write(version: Int, of channel: String) throws {
    guard isJSON else { return explain("channel '\(channel)' has version \(version)") }
    try write(["channel": .string(channel), "version": .integer(Int64(version))])
  }
}
