import PropertyLists
import SharedContainer
import Wormhole

extension Verb {
  static let clear = Verb(
    "clear", "take the value of a channel away",
    [Operand("CHANNEL", .optional, .channels)], [.all, .power],
    [
      "Whoever watches the channel hears of it. The version goes on, so that nobody mistakes a "
        + "later value for an earlier one. A channel without a value stays as it is.",
      "With --json, writes the version that each channel has then.",
    ],
    [
      Example("wormhole clear speed", "one channel"),
      Example("wormhole clear --all", "all channels"),
    ]
  ) { invocation in
    guard invocation.operands.isEmpty == invocation.has(.all) else {
      throw Failure.usage("cannot clear: give either a channel or --all")
    }
    let hole = try invocation.open(create: false)
    let names = invocation.has(.all) ? try hole.channels() : invocation.operands
    for name in names {
      let channel = hole.channel(name, of: PropertyListValue.self)
      let version = try channel.clear(durability: invocation.durability)
      try invocation.output.write(version: version, of: name)
    }
    return 0
  }

  static let list = Verb(
    "list", "list the channels that hold a value", [], [.namePrefix],
    [
      "Prints one name a line, in order. With --json, one object a line: name, version, when it "
        + "was sent and by whom; or, of a channel that is damaged, the reason."
    ],
    [
      Example("wormhole list", "all channels"),
      Example("wormhole list --prefix seat.", "those whose names begin so"),
    ]
  ) { invocation in
    let hole = try invocation.open(create: false) { $0.isForReading = true }
    for name in try hole.channels(prefix: invocation.value(.namePrefix) ?? "") {
      try invocation.output.list(name, hole.channel(name, of: PropertyListValue.self))
    }
    return 0
  }
}

extension Output {
  fileprivate func list(
    _ name: String, _ channel: Wormhole.Channel<PropertyListValue>
  ) throws {
    var object: [String: PropertyListValue] = ["channel": .string(name)]
    do throws(WormholeError) {
      guard let metadata = try channel.metadata, !metadata.isCleared else { return }
      object["version"] = .integer(Int64(metadata.version))
      object["sent"] = DateText.format(metadata.sent).map { .string($0) }
      object["from"] = .string(metadata.from)
      object["recovered"] = .boolean(metadata.isRecovered)
    } catch {
      guard error.code == .damaged else { throw error }
      object["damaged"] = .string(error.reason)
    }
    try isJSON ? write(object) : write(line: name.inOneLine())
  }
}

extension Option {
  static let all = Option("all", nil, "all channels")
  static let namePrefix = Option("prefix", .any("P"), "only names that begin with P")
}
