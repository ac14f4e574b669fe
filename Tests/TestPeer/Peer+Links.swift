import Wormhole
import WormholeSyscalls
import WormholeTesting

/// Jobs of programs that have the link of the test that started the program.
extension Peer {
  static func linked(_ name: String) throws {
    var options = Options()
    try options.useLinkOfTest()
    let directory = Processes.environment("WORMHOLE_CONTAINER")!
    let member = try SharedContainer(directory: directory, options: options).join(as: name)
    let receiving = try member.receive(Int.self) { number, message in
      try say("\(number)\(message.isRedelivered ? "!" : "")")
    }
    let responding = member.respond(to: Int.self) { $0 + 1 }
    // The sender's reachability shows which cuts of the link this process knows.
    let isWatched = Monitor(false)
    let watching = try member.peer("phone").watchReachability { state in
      try? say("phone \(state.rawValue)")
      isWatched.signal { $0 = true }
    }
    let _: Void? = isWatched.wait(until: nil) { $0 ? () : nil }
    try say("ready")
    let _: Void? = Monitor(()).wait(until: nil) { _ in nil }
    watching.stop()
    receiving.stop()
    responding.stop()
  }
}
