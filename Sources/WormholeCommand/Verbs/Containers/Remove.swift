import FoundationEssentials
import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let remove = Verb(
    "remove", "remove an unused channel, member, queue or suite",
    [
      Operand("KIND", .one, .words(Removable.allCases.map(\.rawValue))),
      Operand("NAME", .optional, .names(.removable)),
    ], [.unusedFor],
    [
      "KIND is channel, member, queue or suite. Removes NAME permanently, with all data stored for "
        + "it. A process that uses NAME at that moment loses nothing: its write creates the name "
        + "again.",
      "Watchers of a channel or a suite are notified that it is clear. Versions never start "
        + "again: the first value written later has a greater version than every removed value.",
      "A member is not removed while it runs, or while it has waiting messages or dead letters. "
        + "The launch command of the member is removed too. A queue is not removed while it has "
        + "workers, waiting messages or dead letters. Exits with 1 if the name does not exist.",
      "With --older-than, removes NAME, or without NAME every one of KIND, only if it was not used "
        + "for that time, and writes the removed names: a channel or suite that was not changed, "
        + "a member that does not run and has left, a queue that no message has entered or left. "
        + "What cannot be removed, because messages wait for it for example, stays, and an error "
        + "about one name is reported after the others are removed. A change of a channel or suite "
        + "at that moment is not lost.",
      "With --json, writes kind and name.",
    ],
    [
      Example("wormhole remove member printer", "remove a member name that is no longer in use"),
      Example("wormhole remove channel speed.old", "a channel, with all copies of its values"),
      Example(
        "wormhole remove channel --older-than 30d", "channels not changed for thirty days"),
    ]
  ) { invocation in
    let word = invocation.operands[0]
    let given = invocation.operands.count > 1 ? invocation.operands[1] : nil
    let kind: Removable = try invocation.word { "remove a '\($0)': the kinds are" }
    let age = try invocation.seconds(.unusedFor)
    guard given != nil || age != nil else {
      throw Failure.usage("cannot remove: NAME is missing; try 'wormhole help remove'")
    }
    let container = try invocation.open(create: false)
    if let age { return try invocation.remove(kind, given, olderThan: age, in: container) }
    let name = given ?? ""
    guard try kind.remove(name, from: container) else {
      throw WormholeError(.notFound, "remove \(word)", name, because: "no \(word) has this name")
    }
    if invocation.output.isJSON {
      try invocation.output.ofDone.write(.removed, ["kind": .string(word), "name": .string(name)])
    }
    return 0
  }
}

extension Invocation {
  /// Removes names that were not used for some time; exits with 1 if NAME is given and stays.
  fileprivate func remove(
    _ kind: Removable, _ name: String?, olderThan age: Duration, in container: SharedContainer
  ) throws -> Int32 {
    let latest = Date(sinceEpochNow: Clocks.sinceEpoch).addingTimeInterval(-(age / .seconds(1)))
    var isFound = false
    var failure: WormholeError?
    var reports = ChangeReports(output)
    for name in try name.map({ [$0] }) ?? container.names(kind) {
      do {
        guard try kind.remove(name, notUsedAfter: latest, from: container) else { continue }
      } catch let error as WormholeError where operands.count == 1 && error.code != .notAContainer {
        // A member may run for long without a message, and a channel may be another machine's.
        if [.refused, .nameTaken, .unreachable].contains(error.code) {
          output.explain("\(error)")
        } else {
          // The remaining names are removed all the same.
          if let before = failure { output.tell(Failure(before)) }
          failure = error
        }
        continue
      }
      isFound = true
      reports.write { output in
        try output.isJSON
          ? output.write(.removed, ["kind": .string(kind.rawValue), "name": .string(name)])
          : output.write(line: name.inOneLine())
      }
    }
    if let failure { throw failure }
    try reports.finish()
    guard !isFound, let name else { return 0 }
    throw WormholeError(
      .notFound, "remove \(kind.rawValue)", name,
      because: "no \(kind.rawValue) has this name, or it was used in the given time")
  }
}

extension Option {
  static let unusedFor = Option(
    "older-than", .any("D"), "remove only what was not used for so long")
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

  fileprivate func remove(
    _ name: String, notUsedAfter latest: Date, from container: SharedContainer
  ) throws -> Bool {
    switch self {
    case .channel: return try container.removeChannel(name, writtenBefore: latest)
    case .suite: return try container.removeDefaults(name, writtenBefore: latest)
    case .member, .queue:
      let folder = self == .member ? Container.Folder.members : .queues
      guard let used = try container.lastUse(of: name, in: folder), used <= latest else {
        return false
      }
      return try remove(name, from: container)
    }
  }
}
