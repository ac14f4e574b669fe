import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs that do one of each kind of operation on the container of a group of users.
extension Peer {
  private static func open(group: String) throws -> SharedContainer {
    var options = Options()
    options.sharing = .group
    options.lease = .milliseconds(50)
    options.timeout = .seconds(2)
    return try SharedContainer(group: group, options: options)
  }

  /// Makes a file in each directory of a group's container, and is killed as a guest.
  static func furnish(_ group: String) throws {
    let container = try open(group: group)
    try container.channel("n").put(1)
    try container.channel("n").put(2)
    try container.defaults("settings").set(1, forKey: "a")
    try container.notice("gong").post()
    try container.lock("held").hold {}
    let (tv, phone) = (try container.join(as: "tv"), try container.join(as: "phone"))
    try phone.peer("tv").send(1)
    try phone.peer("tv").setContext(2)
    tv.leave()
    phone.leave()
    try access(container)
    let guest = try container.guest()
    try withExtendedLifetime(guest) { try Processes.send(.kill, to: Processes.current) }
  }

  private static func access(_ container: SharedContainer) throws {
    let room = try AccessDirectory(container.storage)
    let claim = AccessClaim([ClaimedPath(AccessPath("/"), writes: false)], purpose: "test")
    let access = AccessExecutor(
      room, AccessRequest(claim, subject: "/"), Patience(until: .now + .seconds(2)))
    try access.begin()
    try access.end(commits: false)
  }

  /// Prints for each operation whether it was done, and if not, the reason.
  ///
  /// Each operation opens the container again, as another program would.
  static func tryEverything(_ group: String) throws {
    for (name, operation) in operations {
      do {
        try operation(open(group: group))
        try say("\(name): done")
      } catch let error as WormholeError {
        try say("\(name): \(error.code): \(error)")
      }
    }
    let findings = (try? open(group: group).storage.inspect()) ?? []
    for finding in findings where finding.severity == .problem {
      try say("doctor: \(finding.subject): \(finding.what); \(finding.advice ?? "")")
    }
  }

  private static var operations: [(String, (SharedContainer) throws -> Void)] {
    [
      ("put", { try $0.channel("n").put(3) }),
      ("read", { _ = try $0.channel("n", of: Int.self).value }),
      ("update", { try $0.channel("n", of: Int.self).update(default: 0) { $0 += 1 } }),
      ("list", { _ = try $0.channels() }),
      ("erase", { try $0.channel("n", of: Int.self).clear(erasing: true) }),
      ("set", { try $0.defaults("settings").set(2, forKey: "a") }),
      ("post", { try $0.notice("gong").post() }),
      ("hold", { try $0.lock("held").hold {} }),
      ("join", { try $0.join(as: "tv").leave() }),
      ("receive", receive),
      ("send", { try $0.withMember(as: "phone") { _ = try $0.peer("tv").send(2) } }),
      ("look", look),
      ("tell", { try $0.withMember(as: "phone") { _ = try $0.peer("tv").setContext(3) } }),
      ("request", { _ = try $0.guest().peer("tv").request(1, as: Int.self, within: .seconds(1)) }),
      ("access", access),
      ("bridge", bridge),
      ("repair", { _ = try $0.repair() }),
      ("discard", discard),
      ("remove channel", { _ = try $0.removeChannel("n") }),
      ("remove settings", { _ = try $0.removeDefaults("settings") }),
      ("remove member", { _ = try $0.removeMember("tv") }),
    ]
  }

  private static func receive(_ container: SharedContainer) throws {
    let member = try container.join(as: "tv")
    defer { member.leave() }
    let receiving = try member.receive(Int.self) { _, _ in }
    defer { receiving.stop() }
    // A fault that keeps the process from receiving is reported by the other operations.
    try? eventually("it is received", within: .milliseconds(200)) {
      try container.peer("tv").queue.isEmpty
    }
  }

  private static func look(_ container: SharedContainer) throws {
    let tv = container.peer("tv")
    _ = (try tv.queue, try tv.deadLetters, try tv.toldContexts, try tv.reachability)
    try tv.removePendingOutcomes()
  }

  private static func bridge(_ container: SharedContainer) throws {
    do throws(Errno) {
      _ = try container.storage.bridge(["in"])
    } catch {
      throw WormholeError(error, "use", "bridge")
    }
  }

  private static func discard(_ container: SharedContainer) throws {
    let tv = container.peer("tv")
    for letter in try tv.deadLetters { _ = try tv.discard(id: letter.id) }
    for message in try tv.queue { _ = try tv.cancel(id: message.id) }
  }
}
