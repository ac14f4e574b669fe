import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeRelay
import WormholeSyscalls

@testable import WormholeBridge

/// What a bridge writes, reads and refuses in its own files, without servers.
@Suite(.blocking) struct BridgePartTests {
  private let folder: TemporaryDirectory
  private let container: SharedContainer
  private static let (own, other, third) = (
    "000000000000000a", "000000000000000b", "000000000000000c"
  )

  init() throws {
    folder = try TemporaryDirectory()
    container = try SharedContainer(directory: folder.path + "/c")
  }

  /// A file whose name survives a power cut must have its content then, too.
  @Test func aFileIsSyncedBeforeItHasItsName() throws {
    let bridge = try BridgeFolder(["out", Self.other], of: container.storage)
    let bytes: [UInt8] = [1]
    let rule = FaultRule(.fsync, persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) {
      #expect(throws: WormholeError.self) { try bridge.write("a", bytes) }
      #expect(throws: Never.self) { try bridge.write("b", bytes, sync: false) }
    }
    #expect(try bridge.names() == ["b"])
  }

  /// The last message that may be kept comes once more if its bridge was killed after keeping it.
  @Test func asManyMessagesAsMayBeAreKept() throws {
    let bridge = try BridgeFolder(["in", Self.other], of: container.storage)
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: false, count: 1,
      id: "m", from: "")
    let kept = KeptMessage(FlowEntry(.message, to: "bob", name), [1], "closed")
    func add(_ number: Int) throws { try KeptMessages.add(kept, number, of: "f", bridge) }
    for number in 2...KeptMessages.most {
      try bridge.write(number.fileName(of: "f") + KeptMessages.mark, [1], sync: false)
    }
    try add(1)
    #expect(try bridge.names().count == KeptMessages.most)
    for number in [1, KeptMessages.most] { try add(number) }
    #expect(try failure { try add(KeptMessages.most + 1) }.code == .full)
    #expect(try bridge.names().count == KeptMessages.most)
    let last = KeptMessages.most.fileName(of: "f") + KeptMessages.mark
    #expect(try bridge.read(last)?["reason"]?.stringValue == "closed")
  }

  /// After a kill, the next bridge repeats the steps: a file of a queue's message must not become a
  /// member's.
  @Test func aCursorIsReadAsItWasWritten() {
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: false, count: 1,
      id: "m", from: "al")
    let job = FlowJob(LentQueue.Job(id: "7.1", name: name, attempt: 2, isMarked: true))
    var cursor = FlowCursor(flow: "0123456789abcdef")
    (cursor.generation, cursor.number) = (3, 7)
    for resident in [Carrier.Resident.member("bob"), .queue("jobs")] {
      cursor.steps += [
        .attach(file: "f", number: 5, to: resident, as: name),
        .deliver(number: 5, to: resident, as: name), .cancel(to: resident, name),
      ]
    }
    cursor.steps += [
      .remove(file: "f"), .context(number: 6, to: "bob", name),
      .lend(number: 7, to: "jobs", as: name, job),
    ]
    #expect(FlowCursor(cursor.propertyList) == cursor)
  }

  /// Until the servers have the record of a later start, they show the earlier nonce: without the
  /// nonce, the bridge would take its own container for a copy.
  @Test func theRecordedNonceStaysHoweverOftenAStartIsRepeated() throws {
    let files = try BridgeFolder(of: container.storage)
    var place = try Place.open(files, group: "g", container.storage.options.environment)
    let record = MachineRecord(generation: 1, nonce: "recorded")
    try place.begin(after: nil, nonce: record.nonce, files)
    for number in 1...100 { try place.begin(after: record, nonce: "\(number)", files) }
    let read = try #require(try Place.read(files))
    #expect(read.nonces == ["recorded"] + (38...100).map { "\($0)" })
    #expect(read.generation == 101)
  }

  /// The file may come from an editor that ends lines in another way, or have a note below.
  @Test func theTokenIsTheFirstLineOfItsFile() throws {
    func token(_ text: String) throws -> String {
      try folder.write(text, to: "token")
      return try TokenFile.read(folder.path + "/token")
    }
    for text in ["t0ken", "t0ken\n", "t0ken\r\n", "t0ken\nof the leaf\n", "t0ken\r\nof it\r\n"] {
      let read = try? token(text)
      #expect(read == "t0ken", "\(text.debugDescription)")
    }
    for text in ["", "\n", "\r\nt0ken", "two words\n", "t\u{F6}ken", "t0ken\t\n"] {
      let error = #expect(throws: WormholeError.self) { _ = try token(text) }
      #expect(error?.code == .invalidValue, "\(text.debugDescription)")
    }
  }

  /// The other machine would wait for what is missing, and the operator would not learn why.
  @Test func theDoctorFindsAGapInAFlow() throws {
    let storage = container.storage
    _ = try Place.open(BridgeFolder(of: storage), group: "g", storage.options.environment)
    let residents = try Residents(container, Carrier(container))
    let proxy = try residents.proxy(of: .member("bob"), on: Self.other)
    let flow = try OutFlow(to: Self.other, residents)
    for number in 1...3 {
      try container.guest().peer("bob").send(number)
      #expect(try flow.collect(from: [proxy]))
    }
    var settings = Bridge.Settings(group: "g", address: try RelayAddress("nats://127.0.0.1:1"))
    settings.patience = Duration.zero
    func finding() throws -> Diagnosis {
      let found = BridgeDoctor.run(container, settings)
      return try #require(found.first { $0.subject == "bridge/out/\(Self.other)" })
    }
    #expect(try finding().what.hasPrefix("3 entries are not confirmed"))
    try #require(flow.records.map(\.first) == [1, 2, 3])
    let second = flow.records[1]
    let foreign = FlowRecord(
      flow: flow.flow, first: second.first, before: .start, entries: second.entries)
    try flow.folder.replace(second.first.fileName, by: foreign.propertyList)
    let other = try finding()
    #expect(other.severity == .problem && other.what == "a gap before number 2, after 1")
    try flow.folder.remove(second.first.fileName)
    let gap = try finding()
    #expect(gap.severity == .problem && gap.what == "a gap before number 3, after 1")
  }

  // MARK: Status

  @Test func theStatusIsWrittenWhenItHasChangedOrIsOld() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    func state() throws -> String? {
      try one.bridge.folder.read(Bridge.statusName)?["state"]?.stringValue
    }
    one.bridge.writeStatus()
    #expect(try state() == "connecting")
    try one.bridge.folder.remove(Bridge.statusName)
    one.bridge.writeStatus()
    #expect(try state() == nil, "nothing has changed")
    one.bridge.written?.at = .longAgo
    one.bridge.writeStatus()
    #expect(try state() == "connecting")
    one.bridge.writeStatus(isOver: true)
    #expect(try state() == "over")
  }

  @Test func theReasonOfTheEndIsTheLastTrouble() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    func trouble() throws -> String? {
      try one.bridge.folder.read(Bridge.statusName)?["trouble"]?.stringValue
    }
    one.bridge.note(trouble: "no connection")
    one.bridge.writeStatus()
    #expect(try trouble() == "no connection")
    one.bridge.end = BridgeEnd(.fenced, "another bridge has continued", hint: "find the copy")
    one.bridge.writeStatus(isOver: true)
    #expect(try trouble() == "another bridge has continued; find the copy")
  }

  /// The file is not synced, so a power cut may damage it: no new machine is needed for that.
  @Test func aDamagedStatusIsWrittenAgain() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    try folder.write("torn", to: "c/bridge/status.plist")
    let error = try failure { _ = try BridgeStatus.read(container) }
    let hint = "start 'wormhole bridge': the bridge writes the file again"
    #expect(error.code == .damaged && error.hint == hint)
    let address = try RelayAddress("nats://127.0.0.1:1")
    var settings = Bridge.Settings(group: "g", address: address)
    settings.patience = Duration.zero
    let found = BridgeDoctor.run(container, settings).filter { $0.subject.hasPrefix("bridge") }
    #expect(found.contains { $0.subject == "bridge/status.plist" && $0.advice == hint })
    #expect(!found.contains { $0.advice?.contains("rejoin") == true }, "\(found)")
    one.bridge.writeStatus()
    #expect(try BridgeStatus.read(container) != nil)
  }

  /// Once a bridge has served its machine, the servers may be away for any time.
  @Test func onlyABridgeThatHasNotStartedEndsWithoutServers() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let failure = RelayFailure(.unreachable, "no route")
    let (past, future) = (Instant.now + .seconds(-1), Instant.now + .seconds(1000))
    for end in [nil, future] as [Instant?] {
      #expect(throws: Never.self) { try one.bridge.note(failure: failure, end) }
    }
    let end = #expect(throws: BridgeEnd.self) { try one.bridge.note(failure: failure, past) }
    #expect(end?.kind == .unavailable)
    one.bridge.hasStarted = true
    #expect(throws: Never.self) { try one.bridge.note(failure: failure, past) }
  }

  /// A flow that is read again counts as failed only while its files cannot be read.
  @Test func aFlowThatHasFailedIsInTheStatus() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    func flow() throws -> PropertyListValue? {
      one.bridge.writeStatus()
      return try one.bridge.folder.read(Bridge.statusName)?["machines"]?[Self.other]
    }
    let files = try BridgeFolder(["out", Self.other], of: one.container.storage)
    let bytes: [UInt8] = [1]
    try files.write(OutFlow.stateName, bytes)
    #expect(one.bridge.pair(Self.other) == nil)
    let trouble = try flow()?["trouble"]?.stringValue
    #expect(trouble?.contains("the file of the bridge is damaged") == true)
    #expect(one.bridge.nextResumption != nil)
    try files.remove(OutFlow.stateName)
    one.bridge.failed[Self.other]?.until = Instant.longAgo
    one.bridge.resumeFailed(.now)
    #expect(one.bridge.nextResumption == nil)
    let resumed = try flow()
    #expect(resumed?["trouble"] == nil && resumed?["next"]?.intValue == 1)
  }

  @Test func theStatusHasALineForEachMatter() throws {
    let status: PropertyListValue = [
      "machine": .string(Self.own), "group": "g", "state": "serving", "generation": 3,
      "trouble": "it rains",
      "machines": [
        Self.third: ["trouble": "the disk is full"],
        Self.other: ["next": 5, "confirmed": 2, "received": 7, "running": 2],
      ],
      "channels": [
        "seats": ["home": .string(Self.own), "version": 3], "far": ["trouble": "too large"],
      ],
      "queues": ["jobs": ["home": .string(Self.other), "lent": 3, "trouble": "moves"]],
      "conflicts": ["bob": "two homes"],
    ]
    try BridgeFolder(of: container.storage).write(Bridge.statusName, status, sync: false)
    let read = try #require(try BridgeStatus.read(container))
    #expect(!read.isRunning)
    #expect(
      read.lines == [
        "machine \(Self.own) of group 'g': over, start 3", "trouble: it rains",
        "to \(Self.other): 2 of 4 confirmed, 7 received, 2 members run",
        "to \(Self.third): the disk is full", "channel 'far': home not known yet: too large",
        "channel 'seats': home this machine, version 3",
        "queue 'jobs': home \(Self.other), 3 lent: moves", "conflict: 'bob': two homes",
      ])
  }

  @Test func aContainerWithoutABridgeHasNoMachine() throws {
    let error = #expect(throws: WormholeError.self) { _ = try BridgeStatus.identity(of: container) }
    #expect(error?.code == .notFound)
    #expect(error?.reason == "no bridge has ever served this container")
    // The question makes nothing.
    #expect(try !container.storage.hasBridge)
  }

  // MARK: Commands

  @Test func aQueueWithAHomeElsewhereIsNotNamed() throws {
    let list = try QueueList(of: container.storage)
    var entry = QueueList.Entry()
    (entry.heir, entry.term) = (Self.other, 1)
    try list.replace("given", by: entry)
    let given = #expect(throws: WormholeError.self) {
      _ = try Bridge.addQueue("given", of: container)
    }
    #expect(given?.code == .conflict)
    #expect(given?.reason == "its home moves to machine \(Self.other)")
    #expect(try list.entry("given") == entry)
    _ = try Carrier(container).proxy(ofQueue: "far", on: Self.other)
    let far = #expect(throws: WormholeError.self) {
      _ = try Bridge.addQueue("far", of: container)
    }
    #expect(far?.code == .conflict)
    #expect(far?.reason == "its home is another machine, '\(Self.other)'")
    #expect(try list.entry("far") == nil)
  }

  /// A running bridge would go on under the machine's former name.
  @Test func aContainerWithABridgeBecomesNoNewMachine() throws {
    let one = try UnconnectedBridge(folder.path + "/c")
    let error = #expect(throws: WormholeError.self) {
      _ = try MachineRejoin.run(container, drops: false)
    }
    #expect(error?.code == .conflict && error?.reason == "a bridge serves the container")
    #expect(try BridgeStatus.identity(of: container).machine == one.machine)
  }

  // MARK: Heartbeats

  @Test func aBeatStatesItsIntervalWithinLimits() throws {
    let stated: [(Duration, Duration)] = [
      (.zero, .seconds(1)), (.milliseconds(999), .seconds(1)), (.seconds(5), .seconds(5)),
      (.seconds(60), .seconds(60)), (.seconds(61), .seconds(60)),
    ]
    for (interval, expected) in stated {
      let bytes = try #require(
        Heartbeat.bytes(generation: 7, [], full: ["bob"], interval: interval))
      let beat = try #require(Heartbeat(bytes, .now))
      #expect(beat.interval == expected && beat.longestSilence == expected * 4)
      #expect(beat.generation == 7 && beat.full == ["bob"])
    }
  }

  /// The profile of a member that has left stays in the container.
  @Test func aBeatStatesOnlyTheMembersThatRun() throws {
    let al = try container.join(as: "al")
    try container.join(as: "bo").leave()
    let members = try container.members()
    #expect(members.map(\.name).sorted() == ["al", "bo"])
    let bytes = try #require(Heartbeat.bytes(generation: 1, members, full: []))
    let beat = try #require(Heartbeat(bytes, .now))
    #expect(Array(beat.running.keys) == ["al"])
    al.leave()
  }

  /// Whoever has the right may send anything.
  @Test func whatABeatMayNotStateIsLeftOut() throws {
    let run: PropertyListValue = [
      "incarnation": "0123456789abcdef", "program": "p", "since": .date(Date()),
    ]
    func changed(_ key: String, _ value: PropertyListValue) -> PropertyListValue {
      var list = run.dictionaryValue ?? [:]
      list[key] = value
      return .dictionary(list)
    }
    let long = { (count: Int) in PropertyListValue.string(String(repeating: "x", count: count)) }
    let list: PropertyListValue = [
      "generation": 1, "every": .real(.nan),
      "here": [
        "al": run, "long": changed("program", long(1024)),
        "longer": changed("program", long(1025)), "nobody": changed("incarnation", "x"),
      ],
      "work": [
        "none": work(-1), "empty": work(0), "most": work(1024), "more": work(1025),
      ],
      "heirs": ["sound": ["machine": .string(Self.other), "term": 2], "torn": ["term": 2]],
      "late": ["a", 1],
    ]
    let beat = try #require(Heartbeat(try BinaryEncoder().encode(list), .now))
    #expect(beat.running.keys.sorted() == ["al", "long"])
    #expect(beat.work.keys.sorted() == ["empty", "most"])
    #expect(beat.work["most"]?.held == ["a"])
    #expect(beat.heirs == ["sound": Heartbeat.Heir(machine: Self.other, term: 2, before: [])])
    #expect(beat.late == ["a"] && beat.interval == .seconds(1))
  }

  private func work(_ room: Int64) -> PropertyListValue {
    ["machine": .string(Self.own), "room": .integer(room), "held": ["a", 1]]
  }
}
