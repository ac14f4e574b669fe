import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

/// Requests between two containers whose proxies are shown, without servers.
@Suite(.blocking) struct CarriedRequestTests {
  private let machines: TwoMachines
  private let desk: RequestDesk
  private let limit = Duration.seconds(60)

  /// The carrier of the asking machine gives each request to the other machine at once.
  init() throws {
    machines = try TwoMachines()
    let (here, there) = try machines.opened()
    let asker = try there.residents.proxy(of: .member("al"), on: TwoMachines.hereName)
    let desk = try RequestDesk(there.residents.carrier)
    self.desk = desk
    here.residents.carrier.takeRequests { request in
      let end: @Sendable (CarriedReply?) -> Void = { if let reply = $0 { request.answer(reply) } }
      guard request.question.sender != nil else {
        return desk.ask(request.question, within: request.timeLeft, end)
      }
      if !asker.ask(request.question, within: request.timeLeft, end) {
        request.answer(.unreachable("the asker is not shown"))
      }
    }
    there.residents.carrier.takeRequests { _ in }
    try show(machines.sender, on: there.residents, of: TwoMachines.hereName)
  }

  private func show(_ member: Member, on residents: Residents, of machine: String) throws {
    try residents.proxy(of: .member(member.name), on: machine)
      .appear(as: member.incarnation, program: "p", since: Date())
  }

  private func showBob(_ bob: Member) throws {
    try show(bob, on: machines.opened().here.residents, of: TwoMachines.thereName)
  }

  private func failure(_ body: () throws -> Void) throws -> WormholeError {
    let error = #expect(throws: WormholeError.self) { try body() }
    return try #require(error)
  }

  @Test func requestsCrossAsOnOneMachine() throws {
    let bob = try machines.there.join(as: "bob")
    let askers = Heard<String?>()
    let answering = [
      bob.respond(toKind: "double") { request in
        askers.add(request.from)
        try? request.reply(((try? request.value(as: Int.self)) ?? 0) * 2)
      },
      bob.respond(toKind: nil) { $0.refuse("never") },
    ]
    try showBob(bob)
    let peer = machines.sender.peer("bob")
    #expect(try peer.request(21, as: Int.self, kind: "double", within: limit) == 42)
    let guest = machines.here.peer("bob")
    #expect(try guest.request(3, as: Int.self, kind: "double", within: limit) == 6)
    #expect(askers.all == ["al", nil])
    let refusal = try failure { _ = try peer.request(1, as: Int.self, within: limit) }
    #expect(refusal.code == .rejected && refusal.reason == "never", "\(refusal)")
    for one in answering { one.stop() }
  }

  /// A process has taken the place of the one that the other machine still shows.
  @Test func aLaterProcessReceivesNoRequestToAnEarlierOne() throws {
    let first = try machines.there.join(as: "bob")
    try showBob(first)
    first.leave()
    let second = try machines.there.join(as: "bob")
    let heard = Heard<Int>()
    let answering = second.respond(toKind: nil) { request in
      heard.add((try? request.value(as: Int.self)) ?? 0)
      try? request.reply(7)
    }
    let error = try failure {
      _ = try machines.sender.peer("bob").request(1, as: Int.self, within: limit)
    }
    #expect(error.code == .unreachable, "\(error)")
    let asGuest = try failure {
      _ = try machines.here.peer("bob").request(1, as: Int.self, within: limit)
    }
    #expect(asGuest.code == .unreachable, "\(asGuest)")
    #expect(heard.all == [])
    try showBob(second)
    #expect(try machines.sender.peer("bob").request(2, as: Int.self, within: limit) == 7)
    #expect(heard.all == [2])
    answering.stop()
  }

  /// The member disappears here while the request is under way.
  @Test func aRequestEndsWithThePresenceOfItsReceiver() throws {
    let bob = try machines.there.join(as: "bob")
    try showBob(bob)
    let asked = Heard<Int>()
    let answering = bob.respond(toKind: nil) { _ in asked.add(1) }
    let proxy = try machines.opened().here.residents[.member("bob")]
    let thread = try WormholeSyscalls.Thread("hiding") { [limit] in
      try? asked.wait("the request", within: limit) { $0 == [1] }
      proxy?.disappear()
    }
    let error = try failure {
      _ = try machines.sender.peer("bob").request(1, as: Int.self, within: limit)
    }
    thread.join()
    #expect(error.code == .unreachable, "\(error)")
    answering.stop()
  }
}
