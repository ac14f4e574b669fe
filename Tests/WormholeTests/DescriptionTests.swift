import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The texts that users see in `print`, in a debugger and as `localizedDescription`.
@Suite(.blocking) struct DescriptionTests {
  private struct Order: Codable, Sendable { var film: String, seats: Int }

  @Test func objectsShowTheirNames() throws {
    let pair = try Pair()
    let container = pair.meeting.container
    let channel = container.channel("speed", of: Int.self)
    try channel.put(88)
    #expect("\(container)" == "SharedContainer '\(container.directory)'")
    #expect("\(channel)" == "Channel<Int> 'speed'")
    #expect("\(container.channel("speed", default: 1))" == "ConfigurationChannel<Int> 'speed'")
    let value = try #require(try channel.latest)
    #expect("\(value)" == "'speed', version 1: 88")
    try channel.clear()
    let none = try #require(try channel.latest)
    #expect("\(none)" == "'speed', version 2: cleared")
    #expect("\(container.notice("ready"))" == "Notice 'ready'")
    #expect("\(container.defaults("app"))" == "Defaults 'app'")
    #expect("\(container.lock("till"))" == "Lock 'till'")
    #expect("\(pair.phone)" == "Peer 'watch'")
    let guest = try container.guest()
    #expect("\(guest)".hasPrefix("Guest ") && "\(guest)".count == 22)
    let member = try container.join(as: "till")
    #expect("\(member)" == "Member 'till'")
    member.leave()
    #expect("\(member)" == "Member 'till', left")
    let watching = try channel.watch { _ in }
    #expect("\(watching)" == "Subscription, active")
    watching.stop()
    #expect("\(watching)" == "Subscription, ended")
  }

  @Test func messagesShowTheirIdentity() throws {
    let pair = try Pair()
    let from = pair.sender.name
    let sent = try pair.phone.send(1, durability: .process, id: "one")
    try pair.phone.send(contentsOf: [2, 3], durability: .process, id: "two")
    #expect("\(sent)" == "Sent 'one' to 'watch'")
    let texts = Heard<String>()
    let outcomes = Heard<String>()
    let watching = try pair.sender.watchOutcomes { outcomes.add("\($0)") }
    let receiving = try pair.watch.receive { texts.add("\($0)") }
    try texts.wait("three") { $0.count == 3 }
    let (begin, end) = ("Message '", " of kind 'Int' from '\(from)', attempt 1")
    #expect(texts.all == [begin + "one'" + end, begin + "two'" + end, begin + "two'[1]" + end])
    try outcomes.wait("two") { $0.count == 2 }
    #expect(outcomes.all[0] == "Outcome of 'Int' 'one' to 'watch': delivered")
    try eventually("it is settled") { sent.status != nil }
    #expect("\(sent)" == "Sent 'one' to 'watch', delivered")
    receiving.stop()
    watching.stop()
  }

  @Test func requestsAndContextsShowTheirKind() throws {
    let pair = try Pair()
    let from = pair.sender.name
    let texts = Heard<String>()
    pair.watch.respond(toKind: "Int") { request in
      texts.add("\(request)")
      try? request.reply(0)
    }
    pair.watch.receiveImmediate { texts.add("\($0)") }
    _ = try pair.phone.request(1, as: Int.self)
    try pair.phone.sendImmediately(1)
    try texts.wait("both") { $0.count == 2 }
    #expect(
      texts.all == [
        "Request of kind 'Int' from '\(from)'", "ImmediateMessage of kind 'Int' from '\(from)'",
      ])
    try pair.phone.setContext(1)
    let context = try #require(try pair.phone.sentContext)
    #expect("\(context)" == "Context of kind 'Int' from '\(from)'")
  }

  /// Foundation reads the sentence from `LocalizedError`, and the domain from the error.
  @Test func anErrorHasItsSentenceForFoundationToo() throws {
    let meeting = try Meeting()
    let error = try failure { try meeting.container.channel("a").put(1, ifVersion: 7) }
    #expect((error as any Error).localizedDescription == error.description)
    #expect((error as NSError).domain == "Wormhole.WormholeError")
    #expect((error as any LocalizedError).failureReason == error.reason)
    #expect((error as any LocalizedError).recoverySuggestion == error.hint)
  }

  /// The path leads to the leaf, whose type is in the reason; a missing key names the whole type.
  @Test func aMismatchNamesTheTypeAndThePath() throws {
    let meeting = try Meeting()
    let channel = meeting.container.channel("order", of: PropertyListValue.self)
    func reason(_ value: PropertyListValue) throws -> String {
      try channel.put(value)
      let error = try failure {
        _ = try meeting.container.channel("order", of: [Order].self).value
      }
      #expect(error.code == .typeMismatch)
      return error.reason
    }
    let seats = try reason([["film": "M", "seats": "two"]])
    #expect(seats == "at '[0].seats': a string where Int is expected")
    #expect(try reason([["film": "M"]]) == "at '[0]': no key 'seats' (reading 'Array<Order>')")
  }

  /// The receiver knows the message's index, so the path begins in the message's value.
  @Test func aMismatchInABatchNamesThePathInItsMessage() throws {
    let pair = try Pair()
    let values: [PropertyListValue] = [
      ["film": "M", "seats": "two"], ["film": "M", "seats": 2], ["film": "M"],
    ]
    try pair.phone.send(contentsOf: values, .quick())
    let messages = try pair.watch.take(3)
    let errors = try [0, 2].map { index in
      try failure { _ = try messages[index].value(as: Order.self) }
    }
    #expect(errors.map(\.code) == [.typeMismatch, .typeMismatch])
    let reasons = errors.map(\.reason)
    #expect(
      reasons == [
        "at 'seats': a string where Int is expected", "no key 'seats' (reading 'Order')",
      ])
    #expect(try messages[1].value(as: Order.self).seats == 2)
  }
}
