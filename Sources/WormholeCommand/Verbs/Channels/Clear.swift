import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists

extension Verb {
  static let clear = Verb(
    "clear", "remove a channel's value",
    [Operand("CHANNEL", .optional, .names(.channels))], [.all, .erase, .power],
    [
      "Watchers of the channel are notified. The versions continue, so that no later value is "
        + "mistaken for an earlier value. A channel without a value stays unchanged.",
      "If the disk does not take the change, the previous value remains readable in the "
        + "channel's file kept.plist, a copy in case the latest value is damaged; this command "
        + "then names the file. With --erase, no copy remains, and no damaged file that was set "
        + "aside, even if the channel is already clear. "
        + "--erase cannot erase copies that other programs have read.",
      "With --json, writes each channel with its new version.",
    ],
    [
      Example("wormhole clear speed", "clear one channel"),
      Example("wormhole clear --all", "clear all channels"),
      Example("wormhole clear password --erase", "one channel, with all copies of its value"),
    ]
  ) { invocation in
    guard invocation.operands.isEmpty == invocation.has(.all) else {
      throw Failure.usage("cannot clear: give either a channel or --all")
    }
    let container = try invocation.open(create: false)
    let names = invocation.has(.all) ? try container.channels() : invocation.operands
    var failure: WormholeError?
    var reports = ChangeReports(invocation.output)
    var kept: [(name: String, path: String)] = []
    for name in names {
      let channel = container.channel(name, of: PropertyListValue.self)
      let version: Int
      do throws(WormholeError) {
        version = try channel.clear(
          erasing: invocation.has(.erase), durability: invocation.durability)
      } catch {
        // The remaining channels are cleared all the same.
        failure = failure ?? error
        continue
      }
      reports.write { try $0.write(change: nil, version, of: name) }
    }
    // Usually the clear becomes the previous value, in place of an earlier value.
    Container.finishSaving()
    for name in names where !invocation.has(.erase) {
      let channel = container.channel(name, of: PropertyListValue.self)
      if let path = channel.keptFile { kept.append((name, path)) }
    }
    invocation.output.tell(kept: kept)
    if let failure { throw failure }
    try reports.finish()
    return 0
  }

  static let list = Verb(
    "list", "list the channels that have a value", [], [.namePrefix],
    [
      "Prints one name per line, in order. With --json, writes one object per line, in the form "
        + "of 'get'; the object of a damaged channel contains the cause of the damage."
    ],
    [
      Example("wormhole list", "list all channels"),
      Example("wormhole list --prefix seat.", "the channels whose names begin with 'seat.'"),
    ]
  ) { invocation in
    let container = try invocation.open(create: false) { $0.isForReading = true }
    var listing = Listing(
      invocation.output, ["CHANNEL", "VERSION", "WRITTEN", "WRITER"], numbers: [1])
    for name in try container.channels(prefix: invocation.value(.namePrefix) ?? "") {
      try invocation.output.list(name, in: container, &listing)
    }
    try listing.finish()
    return 0
  }
}

extension Output {
  /// Names the file in which an earlier value of a cleared channel remains.
  fileprivate func tell(kept: [(name: String, path: String)]) {
    guard let one = kept.first else { return }
    tell(
      kept.count == 1
        ? "an earlier value of '\(one.name)' remains in '\(one.path)' until later values "
          + "replace it; remove it with 'wormhole clear \(one.name.shellWord) --erase'"
        : "earlier values of \(kept.count) channels remain in their files kept.plist until later "
          + "values replace them; remove them with 'wormhole clear --all --erase'")
  }

  /// Errors that affect only a single channel.
  private static let damages: Set<WormholeError.Code> = [
    .damaged, .refused, .permissionDenied, .tooLarge,
  ]

  fileprivate func list(
    _ name: String, in container: SharedContainer, _ listing: inout Listing
  ) throws {
    var (damage, found): (String?, Metadata?)
    do {
      if isJSON {
        guard let snapshot = try container.unshaped(name), snapshot.value != nil else { return }
        return try write(object: snapshot)
      }
      guard let metadata = try container.channel(name, of: PropertyListValue.self).metadata,
        !metadata.isCleared
      else { return }
      found = metadata
    } catch let error as WormholeError where Self.damages.contains(error.code) {
      damage = error.reason
    }
    try isJSON
      ? write(.channel, ["channel": .string(name), "damage": damage.map { .string($0) }])
      : listing.add(
        [
          .init(name.inOneLine()),
          .init(found.map { "\($0.version)" } ?? "damaged", damage == nil ? .plain : .bad),
          .init(found.flatMap { DateText.format($0.writtenAt, fraction: false) } ?? "-"),
          .init((found?.writer ?? "-").inOneLine()),
        ], bare: name.inOneLine())
  }
}

extension Option {
  static let all = Option("all", nil, "all channels")
  static let erase = Option("erase", nil, "also remove all copies of the value")
}
