import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

/// Contexts between two machines, without servers: the latest one arrives, and none twice.
@Suite(.blocking) struct ContextFlowTests {
  private let machines: TwoMachines
  private let bob: Member
  private let heard = Heard<Int>()
  private let watching: Subscription

  init() throws {
    machines = try TwoMachines()
    bob = try machines.there.join(as: "bob")
    watching = try bob.watchContexts { [heard] context in
      heard.add((try? context.value(as: Int.self)) ?? -1)
    }
  }

  private func set(_ number: Int) throws {
    try machines.sender.peer("bob").setContext(number, durability: .process)
  }

  /// The other machine has the latest context, and has given each at most once.
  private func check(_ last: Int, _ place: String) throws {
    // A newer one follows when the earlier one is stored.
    for _ in 0..<2 { try machines.settle() }
    try heard.wait("context \(last)", within: patience) { $0.last == last }
    let all = heard.all
    #expect(all == Set(all).sorted(), "\(place)")
    #expect(try machines.names("here/members/bob/context") == ["al"], "\(place)")
  }

  @Test func theLatestContextArrives() throws {
    for number in 1...5 { try set(number) }
    try check(5, "at first")
    #expect(heard.all == [5])
    #expect(try machines.sender.peer("bob").sentContext?.isReceived == true)
    #expect(try bob.peer("al").receivedContext?.value(as: Int.self) == 5)
    try set(6)
    try check(6, "again")
  }

  /// While the other machine confirms nothing, one context is in transit, and one waits.
  @Test func contextsDoNotPileUp() throws {
    machines.wire = { _ in 0 }
    for number in 1...50 {
      try set(number)
      try machines.pump()
    }
    let out = try machines.opened().here.out
    #expect(out.next == 2)
    #expect(out.boundContexts == [["bob", "al"]])
    machines.wire = { _ in 1 }
    try check(50, "after the cut")
    #expect([[1, 50], [50]].contains(heard.all) && out.next == 3)
  }

  /// Contexts and messages of a flow keep their order, and each pair of members has its own.
  @Test func eachSenderHasItsOwn() throws {
    let other = try machines.here.join(as: "eve")
    try other.peer("bob").setContext(-7, durability: .process)
    try set(3)
    try machines.settle()
    try heard.wait("both", within: patience) { $0.count == 2 }
    #expect(heard.all.sorted() == [-7, 3])
  }

  /// The bridge dies after it has claimed a newer context, and before the newer one has a number.
  @Test func aNewerContextIsNotTakenForTheOneInTransit() throws {
    try set(1)
    let bundles = try machines.published()
    try machines.receive(bundles)
    try set(2)
    let sides = try machines.opened()
    // The claim of the next bridge.
    try sides.here.out.confirm(#require(sides.there.incoming.position))
    let rules = [Call.write, .fsync, .rename].map {
      FaultRule($0, path: "0000000000000002", persistent: true, .fail(.inputOutput))
    }
    FaultPoints.with(rules) {
      #expect(throws: WormholeError.self) { _ = try machines.published() }
    }
    #expect(try machines.names("here/members/bob/context").contains("al,taking"))
    machines.kill()
    #expect(throws: Never.self) { try check(2, "after the kill") }
  }

  @Test func aContextThatIsTooLargeWaits() throws {
    let large = String(repeating: "x", count: OutFlow.largestContext)
    try machines.sender.peer("bob").setContext(large, durability: .process)
    try machines.settle()
    #expect(try machines.names("here/members/bob/context") == ["al,taking"])
    try set(2)
    try check(2, "after a smaller one")
    #expect(heard.all == [2])
  }

  /// A member's owner has closed the directory, and the sender sets one context after the other.
  @Test func aContextThatCannotBeDeliveredLeavesNoFile() throws {
    let rule = FaultRule(
      .open, path: "there/members/bob", persistent: true, .fail(.accessDenied))
    try set(1)
    try FaultPoints.with([rule]) { try machines.pump() }
    #expect(try machines.opened().there.incoming.position?.number == 1)
    #expect(
      try machines.names("there/bridge/in/\(TwoMachines.hereName)") == ["cursor.plist"])
    try set(2)
    try check(2, "once the directory is open")
    #expect(heard.all == [2])
  }

  /// A name of the other machine is no sender's of this one.
  @Test func aContextUnderATakenNameIsRefused() throws {
    let namesake = try machines.there.join(as: "al")
    try set(1)
    try machines.settle()
    #expect(try machines.names("there/members/bob/context") == [])
    withExtendedLifetime(namesake) {}
  }

  /// The home of the receiver moves while its context is in transit to the old home.
  @Test func aContextFollowsTheHomeOfItsReceiver() throws {
    try set(1)
    let bundles = try machines.published()
    let here = try machines.opened().here
    let third = "000000000000000c"
    try here.residents.move("bob", to: third)
    try machines.receive(bundles)
    try here.out.confirm(#require(try machines.opened().there.incoming.position))
    #expect(try machines.names("here/members/bob/context") == ["al,taking"])
    let out = try OutFlow(to: third, here.residents)
    _ = try out.collect(from: here.residents.all(on: third))
    #expect(out.boundContexts == [["bob", "al"]])
    let bundle = try #require(try out.bundle(generation: 1, size: 400 << 10, largest: 900 << 10))
    #expect(bundle.bodies.compactMap { $0 }.count == 1)
  }

  /// A former home of the receiver hands a context on, and a newer one has come the short way.
  @Test(arguments: [true, false]) func aContextThatIsHandedOnReplacesNoNewerOne(
    _ hasNewer: Bool
  ) throws {
    try set(1)
    let bundles = try machines.published()
    try set(2)
    let residents = try machines.opened().there.residents
    residents.home = { $0 == "al" ? "000000000000000c" : nil }
    residents.formerHomes = { $0 == "bob" ? [TwoMachines.hereName] : [] }
    if hasNewer {
      let name = "members/bob/context/al,next"
      let script = "cp here/\(name) copy && mv copy there/\(name)"
      let copy = try run("sh", ["-c", "cd '\(machines.folder.path)' && \(script)"])
      try #require(copy.status == .exited(0), "\(copy.errors)")
      try heard.wait("the newer one", within: patience) { $0 == [2] }
    }
    try machines.receive(bundles)
    if !hasNewer { try heard.wait("the context", within: patience) { $0 == [1] } }
    // A context gets its last name after its handler has begun.
    try eventually("no context waits") {
      try machines.names("there/members/bob/context") == ["al"]
    }
    #expect(heard.all == [hasNewer ? 2 : 1])
  }

  /// The bridges are killed before each of their calls, one after the other, or the call fails.
  @Test(arguments: [true, false])
  func whicheverCallIsTheLast(_ isKilled: Bool) throws {
    let step = TestRun.isLong ? 1 : 11
    var call = 1 + Int(TestRun.seed % UInt64(step))
    var last = 0
    while true {
      try set(last + 1)
      let rule = FaultRule(nil, number: call, persistent: isKilled, .fail(.inputOutput))
      var failure: (any Error)?
      let calls = FaultPoints.with([rule]) {
        do { try machines.pump() } catch { failure = error }
      }
      if failure != nil || isKilled { machines.kill() }
      try set(last + 2)
      try check(last + 2, "call \(call), killed: \(isKilled)")
      last += 2
      guard calls.count >= call else { break }
      call += step
    }
    #expect(call > 40, "only \(call) calls")
  }
}
