import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeRelay
import WormholeSyscalls

@testable import WormholeBridge

/// A server that loses a subscription of a bridge, and does everything else as it should: pings are
/// answered, and what is published is stored.
@Suite(.blocking, .notSanitized("many bridges at once")) struct LostSubscriptionTests {
  /// The bridge notices that its own words or heartbeats do not come back, and connects again.
  ///
  /// - Parameter subject: how the subject of the subscription begins: replies, words of other
  ///   machines, heartbeats.
  @Test(arguments: ["_INBOX.", "whm.", "whb."])
  func aLostSubscriptionIsMadeAgain(_ subject: String) throws {
    guard let server = try TestServer.start(for: "a lost subscription") else { return }
    try BridgedMachine.setUp(server)
    let folder = try TemporaryDirectory()
    let deaf = try ProxiedMachine(folder.path + "/a", "al", server, group: "g", 1) { proxy in
      proxy.isHonest = true
      var isLost = false
      proxy.loses = { line in
        guard !isLost, line.hasPrefix("SUB \(subject)") else { return false }
        isLost = true
        return true
      }
    }
    let other = try ProxiedMachine(folder.path + "/b", "bob", server, group: "g", 2) {
      $0.isHonest = true
    }
    var options = SendOptions()
    (options.durability, options.wantsOutcome) = (.process, true)
    let receiving = try [deaf, other].map { try $0.member.receive(Int.self) { _, _ in } }
    let sent = [
      try deaf.member.peer("bob").send(1, options), try other.member.peer("al").send(2, options),
    ]
    let end = Instant.now + .seconds(60)
    for one in sent {
      let outcome = one.waitForEnd(until: end)
      let report = outcome == .delivered ? "" : try report([deaf, other])
      #expect(outcome == .delivered, "\(report)")
    }
    try eventually("the other member is seen", within: .seconds(60)) {
      try deaf.container.peer("bob").reachability == .running
    }
    for subscription in receiving { subscription.stop() }
    #expect(deaf.failure == nil && other.failure == nil)
    #expect(deaf.stop()["loss"] == 1)
    _ = other.stop()
  }

  /// On a busy machine, a word may be late now and then.
  @Test func onlyWordsThatAreLostInARowEndTheConnection() throws {
    let scene = try ConnectedBridge()
    let (bridge, link, machine) = (scene.one.bridge, scene.link, scene.one.machine)
    let word = Subjects.word(.here, to: machine, from: machine)
    var isLost = false
    scene.server.script = { subject in
      guard subject == word else { return nil }
      if isLost { return ("NATS/1.0 503\r\n\r\n", "") }
      return ("", "here")
    }
    // The time stands still for the connection, so no reply is late.
    let now = link.connection.now
    for isNextLost in [true, false, true, true] {
      isLost = isNextLost
      let isOpen = bridge.listen(link, link.echo.deadline ?? .longAgo)
      #expect(isOpen, "no two words in a row were lost")
      try eventually("the word has ended") {
        _ = scene.server.step(now)
        link.connection.proceed(now)
        return link.echo.deadline != nil
      }
    }
    let isOpen = bridge.listen(link, .longAgo)
    #expect(!isOpen, "two words in a row were lost")
  }

  private func report(_ machines: [ProxiedMachine]) throws -> String {
    try machines.map { "\(try BridgeStatus.read($0.container)?.lines ?? [])" }.joined()
  }
}
