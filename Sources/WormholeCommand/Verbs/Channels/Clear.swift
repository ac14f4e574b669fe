import CommandLine
import PropertyLists
import SharedContainer
import Wormhole

extension Verb {
  static let clear = Verb(
    "clear", "take the value of a channel away",
    [Operand("CHANNEL", .optional, .names(.channels))], [.all, .erase, .power],
    [
      "Whoever watches the channel hears of it. The version goes on, so that nobody mistakes a "
        + "later value for an earlier one. A channel without a value stays as it is.",
      "The value before may still be read on the disk, where one is kept for the case that the "
        + "latest is damaged. With --erase nothing is kept, nor what was damaged and set aside, of "
        + "a channel that is clear already either. What others have read is beyond it.",
      "With --json, writes each channel with the version that it has then.",
    ],
    [
      Example("wormhole clear speed", "one channel"),
      Example("wormhole clear --all", "all channels"),
      Example("wormhole clear password --erase", "and keep nothing of it"),
    ]
  ) { invocation in
    guard invocation.operands.isEmpty == invocation.has(.all) else {
      throw Failure.usage("cannot clear: give either a channel or --all")
    }
    let hole = try invocation.open(create: false)
    let names = invocation.has(.all) ? try hole.channels() : invocation.operands
    var failure: WormholeError?
    for name in names {
      let channel = hole.channel(name, of: PropertyListValue.self)
      let version: Int
      do throws(WormholeError) {
        version = try channel.clear(
          erasing: invocation.has(.erase), durability: invocation.durability)
      } catch {
        // The others are cleared all the same.
        failure = failure ?? error
        continue
      }
      try invocation.output.ofDone.write(change: nil, version, of: name)
    }
    if let failure { throw failure }
    return 0
  }

  static let list = Verb(
    "list", "list the channels that hold a value", [], [.namePrefix],
    [
      "Prints one name a line, in order. With --json, one object a line, as 'get' writes it; of a "
        + "channel that is damaged it says why."
    ],
    [
      Example("wormhole list", "all channels"),
      Example("wormhole list --prefix seat.", "those whose names begin so"),
    ]
  ) { invocation in
    let hole = try invocation.open(create: false) { $0.isForReading = true }
    for name in try hole.channels(prefix: invocation.value(.namePrefix) ?? "") {
      try invocation.output.list(name, in: hole)
    }
    return 0
  }
}

extension Output {
  /// What may be wrong with one channel, and says nothing of the others.
  private static let damages: Set<WormholeError.Code> = [
    .damaged, .refused, .permissionDenied, .tooLarge,
  ]

  fileprivate func list(
    _ name: String, in hole: Wormhole
  ) throws {
    var damage: String?
    do {
      if isJSON {
        guard let snapshot = try hole.unshaped(name), snapshot.value != nil else { return }
        return try write(object: snapshot)
      }
      guard let metadata = try hole.channel(name, of: PropertyListValue.self).metadata,
        !metadata.isCleared
      else { return }
    } catch let error as WormholeError where Self.damages.contains(error.code) {
      damage = error.reason
    }
    try isJSON
      ? write(.channel, ["channel": .string(name), "damage": damage.map { .string($0) }])
      : write(line: name.inOneLine())
  }
}

extension Option {
  static let all = Option("all", nil, "all channels")
  static let erase = Option("erase", nil, "keep nothing of what was there")
  static let namePrefix = Option("prefix", .any("P"), "only names that begin with P")
}
