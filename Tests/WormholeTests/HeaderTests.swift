import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The headers of messages and requests, from the sender to each reader.
@Suite struct HeaderTests {
  private typealias Heard = TestSupport.Heard

  private static let headers = ["trace-id": "0af7651916cd43dd", "tenant": "türkis 🌍", "empty": ""]

  @Test(.blocking) func messagesBatchesAndFilesHaveThem() throws {
    let pair = try Pair()
    let heard = Heard<[String: String]>()
    let options = SendOptions(durability: .process, headers: Self.headers)
    let sent = try pair.phone.send(1, options)
    try pair.phone.send(contentsOf: [2, 3], options)
    try pair.meeting.folder.write("a file", to: "file")
    let path = pair.meeting.folder.path + "/file"
    try pair.phone.send(file: path, metadata: 1, options)
    try pair.phone.send(file: path, options)
    var urgent = SendOptions(durability: .process, timeToLive: .seconds(60), headers: Self.headers)
    try pair.phone.send(4, urgent)
    urgent.headers = [:]
    try pair.phone.send(5, urgent)
    #expect(try sent.headers == Self.headers)
    #expect(try pair.phone.queue.map(\.headers).dropLast().allSatisfy { $0 == Self.headers })
    let receiving = try pair.watch.receive { heard.add($0.headers) }
    try heard.wait("all") { $0.count == 7 }
    receiving.stop()
    #expect(heard.all.dropLast().allSatisfy { $0 == Self.headers } && heard.all.last == [:])
  }

  @Test func requestsAndImmediateMessagesHaveThem() async throws {
    let pair = try Pair()
    let heard = Heard<[String: String]>()
    pair.watch.respond(toKind: "Int") { request in
      heard.add(request.headers)
      try? request.reply(0)
    }
    pair.watch.receiveImmediate { heard.add($0.headers) }
    func blocking() throws {
      _ = try pair.phone.request(1, as: Int.self, headers: Self.headers)
      try pair.phone.sendImmediately(1, headers: Self.headers)
    }
    try blocking()
    _ = try await pair.phone.request(1, as: Int.self, headers: Self.headers)
    try await pair.phone.sendImmediately(1, headers: Self.headers)
    pair.phone.request(1, as: Int.self, headers: Self.headers) { _ in }
    try await heard.comes("five") { $0.count == 5 }
    #expect(heard.all.allSatisfy { $0 == Self.headers })
    _ = try await pair.phone.request(1, as: Int.self)
    #expect(heard.all.last == [:])
  }

  /// The dead letter of one message of a batch is a file of its own.
  @Test(.blocking) func deadLettersRetriesAndOutcomesHaveThem() throws {
    let pair = try Pair { $0.mailbox.attempts = 1 }
    let options = SendOptions(durability: .process, headers: Self.headers)
    let outcomes = Heard<Outcome>()
    let watching = try pair.sender.watchOutcomes { outcomes.add($0) }
    try pair.phone.send(1, options)
    try pair.phone.send(contentsOf: [2, 3], options)
    let refusing = try pair.watch.receive { _ in throw Refusal() }
    try eventually("all are dead letters") { try pair.phone.deadLetters.count == 3 }
    refusing.stop()
    let letters = try pair.phone.deadLetters
    #expect(letters.allSatisfy { $0.headers == Self.headers })
    try outcomes.wait("both outcomes") { $0.count == 2 }
    #expect(outcomes.all.allSatisfy { $0.headers == Self.headers })
    watching.stop()
    for letter in letters { #expect(try pair.phone.retry(id: letter.id)) }
    let heard = Heard<[String: String]>()
    let receiving = try pair.watch.receive { heard.add($0.headers) }
    try heard.wait("the retries") { $0.count == 3 }
    receiving.stop()
    #expect(heard.all.allSatisfy { $0 == Self.headers })
  }

  /// The next incarnation of the sender reads them from the message or its receipt.
  @Test(.blocking) func theNextIncarnationOfTheSenderReadsThem() throws {
    let pair = try Pair()
    try pair.phone.send(1, SendOptions(durability: .process, headers: Self.headers))
    pair.sender.leave()
    let sender = try pair.meeting.another().join(as: pair.sender.name)
    let sent = try #require(try sender.peer("watch").pendingMessages.first)
    #expect(try sent.headers == Self.headers)
    sender.leave()
    try pair.watch.take(1)[0].acknowledge()
    #expect(
      try pair.meeting.container.peer(sender.name).pendingOutcomes.map(\.headers) == [Self.headers])
  }

