internal import SharedContainer
internal import Syscalls

/// The directory that messages lie in, however it is spelt.
struct MessagePlace {
  /// The names of the directories that lead there, as files are called.
  let names: [String]
  /// What the names of its messages begin with.
  let prefix: String

  init(_ directory: String?) throws(WormholeError) {
    var names: [String] = []
    for name in (directory ?? "").parts(between: "/") where name != "." {
      names.append(try Container.escape(name))
    }
    self.names = names
    prefix = "MMWormhole/" + names.map { $0 + "/" }.joined()
  }

  /// What a message is called in the container.
  func name(of identifier: String) throws(WormholeError) -> String {
    prefix + (try Container.escape(identifier))
  }
}
