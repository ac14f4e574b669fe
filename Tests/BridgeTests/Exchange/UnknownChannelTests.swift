import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholePropertyLists
import WormholeRelay
import WormholeSyscalls

/// A machine that writes about channels which no machine has named: the bridges of the others keep
/// nothing of it.
@Suite(.blocking, .notSanitized("about processes and memory")) struct UnknownChannelTests {
  private let server: TestServer?
  private let folder: TemporaryDirectory
  private static let stranger = "0123456789abcdef"

  init() throws {
    server = try TestServer.start(syncAlways: false, for: "channels that no machine has named")
    folder = try TemporaryDirectory()
  }

  private func machine(_ server: TestServer) throws -> BridgedMachine {
    try BridgedMachine.setUp(server)
    let machine = try BridgedMachine(folder.path + "/c", server)
    try machine.start()
    return machine
  }

  /// The resident memory of the bridge, in MiB.
  private func memory(_ machine: BridgedMachine) throws -> Int {
    let process = try #require(machine.bridge?.child.process)
    let text = String(
      decoding: try Descriptor.open(path: "/proc/\(process)/status", [.readOnly]).contents(),
      as: UTF8.self)
    let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("VmRSS:") })
    return try #require(line.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int($0) })
      / 1024
  }

  /// The bridge has stored nothing of the channels, and states none.
  private func checkNothingIsKept(_ machine: BridgedMachine) throws {
    #expect(try machine.container.channels() == [])
    let status = try machine.status(["--json"])
    #expect(status.contains("\"channels\":{}"), "\(status.prefix(2000))")
    let folder = try Descriptor.open(path: machine.path + "/bridge", [.readOnly, .directory])
    for name in ["changes", "channels"] where try folder.names().contains(name) {
      let files = try Descriptor.open(
        path: "\(machine.path)/bridge/\(name)", [.readOnly, .directory]
      ).names()
      #expect(files == [], "\(name)")
    }
    #expect(machine.bridge?.hasEnded == false)
  }

  @Test func changesOfUnknownChannelsAreRefusedAndForgotten() throws {
    guard let server else { return }
    let machine = try machine(server)
    let identity = try BridgeStatus.identity(of: machine.container)
    let subject = "whm.\(identity.machine).put.\(Self.stranger)"
    let stranger = try Stranger(server)
    func ask(_ numbers: Range<Int>) throws {
      let replies = try stranger.ask(subject, numbers) { number in
        [
          "channel": .string("channel \(number)"), "operation": .string("\(number)"),
          "value": .string(String(repeating: "x", count: 100)), "generation": 1,
          "number": .integer(Int64(number)),
        ]
      }
      #expect(replies.count == numbers.count)
      #expect(replies.allSatisfy { $0["result"]?.stringValue == "unreachable" })
    }
    try ask(0..<2000)
    let before = try memory(machine)
    try ask(2000..<30_000)
    let growth = try memory(machine) - before
    #expect(growth < 16, "\(growth) MiB for 28 000 channels")
    try checkNothingIsKept(machine)
  }

  /// Contents without a home record: 128 MiB of them before the bridge starts, and as many after.
  @Test func contentsOfUnknownChannelsAreForgotten() throws {
    guard let server else { return }
    let machine = try machine(server)
    let stranger = try Stranger(server)
    func store(_ numbers: Range<Int>) throws {
      try stranger.store(numbers) { number in
        (
          "whs.0.g.v.channel\(number)",
          [
            "machine": .string(Self.stranger), "version": 1,
            "sent": .date(Date(timeIntervalSince1970: 1)),
            "writer": "w",
            "value": .data(Data(repeating: UInt8(number % 256), count: 128 << 10)),
          ]
        )
      }
    }
    /// The bridge has read everything when it has read a record behind it.
    func waitUntilRead(_ member: String) throws {
      try stranger.storeHome(of: member, Self.stranger)
      try eventually("the record of '\(member)' is read", within: .seconds(60)) {
        try machine.status(["--json"]).contains("\"\(member)\"")
      }
    }
    try waitUntilRead("first")
    let before = try memory(machine)
    try store(0..<1024)
    try waitUntilRead("second")
    let growth = try memory(machine) - before
    #expect(growth < 64, "\(growth) MiB for contents of 128 MiB")
    try checkNothingIsKept(machine)
    try machine.kill()
    try machine.start()
    try waitUntilRead("third")
    try store(0..<1)
    try waitUntilRead("fourth")
    try checkNothingIsKept(machine)
  }
}

/// A client with all rights, that speaks as a machine.
private final class Stranger {
  private let connection: RelayConnection
  private let stream: JetStream
  private let wake: WakeDescriptor

  init(_ server: TestServer) throws {
    let options = RelayOptions(name: "stranger", token: server.token)
    connection = try RelayConnection(RelayAddress(server.address), options)
    stream = JetStream(connection)
    wake = try WakeDescriptor()
    try run("the stranger is connected") { connection.state == .ready }
  }

  private func run(_ what: String, until isDone: () -> Bool) throws {
    var limit = TimeLimit(.seconds(120))
    while !isDone() {
      connection.proceed(.now)
      guard !limit.isOver() else { throw TooLate(description: "\(what); \(connection.state)") }
      if isDone() { return }
      try connection.wait(until: .now + .milliseconds(20), wake)
    }
  }

  /// Asks, at most 64 questions at a time, and returns the replies.
  func ask(
    _ subject: String, _ numbers: Range<Int>, _ question: (Int) -> [String: PropertyListValue]
  ) throws -> [PropertyListValue] {
    var replies: [PropertyListValue] = []
    var (next, waiting) = (numbers.lowerBound, 0)
    try run("all replies have arrived") {
      while waiting < 64, next < numbers.upperBound {
        let bytes = try? BinaryEncoder().encode(PropertyListValue.dictionary(question(next)))
        next += 1
        waiting += 1
        connection.request(subject, bytes ?? [], within: .seconds(60)) { result in
          waiting -= 1
          let list = (try? result.get()).flatMap { try? BinaryPropertyList.decode($0.payload) }
          if let list { replies.append(list) }
        }
      }
      return waiting == 0 && next == numbers.upperBound
    }
    return replies
  }

  func store(
    _ numbers: Range<Int>, _ record: (Int) -> (String, [String: PropertyListValue])
  ) throws {
    var (next, waiting, failed) = (numbers.lowerBound, 0, 0)
    try run("all records are stored") {
      while waiting < 16, next < numbers.upperBound {
        let (subject, list) = record(next)
        let bytes = try? BinaryEncoder().encode(PropertyListValue.dictionary(list))
        next += 1
        waiting += 1
        stream.publish(subject, bytes ?? [], within: .seconds(60)) { result in
          waiting -= 1
          if case .failure = result { failed += 1 }
        }
      }
      return waiting == 0 && next == numbers.upperBound
    }
    guard failed == 0 else { throw TooLate(description: "\(failed) records were refused") }
  }

  func storeHome(of member: String, _ machine: String) throws {
    var isStored = false
    stream.publish(
      "whs.0.g.m.\(member)", Array("{\"machine\":\"\(machine)\"}".utf8), within: .seconds(60)
    ) { if case .success = $0 { isStored = true } }
    try run("the home is recorded") { isStored }
  }
}
