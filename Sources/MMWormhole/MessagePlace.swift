internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The directory of messages, independent of its spelling.
struct MessagePlace {
  /// The names of the directories on the path, as file names.
  let names: [String]
  /// The prefix of the names of its messages.
  let prefix: String

  init(_ directory: String?) throws(WormholeError) {
    var names: [String] = []
    for name in (directory ?? "").parts(between: "/") where name != "." {
      names.append(try Container.escape(name))
    }
    self.names = names
    prefix = "MMWormhole/" + names.map { $0 + "/" }.joined()
  }

  /// Returns the name of a message's channel in the container.
  func name(of identifier: String) throws(WormholeError) -> String {
    prefix + (try Container.escape(identifier))
  }
}
