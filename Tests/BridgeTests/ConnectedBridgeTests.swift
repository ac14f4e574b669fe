import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeHubProtocol
import WormholeSyscalls

@testable import WormholeBridge
@testable import WormholeRelay

/// What a bridge does at a connection whose servers have no records.
@Suite(.blocking) struct ConnectedBridgeTests {
  private static let (other, third) = ("000000000000000b", "000000000000000c")
  private let scene: ConnectedBridge

  init() throws { scene = try ConnectedBridge() }

  /// A bridge that has served ends because of a copy; one that has not served is itself the copy.
  @Test(arguments: [false, true])
  func whoeverHasServedIsFencedByAnother(_ hasServed: Bool) throws {
    let bridge = scene.one.bridge
    if hasServed { try bridge.place.begin(after: nil, nonce: bridge.nonce, bridge.folder) }
    bridge.recorded = (MachineRecord(generation: 7, nonce: "another"), 1)
    try bridge.claimPlace(scene.link, .now)
    let kind: BridgeEnd.Kind = hasServed ? .fenced : .refused
    #expect(bridge.end?.kind == kind)
    #expect(!scene.link.isServing && !scene.link.isClaiming)
  }

  /// Receiving programs may free space.
  @Test func aStartWaitsForSpaceOnTheDisk() throws {
    let (bridge, link) = (scene.one.bridge, scene.link)
    let rule = FaultRule(.rename, path: "place.plist", persistent: true, .fail(.noSpace))
    try FaultPoints.with([rule]) { try bridge.claimPlace(link, .now) }
    #expect(bridge.trouble?.contains("place.plist") == true && !link.isClaiming)
    try bridge.claimPlace(link, try #require(link.retry))
    #expect(link.isClaiming)
  }

  /// The record was read too late to show the servers' clock.
  @Test func aStartIsRecordedAgainUntilTheClockIsKnown() throws {
    let (bridge, link) = (scene.one.bridge, scene.link)
    try bridge.place.begin(after: nil, nonce: bridge.nonce, bridge.folder)
    bridge.recorded = (MachineRecord(generation: 1, nonce: bridge.nonce), 1)
    try bridge.claimPlace(link, .now)
    #expect(link.isClaiming && !link.isServing && bridge.claimed != nil)
    (link.isClaiming, bridge.bootTime) = (false, 0)
    try bridge.claimPlace(link, .now)
    #expect(!link.isClaiming && link.isServing && bridge.end == nil)
  }

  /// An operator names a second machine before the first one has the channel.
  @Test func aChannelMovesToTheMachineThatWasNamedLast() throws {
    let (bridge, container) = (scene.one.bridge, scene.one.container)
    try container.channel("seats", of: Int.self).put(1)
    #expect(try Bridge.addChannel("seats", of: container))
    for machine in [Self.other, Self.third] {
      try Bridge.moveChannel("seats", to: machine, of: container)
      bridge.channels.nextLook = .longAgo
      bridge.carryChannels(scene.link, .now)
      #expect(bridge.channels.moves["seats"]?.machine == machine)
    }
  }

  /// An operator may find the channel here again, and its former command must not move it on.
  @Test func aMoveThatHasEndedLeavesNoCommand() throws {
    let (bridge, container) = (scene.one.bridge, scene.one.container)
    try container.channel("seats", of: Int.self).put(1)
    #expect(try Bridge.addChannel("seats", of: container))
    try Bridge.moveChannel("seats", to: Self.other, of: container)
    bridge.lookAtList()
    #expect(bridge.channels.moves["seats"]?.machine == Self.other)
    // The record of the new home has arrived.
    note(home: Self.other, 3)
    bridge.carryChannels(scene.link, .now)
    #expect(bridge.channels.moves["seats"] == nil && bridge.channels.own["seats"] == nil)
    let entry = try ChannelList(of: container.storage).entry("seats")
    #expect(entry == ChannelList.Entry())
  }

  private func note(home machine: String, _ sequence: UInt64) {
    let message = StreamMessage(
      subject: "", headers: [], payload: Home.bytes(machine), sequence: sequence, timestamp: 1,
      pending: 0)
    scene.one.bridge.take(channelHome: "seats", message)
  }

  /// The system refuses a read for a moment, and no notice of the channel follows.
  @Test(arguments: [false, true])
  func aChannelThatCannotBeReadAtPresentIsReadAgain(_ isPublished: Bool) throws {
    let (bridge, link, container) = (scene.one.bridge, scene.link, scene.one.container)
    bridge.link = link
    let seats = container.channel("seats", of: Int.self)
    try seats.put(1)
    let version = try #require(try seats.metadata?.version)
    #expect(try Bridge.addChannel("seats", of: container))
    bridge.lookAtList()
    note(home: scene.one.machine, 1)
    if isPublished { bridge.channels.own["seats"]?.stored = version }
    // The list was read: the value alone is read from here on.
    bridge.channels.nextLook = .now + .seconds(600)
    let rule = FaultRule(
      .open, path: "seats/value.plist", persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { bridge.carryChannels(link, .now) }
    #expect(bridge.channels.conflicts["seats"] != nil)
    let next = try #require(bridge.channels.own["seats"]?.next)
    scene.server.stored = "whs."
    bridge.carryChannels(link, next)
    try scene.serve("the content is on the servers, and the trouble is over") {
      bridge.channels.own["seats"]?.stored == version && bridge.channels.conflicts["seats"] == nil
    }
  }

  /// The record of a move may arrive after the new home was given up: no later record frees it.
  @Test func aChannelIsTakenThatHasMovedToALostMachine() throws {
    let (one, link) = (scene.one, scene.link)
    let bridge = one.bridge
    // This machine was the home before.
    bridge.channels.claims = ["seats"]
    note(home: one.machine, 1)
    bridge.giveUp(Self.other, .putBack)
    note(home: Self.other, 2)
    try Bridge.moveChannel("seats", to: one.machine, of: one.container)
    let subject = try #require(link.subjects).channelRecord("seats")
    var isClaimed = false
    scene.server.script = { published in
      if published == subject { isClaimed = true }
      return nil
    }
    bridge.channels.nextLook = .longAgo
    bridge.carryChannels(link, .now)
    #expect(bridge.channels.conflicts["seats"] == nil)
    try scene.serve("the channel is claimed") { isClaimed }
  }

  /// A suspended machine resumes before its bridge reads the mark.
  @Test func noChangeIsMadeForAMachineThatWasGivenUp() throws {
    let bridge = scene.one.bridge
    bridge.link = scene.link
    bridge.begin(scene.link)
    bridge.channels.own["seats"] = ChannelTraffic.Own()
    let change = Carrier.ChannelChange(channel: "seats", operation: "1", expected: nil, value: nil)
    let bytes = try #require(
      ChannelTraffic.bytes(change, generation: 1, number: 1, offset: 0))
    func ask(from machine: String) {
      let subject = Subjects.word(.put, to: scene.one.machine, from: machine)
      bridge.take(word: RelayMessage(subject: subject, reply: "_INBOX.1", payload: bytes))
    }
    bridge.giveUp(Self.other, .putBack)
    ask(from: Self.other)
    #expect(bridge.channels.asked.isEmpty)
    ask(from: Self.third)
    #expect(Set(bridge.channels.asked.keys) == [["seats", Self.third]])
  }

  private func home(_ record: [UInt8]) -> Home? {
    Home(
      StreamMessage(
        subject: "", headers: [], payload: record, sequence: 0, timestamp: 1, pending: 0))
  }

  /// The command was killed after it had marked the machine: no record frees the name.
  @Test func aNameOfAMachineThatWasGivenUpIsClaimed() throws {
    let (one, link) = (scene.one, scene.link)
    let bridge = one.bridge
    let member = try one.container.join(as: "bob")
    defer { member.leave() }
    bridge.locals["bob"] = try one.container.peer("bob").profile
    bridge.homes["bob"] = home(Home.bytes(Self.other, after: home(Home.bytes(Self.third))))
    scene.server.stored = "whs."
    bridge.claimHomes(link)
    #expect(link.claims.isEmpty)
    #expect(bridge.residents.home("bob") == Self.other)
    bridge.giveUp(Self.other, .putBack)
    #expect(bridge.residents.home("bob") == nil)
    bridge.claimHomes(link)
    try scene.serve("the name is claimed") { !scene.server.log.isEmpty }
    let claimed = home(scene.server.log[0].payload)
    #expect(claimed?.machine == one.machine)
    #expect(claimed?.before == [Self.other, Self.third])
  }

  /// The member has run on the lost machine, and no program of this one has joined under its name.
  @Test func aNameThatWasOnlyShownIsNotClaimed() throws {
    let (bridge, link, container) = (scene.one.bridge, scene.link, scene.one.container)
    try showBob()
    bridge.homes["bob"] = home(Home.bytes(Self.other))
    bridge.giveUp(Self.other, .putBack)
    let profile = try #require(try container.peer("bob").profile)
    #expect(profile.machine == nil && profile.reachability == .notRunning)
    claimBob()
    #expect(bridge.locals.isEmpty && link.claims.isEmpty)
    let member = try container.join(as: "bob")
    defer { member.leave() }
    claimBob()
    #expect(link.claims == ["bob"])
  }

  /// The servers lose all records before a program joins at the new home.
  @Test func aNameThatHasMovedHereIsClaimedAgain() throws {
    let bridge = scene.one.bridge
    try showBob()
    bridge.homes["bob"] = home(Home.bytes(scene.one.machine))
    bridge.settleHome(of: "bob")
    #expect(bridge.conflicts.isEmpty && bridge.residents.all.isEmpty)
    bridge.homes["bob"] = nil
    claimBob()
    #expect(scene.link.claims == ["bob"])
  }

  private func showBob() throws {
    let digits = try #require(Incarnation(rawValue: "00000000000000ee"))
    let proxy = try scene.one.bridge.residents.proxy(of: .member("bob"), on: Self.other)
    try proxy.appear(as: digits, program: "p", since: Date())
  }

  private func claimBob() {
    var news = BridgeNews.NewsContent()
    news.members = ["bob"]
    scene.one.bridge.take(news, .now)
    scene.one.bridge.claimHomes(scene.link)
  }

  /// A former home may still hand on messages of third machines.
  @Test func aFreeNameKeepsItsFormerHomes() {
    let lost = home(Home.bytes(Self.other, after: home(Home.bytes(Self.third))))
    let free = home(Home.bytes(nil, after: lost))
    #expect(free != nil && free?.machine == nil)
    #expect(free?.before == [Self.other, Self.third])
    #expect(home(Home.bytes("000000000000000d", after: free))?.before == free?.before)
  }

  /// The servers were full for a moment, and the connection has lasted.
  @Test(arguments: [10077, 10023])
  func theTroubleOfAPublishIsOverWhenTheServersTakeIt(_ code: Int) throws {
    let (one, link) = (scene.one, scene.link)
    let member = try one.container.join(as: "bob")
    defer { member.leave() }
    one.bridge.locals["bob"] = try one.container.peer("bob").profile
    scene.server.script = { subject in
      guard subject.hasPrefix("whs.") else { return nil }
      let body = #"{"error":{"code":503,"err_code":\#(code),"description":"no more space"}}"#
      return (headers: "", body: body)
    }
    one.bridge.claimHomes(link)
    try scene.serve("the publish is refused") { one.bridge.trouble != nil }
    #expect(one.bridge.trouble?.hasPrefix("the servers are full: ") == true)
    // A publish on another subject shows nothing.
    let answered = Result<Void, RelayFailure>.success(())
    one.bridge.note(publish: answered, on: "whs.other")
    #expect(one.bridge.trouble != nil)
    // Refused claims are not repeated at once.
    #expect(link.nextHomeClaim > .longAgo)
    link.nextHomeClaim = .distantFuture
    one.bridge.claimHomes(link)
    one.bridge.claim(channel: "seats", link, try #require(link.subjects))
    #expect(link.claims.isEmpty && one.bridge.channels.claims.isEmpty)
    scene.server.script = { _ in nil }
    scene.server.stored = "whs."
    link.nextHomeClaim = .longAgo
    one.bridge.claimHomes(link)
    try scene.serve("the trouble is over") { one.bridge.trouble == nil }
  }

  /// The servers were full for a moment: the flow must not wait for another connection.
  @Test func aBundleThatTheServersRefuseIsPublishedAgain() throws {
    let (one, link) = (scene.one, scene.link)
    _ = try one.bridge.residents.proxy(of: .member("bob"), on: Self.other)
    let pair = try #require(one.bridge.pair(Self.other))
    try one.container.guest().peer("bob").send(1)
    scene.server.script = { subject in
      guard subject.hasPrefix("whf.") else { return nil }
      let body = #"{"error":{"code":503,"err_code":10077,"description":"maximum bytes exceeded"}}"#
      return (headers: "", body: body)
    }
    one.bridge.move(Self.other, pair, link, .now)
    try scene.serve("the servers are full") { pair.retry != nil }
    #expect(!pair.out.isPublished)
    scene.server.script = { _ in nil }
    scene.server.stored = "whf."
    try scene.serve("the bundle is published") {
      one.bridge.move(Self.other, pair, link, pair.retry ?? .now)
      return pair.out.isPublished
    }
    #expect(scene.server.log.count == 1)
    #expect(one.bridge.end == nil && one.bridge.failed.isEmpty)
  }

  /// What the servers have taken is not all that may hold up a bridge.
  @Test func anotherTroubleStaysWhenTheServersTakeAPublish() {
    let bridge = scene.one.bridge
    let refused = Result<Void, RelayFailure>.failure(RelayFailure(.timedOut, "no reply"))
    bridge.note(publish: refused, on: "whs.a")
    #expect(bridge.trouble == "no reply")
    bridge.note(trouble: "the servers refuse a right")
    bridge.note(publish: Result<Void, RelayFailure>.success(()), on: "whs.a")
    #expect(bridge.trouble == "the servers refuse a right")
  }

  /// While a failure is remembered, no guest is swept, and the next pause is longer.
  @Test func aFailureIsForgottenOnceTheFlowHasMovedOn() throws {
    let (one, bridge, link) = (scene.one, scene.one.bridge, scene.link)
    let files = try BridgeFolder(["out", Self.other], of: one.container.storage)
    let damaged: [UInt8] = [1]
    try files.write(OutFlow.stateName, damaged)
    #expect(bridge.pair(Self.other) == nil)
    let pause = bridge.failed[Self.other]?.pause
    #expect(pause != nil)
    try files.remove(OutFlow.stateName)
    bridge.failed[Self.other]?.until = Instant.longAgo
    let flow = try #require(bridge.pair(Self.other))
    // The servers of the test take no bundles.
    flow.isPublishing = true
    bridge.move(Self.other, flow, link, .now)
    let digits = try #require(Incarnation(rawValue: "00000000000000ee"))
    _ = try bridge.residents.proxy(of: .guest(digits), on: Self.other)
    (bridge.nextSweep, link.nextBeat) = (.longAgo, .longAgo)
    bridge.beat(link, .now)
    #expect(try !one.names("guests").contains(digits.rawValue))
    bridge.pairs[Self.other] = nil
    try files.write(OutFlow.stateName, damaged)
    #expect(bridge.pair(Self.other) == nil)
    #expect(bridge.failed[Self.other]?.pause == pause)
  }

  /// The next start of the bridge would claim the message again for its old number.
  @Test func aMessageWithANumberIsNotFree() throws {
    let one = scene.one
    let proxy = try one.bridge.residents.proxy(of: .member("bob"), on: Self.other)
    let pair = try #require(one.bridge.pair(Self.other))
    try one.container.guest().peer("bob").send(1)
    #expect(try pair.out.collect(from: [proxy]))
    let bundle = try pair.out.bundle(generation: 1, size: 400 << 10, largest: 900 << 10)
    let name = try #require(bundle?.entries.first?.name)
    let free = try ["bob", "carol"].filter {
      try pair.incoming.isFree(FlowEntry(.returned, to: $0, name))
    }
    #expect(free == ["carol"])
  }

  /// The outcome of the message would come to the new home of its sender.
  @Test func aMessageWhoseSenderHasMovedIsADeadLetterWithThisReason() throws {
    let (bridge, container) = (scene.one.bridge, scene.one.container)
    _ = try bridge.residents.proxy(of: .member("bob"), on: Self.other)
    let member = try container.join(as: "eve")
    var options = SendOptions()
    options.wantsOutcome = true
    try member.peer("bob").send(1, options)
    member.leave()
    try bridge.residents.move("eve", to: Self.third)
    let pair = try #require(bridge.pair(Self.other))
    // The servers of the test take no bundles.
    pair.isPublishing = true
    bridge.move(Self.other, pair, scene.link, .now)
    #expect(bridge.failed.isEmpty && pair.out.isPublished)
    let letters = try container.peer("bob").deadLetters
    let reason = "the home of its sender is another machine, and the message states no machine"
    #expect(letters.map(\.reason) == [reason])
  }

  // MARK: Connections

  /// The servers end the connection: until the next one, no member elsewhere can be reached.
  @Test func withoutAConnectionNoMemberElsewhereIsShown() throws {
    let folder = try TemporaryDirectory()
    let server = try LyingServer(seed: 1, lies: .none)
    let one = try UnconnectedBridge(folder.path + "/c", server.address)
    let proxy = try one.bridge.residents.proxy(of: .member("bob"), on: Self.other)
    let digits = try #require(Incarnation(rawValue: "00000000000000ee"))
    try proxy.appear(as: digits, program: "p", since: Date())
    let bob = one.container.peer("bob")
    #expect(try bob.reachability == .running)
    // Until the thread is joined, no other thread uses the bridge.
    nonisolated(unsafe) let bridge = one.bridge
    let news = bridge.news
    let thread = try Thread("bridge") { _ = try? bridge.run() }
    defer {
      news.stop()
      thread.join()
    }
    try eventually("the bridge connects") {
      _ = server.step(.now)
      return server.counts.connections > 0
    }
    server.dropConnections()
    try eventually("the member is not shown") {
      _ = server.step(.now)
      return try bob.reachability != .running
    }
  }

  @Test func theTroubleOfAConnectionIsOverWhenTheNextOneServes() {
    let bridge = scene.one.bridge
    bridge.note(trouble: "no connection")
    bridge.begin(scene.link)
    #expect(bridge.trouble == nil && scene.link.isServing)
  }

  /// The bridge of the member's machine was started again, and is asked again: the end of the
  /// first request ends no wake.
  @Test func aWakeWaitsForTheReplyToItsLatestRequest() throws {
    let (bridge, link, server) = (scene.one.bridge, scene.link, scene.server)
    (bridge.link, link.isServing) = (link, true)
    server.silentSubject = Subjects.word(.wake, to: Self.other, from: scene.one.machine)
    let proxy = try bridge.residents.proxy(of: .member("bob"), on: Self.other)
    bridge.wakes.pending["w"] = (proxy, Self.other, 0)
    var now = Instant.now
    func pass(_ time: Duration) {
      let end = now + time
      while now < end {
        now = now + .seconds(1)
        // The kernel may take a moment for what one of the two has sent.
        for _ in 0..<3 {
          _ = server.step(now)
          link.connection.proceed(now)
          Processes.yield()
        }
      }
    }
    bridge.repeatWakes(of: Self.other)
    pass(.seconds(20))
    bridge.repeatWakes(of: Self.other)
    pass(WakeWorker.patience - .seconds(10))
    #expect(bridge.wakes.pending["w"]?.attempt == 2)
    pass(.seconds(20))
    #expect(bridge.wakes.pending["w"] == nil)
  }

  /// Messages of the guest would be delivered to a directory that is gone.
  @Test func aGuestThatWasSweptHasANewProxyWhenItSendsAgain() throws {
    let (one, link) = (scene.one, scene.link)
    let digits = try #require(Incarnation(rawValue: "00000000000000ee"))
    let first = try one.bridge.residents.proxy(of: .guest(digits), on: Self.other)
    #expect(try one.names("guests").contains(digits.rawValue))
    (one.bridge.nextSweep, link.nextBeat) = (.longAgo, .longAgo)
    one.bridge.beat(link, .now)
    #expect(try !one.names("guests").contains(digits.rawValue))
    #expect(one.bridge.residents[.guest(digits)] == nil)
    let second = try one.bridge.residents.proxy(of: .guest(digits), on: Self.other)
    #expect(second !== first)
    #expect(try one.names("guests").contains(digits.rawValue))
  }
}