  // MARK: Limits

  private static func many(_ count: Int) -> [String: String] {
    Dictionary(uniqueKeysWithValues: (0..<count).map { ("key\($0)", "") })
  }

  private static let key64 = String(repeating: "k", count: 64)

  private static let refused: [([String: String], String)] = [
    (many(65), "there are 65 headers, and the limit is 64"),
    (["": "x"], "the key '' of a header has 0 bytes, and the limits are 1 and 64"),
    (
      [key64 + "k": "x"],
      "the key '\(key64)' of a header has 65 bytes, and the limits are 1 and 64"
    ),
    (["a=b": "x"], "the key 'a=b' of a header contains another character than 'A-Z a-z 0-9 - _ .'"),
    (["ü": "x"], "the key 'ü' of a header contains another character than 'A-Z a-z 0-9 - _ .'"),
    (["a": "zero\0byte"], "the header 'a' contains a zero byte"),
    (
      ["a": String(repeating: "x", count: 8192)],
      "the headers have 8193 bytes, and the limit is 8192"
    ),
  ]

  @Test(.blocking, arguments: 0..<refused.count)
  func headersBeyondTheLimitsAreRefused(_ index: Int) throws {
    let (headers, problem) = Self.refused[index]
    let pair = try Pair()
    try pair.meeting.folder.write("a file", to: "file")
    let options = SendOptions(durability: .process, headers: headers)
    let calls: [() throws -> Void] = [
      { _ = try pair.phone.send(1, options) },
      { _ = try pair.phone.send(contentsOf: [1, 2], options) },
      { _ = try pair.phone.send(file: pair.meeting.folder.path + "/file", options) },
      { try pair.phone.sendImmediately(1, headers: headers) },
      { _ = try pair.phone.request(1, as: Int.self, headers: headers) },
    ]
    for call in calls {
      let error = #expect(throws: WormholeError.self) { try call() }
      #expect(error?.code == .invalidName && error?.reason == problem)
    }
    let ends = Heard<WormholeError?>()
    pair.phone.request(1, as: Int.self, headers: headers) { end in
      do throws(WormholeError) { _ = try end.get() } catch { ends.add(error) }
    }
    try ends.wait("the end") { $0.count == 1 }
    #expect(ends.all[0]?.reason == problem)
    #expect(try pair.files("inbox") == [])
  }

  private static let limits: [[String: String]] = [
    many(64), [key64: String(repeating: "v", count: 8192 - 64)], ["AZaz09-_.": "a\nb"],
    ["null": "$null"],
  ]

  @Test(.blocking, arguments: limits)
  func headersAtTheLimitsArrive(_ headers: [String: String]) throws {
    let pair = try Pair()
    let heard = Heard<[String: String]>()
    let receiving = try pair.watch.receive { heard.add($0.headers) }
    try pair.phone.send(1, SendOptions(durability: .process, headers: headers))
    try heard.wait("it") { !$0.isEmpty }
    receiving.stop()
    #expect(heard.all == [headers])
  }

