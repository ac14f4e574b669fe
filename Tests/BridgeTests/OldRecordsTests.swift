import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeHubProtocol
import WormholeSyscalls

@testable import WormholeBridge
@testable import WormholeRelay

/// A message arrives before the record of its sender's home.
///
/// The records and the flows are in different streams, so the order of their arrival differs from
/// the order in which the servers have stored them.
@Suite(.blocking) struct OldRecordsTests {
  /// The machine that sends, and the home of the sender's name until now.
  private static let (other, former) = ("000000000000000b", "000000000000000c")

  private let scene: ConnectedBridge
  private let folder: TemporaryDirectory
  private let side: TwoMachines.Side
  private let eve: Member
  private var bridge: Bridge { scene.one.bridge }

  init() throws {
    scene = try ConnectedBridge()
    folder = try TemporaryDirectory()
    side = try TwoMachines.Side(Self.other, scene.one.machine, folder.path + "/there")
    _ = try side.residents.proxy(of: .member("al"), on: scene.one.machine)
    eve = try side.container.join(as: "eve")
    bridge.link = scene.link
    bridge.homes["eve"] = home(Self.former)
  }

  private func home(_ machine: String) -> Home? { Home(record(Home.bytes(machine), 1)) }

  private func record(_ bytes: [UInt8], _ sequence: UInt64) -> StreamMessage {
    StreamMessage(
      subject: "", headers: [], payload: bytes, sequence: sequence, timestamp: 1, pending: 0)
  }

  /// A bundle with a message of the member, as it travels, and the flow that receives the bundle.
  private func arrival(
    _ wantsOutcome: Bool, after records: Int
  ) throws -> (bundle: FlowBundle, flow: InFlow) {
    var options = SendOptions()
    options.durability = .process
    options.wantsOutcome = wantsOutcome
    try eve.peer("al").send(1, options)
    var bundle = try #require(try side.published().first)
    bundle.records = records
    let flow = try #require(bridge.pair(Self.other)).incoming
    try flow.begin(bundle.flow)
    return (try #require(bundle.encoded().flatMap { FlowBundle($0) }), flow)
  }

  private func letters() throws -> [String?] {
    try scene.one.container.peer("al").deadLetters.map(\.reason)
  }

  /// The former home was given up, and has reappeared as another machine, which sends at once.
  @Test(arguments: [false, true])
  func aSenderIsNotJudgedByOldRecords(_ wantsOutcome: Bool) throws {
    let (bundle, flow) = try arrival(wantsOutcome, after: 1)
    let error = #expect(throws: WormholeError.self) { try flow.receive([(bundle, 0)]) }
    #expect(error?.code == .unreachable)
    #expect(try letters() == [] && flow.refusals.waiting.isEmpty)
    scene.server.log.append(HubMessage("s.a", []))
    try scene.serve("the record is read") { scene.link.records?.position == 1 }
    bridge.homes["eve"] = home(Self.other)
    #expect(try flow.receive([(bundle, 0)]) == [.received(1)])
    #expect(try scene.one.names("members/al/inbox").count == 1)
  }

  /// The machine knows no more than this one: the name belongs to a third machine.
  @Test(arguments: [0, 1])
  func aSenderIsJudgedByRecordsThatAreNotOlder(_ records: Int) throws {
    scene.server.log.append(HubMessage("s.a", []))
    try scene.serve("the record is read") { scene.link.records?.position == 1 }
    let (bundle, flow) = try arrival(false, after: records)
    #expect(try flow.receive([(bundle, 0)]) == [.received(1)])
    #expect(try letters() == ["its home is machine \(Self.former)"])
    #expect(bridge.awaited.isEmpty)
  }

  /// The record was removed, or the machine states a record that has never been there.
  @Test func aRecordThatDoesNotArriveIsAwaitedForATime() throws {
    let (bundle, flow) = try arrival(false, after: 9)
    #expect(throws: WormholeError.self) { try flow.receive([(bundle, 0)]) }
    #expect(bridge.awaited[Self.other]?.position == 9)
    bridge.awaited[Self.other] = (9, Instant.now + .seconds(-30))
    #expect(throws: WormholeError.self) { try flow.receive([(bundle, 0)]) }
    bridge.awaited[Self.other] = (9, Instant.now + .seconds(-90))
    #expect(try flow.receive([(bundle, 0)]) == [.received(1)])
    #expect(try letters() == ["its home is machine \(Self.former)"])
  }

  /// The machine was silent after an earlier wait, whose record has arrived.
  @Test func aWaitDoesNotShortenTheNextOne() throws {
    scene.server.log.append(HubMessage("s.a", []))
    try scene.serve("the record is read") { scene.link.records?.position == 1 }
    let (bundle, flow) = try arrival(false, after: 2)
    bridge.awaited[Self.other] = (1, Instant.now + .seconds(-90))
    let error = #expect(throws: WormholeError.self) { try flow.receive([(bundle, 0)]) }
    #expect(error?.code == .unreachable)
    #expect(bridge.awaited[Self.other]?.position == 2)
    #expect(try letters() == [])
  }

  /// A wait that ended with the bundle would shorten the wait for the same record later, when the
  /// servers were restored.
  @Test func aBundleThatIsReceivedEndsTheWaitOfItsMachine() throws {
    let (bundle, _) = try arrival(false, after: 0)
    bridge.awaited[Self.other] = (9, Instant.now + .seconds(-30))
    let message = StreamMessage(
      subject: "flow.\(Self.other)", headers: [], payload: try #require(bundle.encoded()),
      sequence: 1, timestamp: 1, pending: 0)
    bridge.receive([message])
    #expect(try letters().count == 1)
    #expect(bridge.awaited.isEmpty)
  }

  /// A reader that begins again after a loss has the smaller positions of the restored servers.
  ///
  /// With the earlier position, each bundle would let its receiver wait for a record.
  @Test func theRecordsOfLostServersAreKnownNoLonger() {
    bridge.note(given: record([], 7))
    #expect(scene.link.knownRecords == 7)
    scene.link.comparedRestarts -= 1
    bridge.forgetLostRecords(scene.link)
    #expect(scene.link.knownRecords == 0)
  }

  /// A reader that begins again gives all records that are left: a lost one is not among them.
  @Test func recordsGivenBeforeARestartAreForgotten() throws {
    let reader = try #require(scene.link.records)
    scene.link.given = (reader.restarts - 1, ["lost"])
    for sequence: UInt64 in [1, 2] { bridge.note(given: record([], sequence)) }
    #expect(scene.link.given.restarts == reader.restarts)
    #expect(scene.link.given.subjects == [""])
  }

  /// The reader gives earlier records again, and the bridge still knows the later ones.
  @Test func aBundleStatesTheLatestRecordThatItsMachineHasRead() throws {
    for sequence: UInt64 in [7, 3] { bridge.note(given: record([], sequence)) }
    _ = try bridge.residents.proxy(of: .member("bob"), on: Self.other)
    let pair = try #require(bridge.pair(Self.other))
    try scene.one.container.guest().peer("bob").send(1)
    scene.server.stored = "whf."
    bridge.move(Self.other, pair, scene.link, .now)
    try scene.serve("the bundle is published") { !scene.server.log.isEmpty }
    #expect(FlowBundle(scene.server.log[0].payload)?.records == 7)
  }
}
