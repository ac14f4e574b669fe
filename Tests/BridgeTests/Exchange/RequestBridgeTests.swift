import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Requests and immediate messages between machines, over a real server.
@Suite(.blocking, .notSanitized("about processes")) struct RequestBridgeTests {
  private let machines: BridgedMachines?

  init() throws { machines = try BridgedMachines.start() }

  private func failure(_ body: () throws -> Void) throws -> WormholeError {
    let error = #expect(throws: WormholeError.self) { try body() }
    return try #require(error)
  }

  @Test func requestsAndImmediateMessagesCross() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let (al, bob) = (try here.container.join(as: "al"), try there.container.join(as: "bob"))
    let (askers, heard) = (Heard<String?>(), Heard<String>())
    let subscriptions = [
      bob.respond(toKind: "double") { request in
        askers.add(request.from)
        try? request.reply(((try? request.value(as: Int.self)) ?? 0) * 2)
      },
      bob.respond(toKind: "yes") { try? $0.reply($0.headers == ["a": "b"]) },
      bob.respond(toKind: nil) { $0.refuse("never") },
      bob.receiveImmediate(kinds: ["word"]) { message in
        heard.add((try? message.value(as: String.self)) ?? "")
      },
      al.respond(to: Int.self) { $0 + 1 },
    ]
    try here.waitUntilRunning("bob")
    let peer = al.peer("bob")
    let limit = Duration.seconds(30)
    // At once after the join: the other machine may not know the asker yet.
    #expect(try peer.request(21, as: Int.self, kind: "double", within: limit) == 42)
    #expect(try peer.request(1, as: Bool.self, kind: "yes", headers: ["a": "b"], within: limit))
    let refusal = try failure { _ = try peer.request(1, as: Int.self, within: limit) }
    #expect(refusal.code == .rejected && refusal.reason == "never", "\(refusal)")
    let guest = here.container.peer("bob")
    #expect(try guest.request(3, as: Int.self, kind: "double", within: limit) == 6)
    #expect(askers.all == ["al", nil])
    for number in 1...20 { try peer.sendImmediately("\(number)", kind: "word") }
    try peer.sendAndWait("end", kind: "word", within: limit)
    #expect(heard.all == (1...20).map { "\($0)" } + ["end"])
    let unheard = try failure { try peer.sendAndWait("x", kind: "other", within: limit) }
    #expect(unheard.code == .rejected, "\(unheard)")
    // The other way.
    try there.waitUntilRunning("al")
    #expect(try bob.peer("al").request(4, as: Int.self, within: limit) == 5)
    let large = String(repeating: "x", count: 2 << 20)
    let tooLarge = try failure { _ = try peer.request(large, as: Int.self, within: limit) }
    #expect(tooLarge.code == .rejected && tooLarge.reason.contains("carried"), "\(tooLarge)")
    bob.leave()
    let gone = try failure { _ = try peer.request(1, as: Int.self, within: limit) }
    #expect(gone.code == .unreachable, "\(gone)")
    for one in subscriptions { one.stop() }
    // The bridge writes its counts every few seconds.
    try eventually("the status counts the requests", within: patience) {
      let status = try JSONPropertyList.decode(Array(here.status(["--json"]).utf8))
      return (status["requests"]?["sent"]?.intValue ?? 0) > 20
    }
  }

  /// A request on a thread of its own.
  private struct Asking {
    private let ended = Monitor<WormholeError?>(nil)
    private let thread: WormholeSyscalls.Thread

    init(_ asker: Member, within limit: Duration) throws {
      thread = try WormholeSyscalls.Thread("asking") { [ended] in
        do throws(WormholeError) {
          _ = try asker.peer("bob").request(1, as: Int.self, within: limit)
          ended.signal { $0 = WormholeError(.system, "ask", "bob", because: "there was a reply") }
        } catch {
          ended.signal { $0 = error }
        }
      }
    }

    func error() throws -> WormholeError {
      defer { thread.join() }
      return try #require(ended.wait(until: .now + .seconds(130)) { $0 })
    }
  }

  enum Fate: CaseIterable { case killed, suspended, withoutBridge, withoutServer }

  /// The request ends as on one machine, and the next process never receives it.
  @Test(arguments: Fate.allCases) func aRequestWhoseReceiverIsLostEnds(_ fate: Fate) throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let al = try here.container.join(as: "al")
    let manner: PeerJob.Responding =
      fate == .killed ? .dying : fate == .suspended ? .stopping : .never
    let receiver = try Running(.respond(there.path, "bob", manner))
    try here.waitUntilRunning("bob")
    try there.waitUntilRunning("al")
    let begin = Instant.now
    let limit: Duration = fate == .suspended ? .seconds(3) : .seconds(120)
    let asking = try Asking(al, within: limit)
    try eventually("it is asked", within: .seconds(60)) {
      try receiver.output.contains("question")
    }
    switch fate {
    case .killed, .suspended: break
    case .withoutBridge: try there.kill()
    case .withoutServer: try machines.server.server.kill()
    }
    let error = try asking.error()
    #expect(error.code == (fate == .suspended ? .timedOut : .unreachable), "\(error)")
    #expect(.now - begin < .seconds(100))
    if fate == .suspended { #expect(.now - begin >= .seconds(3)) }
    if fate == .withoutServer { try machines.server.server.start() }
    if fate == .withoutBridge { try there.start() }
    if !receiver.hasEnded { try? receiver.child.send(.kill) }
    _ = try receiver.outcome()
    let next = try there.container.join(as: "bob")
    let heard = Heard<Int>()
    let answering = next.respond(toKind: nil) { request in
      heard.add((try? request.value(as: Int.self)) ?? 0)
      try? request.reply(7)
    }
    let incarnation = next.incarnation
    try eventually("the next process is seen", within: .seconds(60)) {
      try here.container.peer("bob").profile?.incarnation == incarnation
        && here.container.peer("bob").reachability == .running
    }
    #expect(try al.peer("bob").request(2, as: Int.self, within: .seconds(60)) == 7)
    #expect(heard.all == [2])
    answering.stop()
  }

  /// The other machine still shows the process that has ended.
  @Test func aRequestToAnEarlierProcessReachesNoLaterOne() throws {
    guard let machines else { return }
    let (here, there) = (machines.here, machines.there)
    let al = try here.container.join(as: "al")
    let first = try there.container.join(as: "bob")
    try here.waitUntilRunning("bob")
    try there.waitUntilRunning("al")
    let bridge = try #require(there.bridge)
    // A suspended bridge reads nothing, so no heartbeat states the end of the process.
    try bridge.child.send(.stop)
    let heard = Heard<Int>()
    let asking = try Asking(al, within: .seconds(60))
    first.leave()
    let second = try there.container.join(as: "bob")
    let answering = second.respond(toKind: nil) { request in
      heard.add((try? request.value(as: Int.self)) ?? 0)
      try? request.reply(7)
    }
    let _: Void? = Monitor(()).wait(until: .now + .seconds(1)) { _ in nil }
    try bridge.child.send(.go)
    #expect(try asking.error().code == .unreachable)
    let incarnation = second.incarnation
    try eventually("the next process is seen", within: .seconds(60)) {
      try here.container.peer("bob").profile?.incarnation == incarnation
        && here.container.peer("bob").reachability == .running
    }
    #expect(try al.peer("bob").request(2, as: Int.self, within: .seconds(60)) == 7)
    #expect(heard.all == [2])
    answering.stop()
  }
}
