import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls
import WormholeWeb

extension Verb {
  static let serve = Verb(
    "serve", "show the container live on a page in a browser", [],
    [.listen, .allowRemote, .allowChanges],
    [
      "Serves one page, and prints its address: channels with their values, queues, members, held "
        + "locks, events, and the files behind each, all as they change. Runs until a signal.",
      "The address contains a token, which is new at each start: only a browser that has the "
        + "address sees the page. The server listens at 127.0.0.1, at a free port unless --listen "
        + "names one. An address that other machines reach requires --allow-remote: the token "
        + "and all values then cross the network in clear, and everybody who reads them there can "
        + "open the page.",
      "The page is read-only. With --allow-changes, whoever has the address can also put and clear "
        + "values of channels.",
      "A page shows 200 entries of each list, and the beginning of long values. 200 pages can be "
        + "open at a time.",
    ],
    [
      Example("wormhole serve", "print the address of the page, and serve it"),
      Example("wormhole serve --listen 127.0.0.1:8080", "at a port that stays the same"),
    ]
  ) { invocation in
    let container = try invocation.open(create: true)
    let pages = try PageServer(.container, invocation)
    let allowsChanges = invocation.has(.allowChanges)
    let board = try Board(container, pages.server, allowsChanges: allowsChanges)
    let writer = Worker()
    let changes = Monitor<[(WebRequest, WebReply)]>([])
    // A change may wait for a lock, so it is made on a thread of its own.
    writer.begin {
      for (request, reply) in changes.withLock({
        let all = $0; $0 = []; return all
      }) {
        reply.send(container.change(request.body))
      }
    }
    return try withExtendedLifetime(board) {
      try pages.serve { request, reply in
        guard allowsChanges else {
          return reply.send(WebResponse(WebRefusal(403, "this page is read-only")))
        }
        let isTaken = changes.withLock { changes in
          guard changes.count < 64 else { return false }
          changes.append((request, reply))
          return true
        }
        guard isTaken else {
          return reply.send(WebResponse(WebRefusal(503, "too many changes wait")))
        }
        writer.trigger()
      }
    }
  }
}

extension SharedContainer {
  /// Makes a change that the page asks for.
  fileprivate func change(_ body: [UInt8]) -> WebResponse {
    guard let wanted = try? JSONPropertyList.decode(body), let name = wanted["channel"]?.stringValue
    else { return WebResponse(WebRefusal(400, "the request names no channel")) }
    let channel = channel(name, of: PropertyListValue.self)
    do {
      switch (wanted["action"]?.stringValue, wanted["value"]) {
      case ("put", let value?): try channel.put(value)
      case ("clear", _): try channel.clear()
      default: return WebResponse(WebRefusal(400, "the action is neither 'put' nor 'clear'"))
      }
      return WebResponse(WebRefusal(200, "done: '\(ShownText.of(name))'"))
    } catch {
      return WebResponse(WebRefusal(409, ShownText.of("\(error)", most: 300)))
    }
  }
}