  /// Another program has written the file; the message itself is handled.
  @Test(.blocking) func aReaderIgnoresHeadersBeyondTheLimitsAndLogsThem() throws {
    let logged = Heard<LogEntry>()
    let pair = try Pair { $0.log = { logged.add($0) } }
    try pair.send([1, 2])
    let inbox = try pair.meeting.folder("members/watch/inbox")
    let over = Dictionary(
      uniqueKeysWithValues: (10..<80).map { ("b\($0)", PropertyListValue.string("v")) })
    let given: [PropertyListValue] = [
      .dictionary(
        over.merging(["a": "fine", "a=b": "x", "": "x", "a1": "zero\0byte", "a2": 3]) { $1 }),
      "no dictionary",
    ]
    for (name, headers) in zip(try pair.files("inbox"), given) {
      let message: PropertyListValue = [
        "kind": "Int", "sent": .date(.now), "to": "watch", "value": 7, "headers": headers,
      ]
      try pair.meeting.folder.descriptor.open("made", [.writeOnly, .create], mode: 0o600)
        .write(BinaryEncoder().encode(message))
      try pair.meeting.folder.descriptor.rename("made", to: inbox, name)
    }
    let heard = Heard<[String: String]>()
    let receiving = try pair.watch.receive { message in
      guard try message.value(as: Int.self) == 7 else { throw Refusal() }
      heard.add(message.headers)
    }
    try heard.wait("both") { $0.count == 2 }
    receiving.stop()
    #expect(heard.all[0].count == 64 && heard.all[0]["a"] == "fine" && heard.all[0]["b72"] == "v")
    #expect(heard.all[1] == [:])
    let texts = logged.all.filter { $0.level == .warning }.map(\.text)
    #expect(texts.count == 2)
    #expect(texts.allSatisfy { $0.contains("they break the limits of headers") }, "\(texts)")
    #expect(texts.first?.hasPrefix("ignored 11 headers of message '") == true, "\(texts)")
  }

  @Test(.blocking) func aWorkerIgnoresHeadersBeyondTheLimitsAndLogsThem() throws {
    let logged = Heard<LogEntry>()
    let meeting = try Meeting { $0.log = { logged.add($0) } }
    let jobs = meeting.container.queue("jobs", of: Int.self)
    let sent = try jobs.send(1, .quick())
    let name = try #require(try meeting.names("queues/jobs/inbox").first)
    let headers: PropertyListValue = ["a": "fine", "a=b": "x"]
    let made: PropertyListValue = [
      "kind": "Int", "sent": .date(.now), "to": "jobs", "value": 7, "headers": headers,
    ]
    try meeting.folder.descriptor.open("made", [.writeOnly, .create], mode: 0o600)
      .write(BinaryEncoder().encode(made))
    try meeting.folder.descriptor.rename(
      "made", to: meeting.folder("queues/jobs/inbox"), name)
    let heard = Heard<[String: String]>()
    let working = try jobs.work { number, message in
      guard number == 7 else { throw Refusal() }
      heard.add(message.headers)
    }
    try heard.wait("it") { !$0.isEmpty }
    working.stop()
    #expect(heard.all == [["a": "fine"]])
    let texts = logged.all.filter { $0.level == .warning }.map(\.text)
    #expect(texts.count == 1)
    #expect(
      texts.first?.hasPrefix("ignored 1 headers of message '\(sent.id)'") == true, "\(texts)")
  }

  /// Each header keeps the limits of one, and all together have too many bytes.
  @Test(.blocking) func headersBeyondTheirSizeTogetherAreIgnored() throws {
    let pair = try Pair()
    let sent = try pair.phone.send(1, .quick())
    let name = try #require(try pair.meeting.names("members/watch/inbox").first)
    let long = PropertyListValue.string(String(repeating: "v", count: 4095))
    let headers: PropertyListValue = ["a": long, "b": long, "c": long, "d": ""]
    let made: PropertyListValue = [
      "kind": "Int", "sent": .date(.now), "to": "watch", "value": 7, "headers": headers,
    ]
    try pair.meeting.folder.descriptor.open("made", [.writeOnly, .create], mode: 0o600)
      .write(BinaryEncoder().encode(made))
    try pair.meeting.folder.descriptor.rename(
      "made", to: pair.meeting.folder("members/watch/inbox"), name)
    let heard = Heard<[String]>()
    let receiving = try pair.watch.receive { heard.add($0.headers.keys.sorted()) }
    try heard.wait("it") { !$0.isEmpty }
    receiving.stop()
    // Two headers have 8192 bytes, and a further one has its key.
    #expect(heard.all == [["a", "b"]], "\(sent.id)")
  }
}
