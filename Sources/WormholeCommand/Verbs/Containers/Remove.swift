import CommandLine
import PropertyLists
import SharedContainer
import Wormhole

extension Verb {
  static let remove = Verb(
    "remove", "remove what nobody uses any more",
    [
      Operand("KIND", .one, .words(Removable.allCases.map(\.rawValue))),
      Operand("NAME", .one, .names(.removable)),
    ], [],
    [
      "KIND is channel, member or suite. Removes it for good, with all that is known of it. "
        + "Whoever uses the name at that moment loses nothing: it is there again then.",
      "Whoever watches a channel or a suite hears that it is clear. Versions do not begin anew: "
        + "what is written for the first time has a greater one than anything that was removed.",
      "A member is not removed while it runs, or while messages wait for it or were given up. "
        + "How it is started is forgotten. Exits with 1 if there is nothing of the name.",
      "With --json, writes kind and name.",
    ],
    [
      Example("wormhole remove member printer", "a name under which nobody joins any more"),
      Example("wormhole remove channel speed.old", "with all that was kept of its values"),
    ]
  ) { invocation in
    let (word, name) = (invocation.operands[0], invocation.operands[1])
    guard let kind = Removable(rawValue: word) else {
      let kinds = Removable.allCases.map(\.rawValue).joined(separator: ", ")
      throw Failure.usage("cannot remove a '\(word)': what can be removed is \(kinds)")
    }
    let hole = try invocation.open(create: false)
    guard try kind.remove(name, from: hole) else {
      throw WormholeError(.notFound, "remove \(word)", name, because: "there is none")
    }
    if invocation.output.isJSON {
      try invocation.output.ofDone.write(.removed, ["kind": .string(word), "name": .string(name)])
    }
    return 0
  }
}

enum Removable: String, CaseIterable {
  case channel, member, suite

  fileprivate func remove(_ name: String, from hole: Wormhole) throws -> Bool {
    switch self {
    case .channel: return try hole.removeChannel(name)
    case .member: return try hole.removeMember(name)
    case .suite: return try hole.removeDefaults(name)
    }
  }
}
