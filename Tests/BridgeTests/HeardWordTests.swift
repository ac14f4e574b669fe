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

/// What a bridge takes of the messages of others, and what the doctor takes of the bridge's own
/// statement, without servers.
@Suite(.blocking) struct HeardWordTests {
  private let folder: TemporaryDirectory
  private let one: UnconnectedBridge
  private static let other = "000000000000000b"

  init() throws {
    folder = try TemporaryDirectory()
    one = try UnconnectedBridge(folder.path + "/c")
  }

  // MARK: Heartbeats

  private func hear(_ generation: Int, from machine: String, reply: String? = nil) throws {
    let bytes = try #require(Heartbeat.bytes(generation: generation, [], full: []))
    one.bridge.take(
      heartbeat: RelayMessage(subject: "whb.g.\(machine)", reply: reply, payload: bytes), .now)
  }

  /// The heartbeat of an earlier start may have been held up on its way.
  @Test func noBeatOfAnEarlierStartIsHeard() throws {
    for (generation, heard) in [(2, 2), (1, 2), (2, 2), (3, 3)] {
      try hear(generation, from: Self.other)
      #expect(one.bridge.beats[Self.other]?.generation == heard)
    }
  }

  /// A stream may repeat a message, whoever sent it, and the servers return a bridge's own beats.
  @Test func onlyOtherMachinesAreHeard() throws {
    try hear(1, from: Self.other, reply: "$JS.ACK.1")
    try hear(1, from: one.machine)
    try hear(1, from: "printer")
    #expect(one.bridge.beats.isEmpty)
    try hear(1, from: Self.other, reply: "_INBOX.1")
    #expect(Set(one.bridge.beats.keys) == [Self.other])
  }

  /// A suspended machine resumes before its bridge reads the mark.
  @Test func noBeatOfAMachineThatWasGivenUpIsHeard() throws {
    try hear(1, from: Self.other)
    one.bridge.giveUp(Self.other, .putBack)
    try hear(2, from: Self.other)
    #expect(one.bridge.beats.isEmpty)
  }

  /// What was published while the machine was away is asked for at once, and once.
  @Test func onlyTheFirstBeatOfAStartBeginsAnew() throws {
    let pair = try #require(one.bridge.pair(Self.other))
    for (generation, isNew) in [(1, true), (1, false), (2, true)] {
      pair.lastProgress = .now
      try hear(generation, from: Self.other)
      #expect((pair.lastProgress == .longAgo) == isNew, "\(generation)")
    }
  }

  // MARK: Words

  @Test func aWordHasFourPartsAndTheMachineOfItsSender() {
    let words: [Subjects.MachineWord] = [.confirm, .ask, .own, .live, .put, .wake, .here]
    for word in words {
      let subject = Subjects.word(word, to: one.machine, from: Self.other)
      #expect(subject == "whm.\(one.machine).\(word.rawValue).\(Self.other)")
      let read = Subjects.word(subject)
      #expect(read?.word == word && read?.sender == Self.other)
    }
    for end in ["put.printer", "put.", "put", "steal.\(Self.other)", "put.\(Self.other).x"] {
      let isWord = Subjects.word("whm.\(one.machine).\(end)") != nil
      #expect(!isWord, "\(end)")
    }
  }

  /// Otherwise each machine could ask in the name of the members of all others.
  @Test func aMachineAsksOnlyInTheNameOfItsOwnMembers() throws {
    let third = "000000000000000c"
    let bob = try one.container.join(as: "bob")
    let askers = Heard<String?>()
    let answering = bob.respond(toKind: nil) { request in
      askers.add(request.from)
      try? request.reply(7)
    }
    defer {
      answering.stop()
      bob.leave()
    }
    let digits = try #require(Incarnation(rawValue: "00000000000000ee"))
    try one.bridge.residents.proxy(of: .member("al"), on: Self.other)
      .appear(as: digits, program: "p", since: Date())
    let question = CarriedQuestion(
      .question, to: "bob", bob.incarnation, from: "al", digits, kind: "seats", headers: [:],
      .integer(1))
    let bytes = try #require(
      RequestTraffic.bytes(question, left: Duration.seconds(600).inNanoseconds, at: nil))
    let list = try BinaryPropertyList.decode(bytes)
    func ask(from machine: String) {
      let subject = Subjects.word(.live, to: one.machine, from: machine)
      let message = RelayMessage(subject: subject, reply: "_INBOX.1", payload: bytes)
      one.bridge.take(request: message, list, from: machine)
    }
    ask(from: third)
    #expect(one.bridge.traffic.held.map(\.machine) == [third])
    // The time in which its heartbeat could show the member is over.
    one.bridge.askHeld(Instant.now + RequestTraffic.patience + .seconds(60))
    #expect(one.bridge.traffic.held.isEmpty)
    ask(from: Self.other)
    #expect(one.bridge.traffic.held.isEmpty)
    try askers.wait("the request of the member's machine") { $0 == ["al"] }
  }

  // MARK: The doctor

  /// What the doctor finds without the servers, by the subjects.
  private func findings(_ status: PropertyListValue) throws -> [String: [Diagnosis]] {
    try one.bridge.folder.write(Bridge.statusName, status, sync: false)
    let address = try RelayAddress("nats://127.0.0.1:1")
    var settings = Bridge.Settings(group: "g", address: address)
    settings.patience = Duration.zero
    return Dictionary(grouping: BridgeDoctor.run(one.container, settings), by: \.subject)
  }

  @Test func eachTroubleThatTheBridgeStatesIsFound() throws {
    let found = try findings([
      "at": .date(Date().addingTimeInterval(-600)), "process": 7, "trouble": "it rains",
      "clock": -6.5, "conflicts": ["bob": "two homes"],
      "channels": ["seats": ["trouble": "too large"], "films": ["version": 1]],
      "queues": ["jobs": ["lent": 1, "trouble": "it moves"], "sound": ["lent": 1]],
      "machines": [Self.other: ["trouble": "the disk is full"], "c": ["next": 1]],
    ])
    func check(_ subject: String, _ severity: Diagnosis.Severity, _ text: String) {
      let all = found[subject] ?? []
      #expect(all.contains { $0.severity == severity && $0.what.contains(text) }, "\(found)")
    }
    check("bridge/lock", .fine, "a bridge serves the container (process 7)")
    check("bridge/status.plist", .problem, "the bridge has stated nothing for 60")
    check("bridge/status.plist", .problem, "trouble: it rains")
    check("member 'bob'", .problem, "two machines have the name: two homes")
    check("queue 'jobs'", .problem, "it is not carried: it moves")
    check("channel 'seats'", .problem, "it is not carried: too large")
    check("machine \(Self.other)", .problem, "its flows stand still: the disk is full")
    check("clock", .note, "the servers' clock is -6 s ahead of this machine's")
    check("servers", .problem, "")
    #expect(found["queue 'sound'"] == nil && found["machine c"] == nil)
    #expect(found["channel 'films'"] == nil)
  }

  @Test func aSoundStatementIsNoFinding() throws {
    let found = try findings(["at": .date(Date()), "process": 7, "clock": 4.5])
    #expect(Set(found.keys) == ["bridge", "bridge/lock", "servers"])
  }
}
