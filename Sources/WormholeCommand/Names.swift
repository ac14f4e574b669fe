import CommandLine
import SharedContainer
import Syscalls
import Wormhole

/// What has a name in a container.
enum Names {
  case channels, members, notices, locks, suites
  /// Those of the suite that stands before.
  case keys
  /// Those of the kind that stands before.
  case removable

  /// Those that the container holds; none where it cannot be read: nobody asked for errors.
  var found: Found {
    { invocation in
      // A group's container says itself that it is one, and nobody has said so yet.
      let hole =
        (try? invocation.open(create: false) { $0.isForReading = true })
        ?? (try? invocation.open(create: false) { ($0.isForReading, $0.sharing) = (true, .group) })
      let names = try? hole?.names(self, after: invocation.operands)
      return (names ?? []).map { Proposal.Word($0) }
    }
  }
}

extension Operand.Values {
  static func names(_ names: Names) -> Self { .found(names.found) }
}

extension Option.Argument {
  static func member(_ name: String) -> Self { .found(name, Names.members.found) }
}

extension Wormhole {
  /// - Parameter operands: those before, which may say what is meant.
  fileprivate func names(
    _ names: Names, after operands: [String]
  ) throws -> [String] {
    switch names {
    case .channels: try channels()
    case .members: try container.names(in: .members)
    case .notices: try container.names(in: .notices)
    case .locks: try system("lock.")
    case .suites: try system("defaults.")
    case .keys:
      try operands.count < 2
        ? [] : defaults(operands[1]).dictionaryRepresentation().keys.sorted()
    case .removable:
      switch operands.first.flatMap(Removable.init) {
      case .channel: try channels()
      case .member: try container.names(in: .members)
      case .suite: try system("defaults.")
      case nil: []
      }
    }
  }

  private func system(_ prefix: String) throws -> [String] {
    try container.names(in: .system).filter { $0.begins(with: prefix) }.map {
      String(Substring($0.utf8.dropFirst(prefix.utf8.count)))
    }
  }
}
