import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists

extension Verb {
  static let remove = Verb(
    "remove", "remove an unused channel, member, queue or suite",
    [
      Operand("KIND", .one, .words(Removable.allCases.map(\.rawValue))),
      Operand("NAME", .one, .names(.removable)),
    ], [],
    [
      "KIND is channel, member, queue or suite. Removes NAME permanently, with all data stored for "
        + "it. A process that uses NAME at that moment loses nothing: its write creates the name "
        + "again.",
      "Watchers of a channel or a suite are notified that it is clear. Versions never start "
        + "again: the first value written later has a greater version than every removed value.",
      "A member is not removed while it runs, or while it has waiting messages or dead letters. "
        + "The launch command of the member is removed too. A queue is not removed while it has "
        + "workers, waiting messages or dead letters. Exits with 1 if the name does not exist.",
      "With --json, writes kind and name.",
    ],
    [
      Example("wormhole remove member printer", "remove a member name that is no longer in use"),
      Example("wormhole remove channel speed.old", "a channel, with all copies of its values"),
    ]
  ) { invocation in
    let (word, name) = (invocation.operands[0], invocation.operands[1])
    guard let kind = Removable(rawValue: word) else {
      let kinds = Removable.allCases.map(\.rawValue).joined(separator: ", ")
      throw Failure.usage("cannot remove a '\(word)': the kinds are \(kinds)")
    }
    let container = try invocation.open(create: false)
    guard try kind.remove(name, from: container) else {
      throw WormholeError(.notFound, "remove \(word)", name, because: "no \(word) has this name")
    }
    if invocation.output.isJSON {
      try invocation.output.ofDone.write(.removed, ["kind": .string(word), "name": .string(name)])
    }
    return 0
  }
}

enum Removable: String, CaseIterable {
  case channel, member, queue, suite

  fileprivate func remove(_ name: String, from container: SharedContainer) throws -> Bool {
    switch self {
    case .channel: return try container.removeChannel(name)
    case .member: return try container.removeMember(name)
    case .queue: return try container.removeQueue(name)
    case .suite: return try container.removeDefaults(name)
    }
  }
}
