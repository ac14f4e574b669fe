import TestSupport
import Wormhole
import WormholePropertyLists
import WormholeSyscalls

/// `wormhole serve` in a process of its own, with a container.
final class ServedPage {
  let container: SharedContainer
  let port: Int
  /// The path of the page: the token between two slashes.
  let path: String
  let address: String
  let server: Running
  private let folder: TemporaryDirectory

  init(_ options: [String] = [], environment: [String] = []) throws {
    folder = try TemporaryDirectory()
    container = try SharedContainer(directory: folder.path + "/c")
    let server = try Running(
      Programs.built("wormhole"), ["--container", folder.path + "/c", "serve"] + options,
      environment: environment)
    self.server = server
    let address = try eventually("the address") { () -> Substring? in
      try server.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().first
    }
    self.address = String(address)
    let parts = address.split(separator: "/")
    port = Int(parts[1].split(separator: ":")[1])!
    path = "/\(parts[2])/"
  }

  /// Waits until the page's document fulfils the condition, and returns its text.
  func bytes(_ what: String, _ isIt: (PropertyListValue) -> Bool) throws -> String {
    try eventually(what) {
      let connection = try WebConnection(port: port)
      try connection.ask(path + "state")
      let reply = try connection.reply()
      let value = try JSONPropertyList.decode(Array(reply.body.utf8))
      return isIt(value) ? reply.body : nil
    }
  }

  @discardableResult
  func state(_ what: String, _ isIt: (PropertyListValue) -> Bool) throws -> PropertyListValue {
    try JSONPropertyList.decode(Array(try bytes(what, isIt).utf8))
  }
}
