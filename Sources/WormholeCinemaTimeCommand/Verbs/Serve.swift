import WormholeCinemaTime
import WormholeCommandLine
import WormholePropertyLists
import WormholeSyscalls
import WormholeWeb

extension Verb {
  static let serve = Verb(
    "serve", "show both apps side by side on a page in a browser", [], [.listen, .allowRemote],
    [
      "Starts the app of the phone and the app of the watch, each in a process of its own, and "
        + "prints the address of a page that shows both: films, seats, tickets with their codes. A "
        + "purchase on one side shows on the other, with the time that it took. The page's buttons "
        + "stop, kill and start either process, and no other process. Runs until a signal, which "
        + "ends both apps.",
      "The address contains a token, which is new at each start. The server listens at 127.0.0.1, "
        + "at a free port unless --listen names one. An address that other machines reach requires "
        + "--allow-remote: the token then crosses the network in clear.",
    ],
    [Example("cinematime --container office serve", "print the address of the page")]
  ) { invocation in
    let pages = try PageServer(.cinema, invocation)
    let changes = Monitor(true)
    let theatre = try Theatre(invocation) { changes.signal { $0 = true } }
    do throws(Errno) {
      try Thread("stage") {
        while true {
          let _: Void? = changes.wait(until: nil) { isDue in
            return exchange(&isDue, with: false) ? () : nil
          }
          let document = PropertyListValue.dictionary(theatre.document())
          if let text = try? JSONPropertyList.encode(document) { pages.server.publish(text) }
        }
      }.detach()
    } catch {
      throw Failure(.software, "system", "cannot serve the page: \(error)")
    }
    return try pages.serve { request, reply in
      guard let wanted = try? JSONPropertyList.decode(request.body),
        let action = wanted["action"]?.stringValue,
        let role = wanted["side"]?.stringValue.flatMap(Role.init)
      else { return reply.send(WebResponse(WebRefusal(400, "the request names no side"))) }
      do {
        let movie = wanted["movie"]?.intValue.flatMap(Movie.find)
        reply.send(WebResponse(WebRefusal(200, try theatre.perform(action, on: role, movie))))
      } catch {
        reply.send(WebResponse(WebRefusal(409, "\(error)")))
      }
    }
  }
}
