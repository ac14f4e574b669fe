import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A subscription continues until it is stopped, even if the program drops all references to it.
@Suite struct LastingTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  @Test func whatAMemberHasBegunGoesOnWhoeverLetsGo() async throws {
    let heard = Heard<String>()
    weak var opening: SharedContainer?
    do {
      let other = try meeting.another()
      opening = other
      try await beginAll(by: other.join(as: "watch"), heard)
    }
    let phone = try await container.join(as: "phone")
    for round in 1...2 {
      try await useAll(from: phone, round)
      try await eventuallyAsync("all is heard") { heard.count >= round * 4 }
      #expect(
        Set(heard.all.suffix(4))
          == Set(
            ["received", "context", "immediate", "asked"].map {
              "\($0) \(round)"
            }))
    }
    #expect(opening != nil, "the member keeps it")
  }

  /// Starts every subscription that a member offers, and retains none.
  private func beginAll(by member: Member, _ heard: Heard<String>) throws {
    _ = try member.receive(Int.self) { number, _ in heard.add("received \(number)") }
    _ = try member.watchContexts { heard.add("context \((try? $0.value(as: Int.self)) ?? 0)") }
    _ = member.receiveImmediate { heard.add("immediate \((try? $0.value(as: Int.self)) ?? 0)") }
    _ = member.respond(to: Int.self) { number in
      heard.add("asked \(number)")
      return number
    }
  }

  private func useAll(from phone: Member, _ number: Int) async throws {
    let watch = phone.peer("watch")
    try await watch.send(number, .quick())
    try await watch.setContext(number)
    try await watch.sendImmediately(number)
    #expect(try await watch.request(number, as: Int.self) == number)
  }

  @Test func theEndsOfWhatWasSentAreToldWhoeverLetsGo() async throws {
    let heard = Heard<String>()
    let phone = try await container.join(as: "phone")
    _ = try phone.watchOutcomes { heard.add($0.id) }
    _ = try await meeting.another().join(as: "watch").receive { _ in }
    let sent = try await phone.peer("watch").send(1, .quick())
    try await eventuallyAsync("it is told") { heard.all == [sent.id] }
  }

  // MARK: The end

  @Test func closingAnOpeningEndsItsMembersAndWaits() async throws {
    let other = try meeting.another()
    let member = try await other.join(as: "watch")
    let (gate, heard) = (Gate(), Heard<Int>())
    let receiving = try member.receive(Int.self) { number, _ in
      gate.pass()
      heard.add(number)
    }
    let contexts = try member.watchContexts { _ in
      gate.pass()
      heard.add(2)
    }
    let phone = try await container.join(as: "phone")
    try await phone.peer("watch").send(1, .quick())
    try await phone.peer("watch").setContext(2)
    try await gate.somebodyComes()
    let closing = Task.detached { await other.close() }
    // The close ends only after the running callbacks.
    try await eventuallyAsync("it leaves") { other.subscriptions.count == 0 }
    gate.open()
    await closing.value
    let count = heard.count
    #expect(!member.isJoined)
    #expect(try container.peer("watch").reachability == .notRunning)
    try await receiving.finished()
    try await contexts.finished()
    #expect(heard.count == count)
    let late = try failure { _ = try other.join(as: "watch") }
    #expect(late.code == .cancelled)
    try await container.join(as: "watch").leave()
  }

  @Test(arguments: Way.allCases)
  func whoeverWaitsForTheEndIsToldOfIt(_ way: Way) async throws {
    let member = try await container.join(as: "watch")
    let all = [
      try member.receive { _ in }, try member.watchContexts { _ in },
      try member.watchOutcomes { _ in }, member.receiveImmediate { _ in },
      member.respond(toKind: nil) { $0.refuse("no") },
    ]
    // A channel's watch does not end with the member.
    let watching = try container.channel("number", of: Int.self).watch { _ in }
    let ended = Heard<Int>()
    let waiting = all.enumerated().map { index, one in
      Task {
        try await one.finished()
        ended.add(index)
      }
    }
    #expect(ended.count == 0)
    switch way {
    case .stop: for one in all { one.stop() }
    case .leave: await member.leave()
    case .close: await container.close()
    case .cancel: for task in waiting { task.cancel() }
    }
    for task in waiting { try await task.value }
    #expect(ended.count == all.count)
    #expect(container.subscriptions.count == (way == .close ? 0 : way == .leave ? 1 : 2))
    // A second `stop()` changes nothing, and a second `finished()` returns.
    for one in all {
      one.stop()
      try await one.finished()
    }
    watching.stop()
    try await watching.finished()
  }

  enum Way: CaseIterable { case stop, leave, close, cancel }

  @Test(arguments: ["remove", "move"])
  func theEndOfTheContainerIsThrown(_ way: String) async throws {
    let member = try await container.join(as: "watch")
    let all = [
      try container.channel("number", of: Int.self).watch { _ in },
      try member.receive { _ in }, try member.watchContexts { _ in },
      member.respond(toKind: nil) { $0.refuse("no") },
    ]
    let waiting = all.map { one in
      Task { () async throws -> WormholeError in
        try await failure { try await one.finished() }
      }
    }
    if way == "remove" {
      // A member whose directory is removed first leaves, and removes files of its own meanwhile.
      // If the removal is held up, the member makes directories again.
      try eventually("it is removed") {
        try run("rm", ["-rf", meeting.path]).status == .exited(0)
      }
    } else {
      #expect(try run("mv", [meeting.path, meeting.path + "2"]).status == .exited(0))
    }
    for task in waiting {
      let error = try await task.value
      #expect(error.code == .notAContainer)
    }
    // Each subscription learns of the end for itself, and so does the member.
    try await eventuallyAsync("nothing is left") {
      container.subscriptions.count == 0 && !member.isJoined
    }
  }

  /// If a receiver's callback leaves, no call waits for the callback.
  @Test(.blocking) func aClosureMayEndItsOwnMember() throws {
    let member = try container.join(as: "watch")
    let heard = Heard<Int>()
    _ = try member.receive(Int.self) { number, _ in
      member.leave()
      heard.add(number)
    }
    try container.peer("watch").send(1, .quick())
    try heard.wait("it is handled") { $0 == [1] }
    try eventually("it has left") { container.subscriptions.count == 0 }
    #expect(try meeting.names("members/watch/inbox") == [])
    // The message is acknowledged when the closure has returned.
    try eventually("it is acknowledged") { try meeting.names("members/watch/claimed") == [] }
  }

  @Test(.blocking) func aMemberThatLeavesLetsGoOfItsClosures() throws {
    let member = try container.join(as: "watch")
    weak let kept = try keptByClosures(of: member)
    #expect(kept != nil)
    member.leave()
    try eventually("nothing keeps it") { kept == nil }
  }

  /// Returns an object that only the callbacks of unretained subscriptions retain.
  private func keptByClosures(of member: Member) throws -> Heard<Int> {
    let heard = Heard<Int>()
    try member.receive { _ in heard.add(1) }
    try member.watchContexts { _ in heard.add(1) }
    try member.watchOutcomes { _ in heard.add(1) }
    member.receiveImmediate { _ in heard.add(1) }
    member.respond(toKind: nil) { _ in heard.add(1) }
    return heard
  }

  /// A program may retain ended subscriptions; the callbacks, and the objects they refer to, are
  /// gone.
  @Test(.blocking, arguments: [Way.stop, .close])
  func whoeverKeepsWhatHasEndedKeepsNoClosure(_ way: Way) throws {
    let member = try container.join(as: "watch")
    var all: [Subscription] = []
    weak let kept = try keptByClosures(of: member, &all)
    #expect(kept != nil)
    if way == .close { container.close() } else { for one in all { one.stop() } }
    try eventually("nothing keeps it") { kept == nil }
    for one in all { one.stop() }
  }

  /// Returns an object that only the callbacks of active subscriptions retain.
  private func keptByClosures(
    of member: Member, _ all: inout [Subscription]
  ) throws -> Heard<Int> {
    let heard = Heard<Int>()
    let number = container.channel("number", of: Int.self)
    all = [
      try number.watch { _ in heard.add(1) }, try number.watch { _ async in heard.add(1) },
      try container.watch(prefix: "", of: Int.self) { _ in heard.add(1) },
      try container.defaults("app").watch("key", of: Int.self) { _ in heard.add(1) },
      try container.notice("ready").watch { heard.add(1) },
      try container.watchMembers { _ in heard.add(1) },
      try container.peer("phone").watchReachability { _ in heard.add(1) },
      try member.receive { _ in heard.add(1) },
      try member.receive(on: DispatchQueue(label: "mine")) { _ in heard.add(1) },
      try member.receive { _ async in heard.add(1) },
      try member.watchContexts { _ in heard.add(1) },
      try member.watchOutcomes { _ in heard.add(1) },
      member.receiveImmediate { _ in heard.add(1) },
      member.respond(toKind: nil) { _ in heard.add(1) },
    ]
    return heard
  }

  /// The callback stops its own subscription and continues; a second thread that stops the
  /// subscription waits for the callback.
  @Test(.blocking, arguments: [false, true])
  func whoeverStopsASecondTimeWaitsForTheCallUnderWay(_ isResponder: Bool) throws {
    let own = Monitor<Subscription?>(nil)
    let (gate, ended) = (Gate(), Heard<String>())
    let body = { @Sendable in
      own.wait(until: .now + patience) { $0 }?.stop()
      gate.pass()
      ended.add("call")
    }
    let number = container.channel("number", of: Int.self)
    let subscription =
      isResponder
      ? try container.join(as: "watch").receiveImmediate { _ in body() }
      : try number.watch { _ in body() }
    own.signal { $0 = subscription }
    if isResponder {
      try container.peer("watch").sendImmediately(1)
    } else {
      try number.put(1)
    }
    try gate.waitForSomebody()
    let stopper = try Thread("stopper") {
      subscription.stop()
      ended.add("stop")
    }
    let _: Void? = Monitor(0).wait(until: .now + .milliseconds(50)) { _ in nil }
    #expect(ended.all == [])
    gate.open()
    stopper.join()
    #expect(ended.all == ["call", "stop"])
  }

  /// An object that a callback retains may stop a subscription when the object is released.
  @Test(.blocking) func whatAClosureKeptMayEndAnotherWhenItGoes() throws {
    let member = try container.join(as: "watch")
    for index in 0..<3 {
      let first = begin(index, by: member, keeping: nil)
      let second = begin(index, by: member, keeping: Ending(first))
      let stopped = Monitor(false)
      try Thread("stopper") {
        second.stop()
        stopped.withLock { $0 = true }
      }.detach()
      try eventually("it has stopped") { stopped.withLock { $0 } }
    }
    try eventually("the others have, too") { container.subscriptions.count == 1 }
  }

  private final class Ending: Sendable {
    private let subscription: Subscription
    init(_ subscription: Subscription) { self.subscription = subscription }
    deinit { subscription.stop() }
  }

  private func begin(
    _ index: Int, by member: Member, keeping kept: Ending?
  ) -> Subscription {
    switch index {
    case 0: member.receiveImmediate { _ in withExtendedLifetime(kept) {} }
    case 1: member.respond(toKind: nil) { _ in withExtendedLifetime(kept) {} }
    default: member.respond(to: Int.self) { number in withExtendedLifetime(kept) { number } }
    }
  }

  @Test(.blocking, .notSanitized("its bound on memory is for full speed"))
  func tenThousandBegunAndStoppedLeaveNothing() throws {
    let peer = try Running(.beginAndStop(meeting.path, rounds: 1000))
    let outcome = try peer.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let tolls = outcome.output.split(separator: "\n").map {
      $0.split(separator: " ").map { Int($0)! }
    }
    try #require(tolls.count == 2)
    let (before, after) = (tolls[0], tolls[1])
    // Threads are as many as have been busy at once, up to the system's own limit.
    let threads = after[2] - before[2]
    #expect(threads < 512, "threads: \(tolls)")
    #expect(after[0] - before[0] < 4096 + 64 * max(0, threads), "kilobytes: \(tolls)")
    #expect(after[1] <= before[1] + 1, "descriptors: \(tolls)")
  }
}
