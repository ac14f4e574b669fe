import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

/// Names in a container, for completion.
enum Names {
  case channels, members, queues, notices, locks, suites
  /// The keys of the suite that precedes on the command line.
  case keys
  /// The names of the kind that precedes on the command line.
  case removable

  /// The IDs of the messages that wait for the name before on the command line.
  static let waiting: Found = { invocation in
    let messages = try? invocation.peerBefore?.queue.filter { $0.state != .claimed }
    return (messages ?? []).map {
      Proposal.Word($0.id, words($0.kind, $0.from))
    }
  }

  /// The IDs of the dead letters of the name before on the command line.
  static let deadLetters: Found = { invocation in
    let letters = try? invocation.peerBefore?.deadLetters
    return (letters ?? []).map { Proposal.Word($0.id, words($0.kind, $0.from)) }
  }

  private static func words(_ kind: String?, _ sender: String?) -> String {
    [kind, sender.map { "from \($0)" }].compactMap { $0 }.joined(separator: " ")
  }

  /// The names in the container; none if it cannot be read, because completion shows no errors.
  var found: Found {
    { invocation in
      let names = try? invocation.containerToComplete?.names(self, after: invocation.operands)
      return (names ?? []).map { Proposal.Word($0) }
    }
  }
}

extension Invocation {
  /// The container that the incomplete line names; nil if it cannot be read.
  fileprivate var containerToComplete: SharedContainer? {
    // A group's container is marked as a group's, and the command line may not contain the option
    // for sharing yet.
    (try? open(create: false) { $0.isForReading = true })
      ?? (try? open(create: false) { ($0.isForReading, $0.sharing) = (true, .group) })
  }

  /// The member or the queue that the line names, as far as it is complete.
  fileprivate var peerBefore: Peer? {
    get throws {
      guard let name = operands.first, let container = containerToComplete else { return nil }
      let isQueue = try has(.ofQueue) || container.queues().contains(name)
      return isQueue && !has(.ofMember) ? container.peer(name).ofQueue : container.peer(name)
    }
  }
}

extension Operand.Values {
  static func names(_ names: Names) -> Self { .found(names.found) }
}

extension Option.Argument {
  static func member(_ name: String) -> Self { .found(name, Names.members.found) }
}

extension SharedContainer {
  /// The names of suites with settings.
  func suiteNames() throws -> [String] { try system(Container.Folder.suitePrefix) }

  /// The names of a kind.
  func names(_ kind: Removable) throws -> [String] {
    switch kind {
    case .channel: try storage.names(in: .channels)
    case .member: try storage.names(in: .members)
    case .queue: try queues()
    case .suite: try suiteNames()
    }
  }

  /// - Parameter operands: the preceding operands, which may determine the kind of name.
  fileprivate func names(
    _ names: Names, after operands: [String]
  ) throws -> [String] {
    switch names {
    case .channels: try channels()
    case .members: try storage.names(in: .members)
    case .queues: try queues()
    case .notices: try storage.names(in: .notices)
    case .locks: try system(Container.Folder.lockPrefix)
    case .suites: try suiteNames()
    case .keys:
      try operands.count < 2
        ? [] : defaults(operands[1]).dictionaryRepresentation().keys.sorted()
    case .removable:
      switch operands.first.flatMap(Removable.init) {
      case .channel: try channels()
      case let kind?: try self.names(kind)
      case nil: []
      }
    }
  }

  private func system(_ prefix: String) throws -> [String] {
    // No name is empty: a file with the prefix alone is foreign.
    try storage.names(in: .system).filter { $0.begins(with: prefix) && $0 != prefix }.map {
      String(Substring($0.utf8.dropFirst(prefix.utf8.count)))
    }
  }
}
