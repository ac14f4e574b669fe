internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls
package import WormholeWeb

/// The server of a command's page: its options, its address, and its four paths.
package struct PageServer: Sendable {
  package let server: WebServer
  private let page: WebPage
  private let address: WebAddress
  private let output: Output

  /// Listens where the command line says.
  package init(_ page: WebPage, _ invocation: Invocation) throws {
    let verb = invocation.verb.name
    let text = invocation.value(.listen) ?? "127.0.0.1:0"
    guard let address = WebAddress(text) else {
      throw Failure.usage(
        "cannot \(verb) at '\(text)': not an address in digits and a port, as 127.0.0.1:8080")
    }
    guard address.isLoopback || invocation.has(.allowRemote) else {
      throw Failure.usage(
        "cannot \(verb) at '\(text)': other machines reach the address, and the token goes in "
          + "clear; add --allow-remote to permit that")
    }
    server = try naming("listen at", text, WebServer(address))
    (self.page, self.address, output) = (page, address, invocation.output)
  }

  /// Prints the address, and serves on the calling thread.
  ///
  /// - Parameter change: called on the server's thread for a request that asks for a change.
  package func serve(
    _ change: @escaping @Sendable (WebRequest, WebReply) -> Void
  ) throws -> Int32 {
    let token = WebGuard.randomToken()
    let port = server.port
    let gate = WebGuard(token: token, address, port: port)
    let place = address.page(port: port, token: token)
    if output.isJSON {
      try output.write(.page, ["address": .string(place)])
    } else {
      try output.write(line: place)
    }
    try naming("serve", place) { () throws(Errno) in
      try server.run { request, reply in
        do throws(WebRefusal) {
          switch (request.method, try gate.path(of: request)) {
          case (.get, ""):
            server.isLookedAt()
            reply.send(WebResponse(page))
          case (.get, "events"): reply.stream()
          case (.get, "state"): reply.sendDocument()
          case (.post, "do"): change(request, reply)
          default: throw WebRefusal(404, "the page has no such address")
          }
        } catch {
          reply.send(WebResponse(error))
        }
      }
    }
    return 0
  }
}

extension Option {
  package static let listen = Option(
    "listen", .any("ADDRESS:PORT"), "address in digits and port of the page")
  package static let allowRemote = Option(
    "allow-remote", nil, "permit an address that other machines reach; the token goes in clear")
  package static let allowChanges = Option(
    "allow-changes", nil, "let the page put and clear values")
}

extension ObjectForm {
  package static let page = ObjectForm(
    "page", "the page of a server, from serve", [("address", "address of the page, with its token")]
  )
}
