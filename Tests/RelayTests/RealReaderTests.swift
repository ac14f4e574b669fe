import TestSupport
import TestTraits
import Testing
import WormholeRelay
import WormholeSyscalls

/// Readers of streams of a real server.
@Suite(.blocking) struct RealReaderTests {
  private static func server() throws -> TestServer? {
    try TestServer.start(syncAlways: false, for: "readers of a real server's streams")
  }

  @Test func allMessagesArriveInOrderAndTheNewOnesToo() throws {
    guard let server = try Self.server() else { return }
    let loop = try RelayLoop(server.address)
    try loop.create("ONE")
    var acknowledged = 0
    for number in 1...1500 {
      loop.stream.publish(
        "one.\(number % 2)", headers: [("Number", "\(number)")], Array("\(number)".utf8),
        within: patience
      ) { if case .success = $0 { acknowledged += 1 } }
    }
    try loop.run("all are stored") { acknowledged == 1500 }

    var all: [StreamMessage] = []
    var odd: [StreamMessage] = []
    var batches = 0
    let reader = StreamReader(loop.stream, stream: "ONE", filter: "one.>", from: .after(0)) {
      all += $0
      batches += 1
    }
    let second = StreamReader(loop.stream, stream: "ONE", filter: "one.1", from: .after(1000)) {
      odd += $0
    }
    loop.readers = [reader, second]
    try loop.run("all are read") { reader.isCaughtUp && second.isCaughtUp }
    #expect(all.map(\.sequence) == Array(1...1500))
    #expect(all.map { text($0.payload) } == (1...1500).map { "\($0)" })
    #expect(all.last?.header("number") == "1500")
    #expect(all.last?.pending == 0)
    #expect(odd.map(\.sequence) == (1001...1500).filter { $0 % 2 == 1 })
    #expect(reader.position == 1500 && reader.failure == nil && reader.restarts == 0)
    #expect(batches < 300, "messages arrive together")

    try loop.store("one.0", "new")
    try loop.run("a new message is read") { all.count == 1501 }
    second.stop()
    try loop.store("one.1", "unread")
    try loop.run("the stopped reader reads nothing") { all.count == 1502 }
    #expect(odd.count == 250)
  }

  @Test func theLatestMessageOfEachSubjectArrives() throws {
    guard let server = try Self.server() else { return }
    let loop = try RelayLoop(server.address)
    try loop.create("ONE")
    for (subject, value) in [("one.a", "1"), ("one.b", "2"), ("one.a", "3")] {
      try loop.store(subject, value)
    }
    var all: [StreamMessage] = []
    let reader = StreamReader(loop.stream, stream: "ONE", filter: "one.>", from: .lastPerSubject) {
      all += $0
    }
    loop.readers = [reader]
    try loop.run("the latest are read") { reader.isCaughtUp }
    #expect(all.map { text($0.payload) } == ["2", "3"])
    let empty = StreamReader(loop.stream, stream: "ONE", filter: "one.c", from: .after(0)) {
      all += $0
    }
    loop.readers.append(empty)
    try loop.run("a reader without messages is caught up") { empty.isCaughtUp }
    #expect(all.count == 2)
  }

  @Test func aReaderWaitsForItsStream() throws {
    guard let server = try Self.server() else { return }
    let loop = try RelayLoop(server.address)
    var all: [StreamMessage] = []
    let reader = StreamReader(loop.stream, stream: "ONE", filter: "one.>", from: .after(0)) {
      all += $0
    }
    loop.readers = [reader]
    try loop.run("the stream is missing") {
      reader.failure?.errorCode == JetStreamError.noStream
    }
    try loop.create("ONE")
    try loop.store("one.a", "1")
    try loop.run("the message is read") { all.count == 1 }
    #expect(reader.failure == nil)
  }

  @Test func aLostConsumerIsCreatedAgainBehindTheLastMessage() throws {
    guard let server = try Self.server() else { return }
    let loop = try RelayLoop(server.address)
    try loop.create("ONE")
    try loop.store("one.a", "1")
    var all: [StreamMessage] = []
    let reader = StreamReader(loop.stream, stream: "ONE", filter: "one.>", from: .after(0)) {
      all += $0
    }
    loop.readers = [reader]
    try loop.run("the first is read") { all.count == 1 }
    let listed: Result<RelayMessage, RelayFailure> = try loop.result {
      loop.connection.request("$JS.hub.API.CONSUMER.NAMES.ONE", [], within: patience, $0)
    }
    let parts = text(try listed.get().payload).split(separator: "\"")
    let name = try #require(parts.first { $0.hasPrefix("r") && $0.count > 10 })
    let deleted: Result<RelayMessage, RelayFailure> = try loop.result {
      loop.connection.request("$JS.hub.API.CONSUMER.DELETE.ONE.\(name)", [], within: patience, $0)
    }
    #expect(text(try deleted.get().payload).contains("success"))
    try loop.store("one.a", "2")
    try loop.run("the second is read") { all.count == 2 }
    #expect(all.map(\.sequence) == [1, 2])
    #expect(reader.restarts > 0 && !reader.wasReset)
  }

  @Test func aRestartedServerIsReadOnAndALostStreamFromItsBeginning() throws {
    guard let server = try Self.server() else { return }
    var all: [StreamMessage] = []
    var loop = try RelayLoop(server.address)
    func read(from position: UInt64) -> StreamReader {
      let reader = StreamReader(
        loop.stream, stream: "ONE", filter: "one.>", from: .after(position)
      ) { all += $0 }
      loop.readers = [reader]
      return reader
    }
    try loop.create("ONE")
    for number in 1...5 { try loop.store("one.a", "\(number)") }
    var reader = read(from: 0)
    try loop.run("five are read") { all.count == 5 }
    var result: Result<RelayMessage, RelayFailure>?
    loop.connection.subscribe("silent") { _ in }
    loop.connection.request("silent", [], within: patience) { result = $0 }
    try server.restart()
    try loop.run("the connection ends") { loop.connection.state != .ready }
    guard case .failure(let failure) = result else {
      Issue.record("the pending request did not fail")
      return
    }
    #expect(failure.kind == .closed)

    loop = try RelayLoop(server.address)
    try loop.store("one.a", "6")
    reader = read(from: reader.position)
    try loop.run("the sixth is read") { all.count == 6 }
    #expect(all.map(\.sequence) == Array(1...6))
    #expect(!reader.wasReset)

    try server.kill()
    try server.removeData()
    try server.restart()
    loop = try RelayLoop(server.address)
    try loop.create("ONE")
    try loop.store("one.a", "again")
    reader = read(from: reader.position)
    try loop.run("the new stream is read") { all.count == 7 }
    #expect(reader.wasReset && reader.position == 1)
    #expect(all.last.map { text($0.payload) } == "again")
  }
}
