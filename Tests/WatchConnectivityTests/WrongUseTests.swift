import Foundation
import TestSupport
import TestTraits
import Testing
@testable import WatchConnectivity
import Wormhole
import WormholeDropIns
import WormholeSyscalls

/// Wrong use is reported with the promised code, and nothing traps.
@Suite struct WrongUseTests {
  /// How a message, a context, a user info and a file end.
  private func ends(
    _ session: WCSession, _ side: Recorder?, _ content: [String: Any] = [:],
    file: URL? = nil
  ) throws -> [Int] {
    let codes = Heard<Int>()
    session.sendMessage(content) { _ in
      codes.add(0)
    } errorHandler: {
      codes.add(($0 as NSError).code)
    }
    try codes.wait("the end of a message") { $0.count == 1 }
    do {
      try session.updateApplicationContext(content)
      codes.add(0)
    } catch {
      codes.add((error as? WCError)?.code.rawValue ?? -1)
    }
    guard let side else { return codes.all }
    let before = side.heard.count
    session.transferUserInfo(content)
    if let file { session.transferFile(file, metadata: content) }
    let wanted = file == nil ? 1 : 2
    try side.heard.wait("the ends of transfers") { heard in
      heard.dropFirst(before).filter { $0.hasPrefix("finished") }.count == wanted
    }
    // The two may end in either order.
    let ends = side.heard.all.dropFirst(before).filter { $0.hasPrefix("finished") }
    for end in ends.sorted(by: { !$0.hasPrefix("finished file") && $1.hasPrefix("finished file") })
    { codes.add(end.hasSuffix(" ok") ? 0 : Int(end.suffix(4))!) }
    return codes.all
  }

  @Test(.blocking) func whoIsNeitherSideIsToldSo() throws {
    guard Processes.environment("WORMHOLE_ROLE") == nil else {
      return skip("a program without a role", because: "WORMHOLE_ROLE is set")
    }
    let folder = try TemporaryDirectory()
    // This program has no role, and its own session no container.
    #expect(!WCSession.isSupported())
    let side = Recorder()
    // As the default session, which other tests use at the same time.
    let session = WCSession(part: nil)
    #expect(try ends(session, nil) == [7002, 7002])
    session.delegate = side
    let begin = Instant.now
    session.activate()
    try side.heard.wait("the failure") { $0 == ["activated 0 7002"] }
    // If the failure were reported at once, code that activates again in the callback would do
    // nothing else.
    #expect(Instant.now - begin >= .milliseconds(900))
    session.delegate = nil
    // A path that cannot be a container.
    try folder.write("", to: "file")
    let refused = WCSession(role: .phone, place: .directory(folder.path + "/file"))
    refused.delegate = side
    refused.activate()
    try side.heard.wait("the failure") { $0.last == "activated 0 7001" }
    #expect(refused.activationState == .notActivated)
    refused.end()
  }

  @Test(.blocking) func withoutDelegateOrActivationThatIsTold() throws {
    let sides = try TwoSides()
    #expect(try ends(sides.phone, nil) == [7003, 7003])
    sides.phone.activate()
    #expect(sides.phone.activationState == .notActivated)
    sides.phone.delegate = sides.phoneSide
    #expect(try ends(sides.phone, nil) == [7004, 7004])
    // A transfer that was made too early ends with an error once callbacks are made at all.
    sides.phone.transferUserInfo(["early": 1])
    // By now the callback would have been made, if callbacks were made at all.
    sides.phone.ends.sync {}
    try sides.activatePhone()
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished early=1 7004") }
    #expect(sides.phoneSide.heard.all.first == "activated 2 ok")
  }

  @Test(.blocking) func whatCannotBeSentIsRefused() throws {
    let sides = try TwoSides()
    try sides.activate()
    let file = URL(fileURLWithPath: sides.folder.path + "/a")
    try sides.folder.write("a", to: "a")
    let nothing: Int? = nil
    let bad: [[String: Any]] = [
      ["null": NSNull()], ["url": file], ["nil": nothing as Any], ["in": ["deep": [NSNull()]]],
    ]
    for content in bad {
      #expect(
        try ends(sides.phone, sides.phoneSide, content, file: file) == [7010, 7010, 7010, 7010])
    }
    let large = ["large": Data(count: 65_600)]
    #expect(try ends(sides.phone, sides.phoneSide, large, file: file) == [7009, 0, 7009, 7009])
    #expect(try ends(sides.phone, nil, ["large": Data(count: 262_200)]) == [7009, 7009])
    let most =
      ["large": Data(count: 65_000), "text": String(repeating: "é", count: 100)] as [String: Any]
    #expect(try ends(sides.watch, sides.watchSide, most, file: file)[1...] == [0, 0, 0])
  }

  @Test(.blocking) func filesThatCannotBeReadAreTold() throws {
    let sides = try TwoSides()
    try sides.activate()
    let directory = URL(fileURLWithPath: sides.folder.path)
    let missing = directory.appendingPathComponent("missing")
    for (url, code) in [(missing, 7013), (directory, 7013), (URL(string: "data:,none")!, 7008)] {
      #expect(
        try ends(sides.phone, sides.phoneSide, [:], file: url).last == code, "\(url)")
    }
    let text = sides.phoneSide
    let said = Heard<String>()
    text.onFinish = { _, error in said.add(error?.localizedDescription ?? "") }
    sides.phone.transferFile(missing, metadata: nil)
    try said.wait("why") { $0.first?.contains("missing") == true }
  }

  @Test(.blocking) func aNameThatIsTakenIsToldAfterASecond() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    let other = WCSession(role: .phone, place: .directory(sides.container))
    let side = Recorder()
    other.delegate = side
    let begin = Instant.now
    other.activate()
    try side.heard.wait("the failure") { $0 == ["activated 0 7001"] }
    #expect(Instant.now - begin >= .milliseconds(900))
    // Once the name is free, the activation succeeds.
    sides.phone.end()
    other.activate()
    try side.heard.wait("success") { $0.last == "activated 2 ok" }
    other.end()
  }

  @Test(.blocking) func whatIsNotThereIsToldByItsCode() throws {
    let sides = try TwoSides()
    try sides.activate()
    try sides.pairing.uninstall(.watch)
    #expect(try ends(sides.phone, sides.phoneSide) == [7006, 7006, 7006])
    #expect(!sides.phone.isWatchAppInstalled && !sides.phone.isReachable)
    try sides.pairing.install(.watch)
    try sides.pairing.uninstall(.phone)
    #expect(try ends(sides.watch, sides.watchSide) == [7018, 7018, 7018])
    try sides.watchSide.heard.wait("the change") { $0.contains("companion") }
    try sides.pairing.update { $0.isWatchOnly = true }
    #expect(try ends(sides.watch, sides.watchSide) == [7019, 7019, 7019])
    try sides.pairing.update { $0.isWatchOnly = false }
    try sides.pairing.install(.phone)
    try sides.phoneSide.heard.wait("the change") { $0.contains("watch state") }
    try sides.pairing.unpair()
    #expect(try ends(sides.phone, sides.phoneSide) == [7005, 7005, 7005])
    #expect(!sides.phone.isPaired)
    try sides.pairing.pair()
    try eventually("it is back") { sides.phone.isReachable && sides.watch.isReachable }
    sides.phone.transferUserInfo(["back": 1])
    try sides.watchSide.heard.wait("it") { $0.contains("info back=1") }
  }

  @Test(.blocking) func aForgottenMethodIsToldToWhoeverSends() throws {
    let sides = try TwoSides()
    let mute = Mute()
    try sides.activatePhone()
    sides.watch.delegate = mute
    sides.watch.activate()
    try eventually("it is reachable") { sides.phone.isReachable }
    let codes = Heard<Int>()
    sides.phone.sendMessage([:], replyHandler: nil) { codes.add(($0 as NSError).code) }
    sides.phone.sendMessage([:]) { _ in
      codes.add(0)
    } errorHandler: {
      codes.add(($0 as NSError).code)
    }
    sides.phone.sendMessageData(Data(), replyHandler: nil) { codes.add(($0 as NSError).code) }
    #expect(throws: Never.self) {
      try codes.wait("three ends") { $0 == [7014, 7014, 7014] }
    }
  }

  @Test(.blocking) func aReplyThatCannotBeSentIsTold() throws {
    let sides = try TwoSides()
    sides.watchSide.onMessage = { message, reply in
      switch message["n"] as? Int {
      case 1: reply?(["null": NSNull()])
      case 2: reply?(["large": Data(count: 65_600)])
      default:
        reply?(["first": 1])
        reply?(["second": 2])
      }
    }
    try sides.activate()
    let codes = send(3, sides.phone)
    try codes.wait("three ends") { $0 == [7011, 7011, 1] }
  }

  /// The limit counts the bytes of data, and the bytes of a dictionary's file.
  @Test(.blocking) func theSizeLimitIsExact() throws {
    let limit = 1000
    let sides = try TwoSides { $0.largestMessage = limit }
    let answering = Answering()
    sides.watchSide = answering
    try sides.activate()
    @Sendable func dictionary(_ size: Int) throws -> [String: Any] {
      let around = try PropertyListSerialization.data(
        fromPropertyList: ["t": String(repeating: "x", count: 900)], format: .binary, options: 0)
      let text = String(repeating: "x", count: size - around.count + 900)
      let all = try PropertyListSerialization.data(
        fromPropertyList: ["t": text], format: .binary, options: 0)
      #expect(all.count == size)
      return ["t": text]
    }
    for (size, code) in [(limit, 0), (limit + 1, 1)] {
      let ends = Heard<Int>()
      let fail = { @Sendable (error: any Error) in ends.add((error as NSError).code) }
      answering.size = size
      answering.onMessage = { _, reply in reply?((try? dictionary(size)) ?? [:]) }
      // A reply of that size.
      sides.phone.sendMessageData(Data()) {
        ends.add($0.count - size)
      } errorHandler: {
        fail($0)
      }
      #expect(throws: Never.self) { try ends.wait("a reply of data") { $0.count == 1 } }
      #expect(ends.all == [code * 7011])
      sides.phone.sendMessage([:]) {
        ends.add($0.count - 1)
      } errorHandler: {
        fail($0)
      }
      #expect(throws: Never.self) { try ends.wait("a reply") { $0.count == 2 } }
      #expect(ends.all.last == code * 7011)
      // A message of that size.
      answering.size = 0
      answering.onMessage = { _, reply in reply?([:]) }
      sides.phone.sendMessageData(Data(count: size)) {
        ends.add($0.count)
      } errorHandler: {
        fail($0)
      }
      try ends.wait("data") { $0.count == 3 }
      #expect(ends.all.last == code * 7009)
      sides.phone.sendMessage(try dictionary(size)) {
        ends.add($0.count)
      } errorHandler: {
        fail($0)
      }
      try ends.wait("a dictionary") { $0.count == 4 }
      #expect(ends.all.last == code * 7009)
    }
  }

  /// Ten thousand wait for a delegate that is busy.
  @Test(.blocking) func aMessageBeyondTheLimitOfWaitingMessagesIsRefused() throws {
    let sides = try TwoSides()
    let gate = Monitor(false)
    let inside = Heard<Int>()
    sides.watchSide.onMessage = { message, _ in
      inside.add(message["n"] as? Int ?? -1)
      gate.wait(until: nil) { $0 ? () : nil }
    }
    try sides.activate()
    defer { gate.signal { $0 = true } }
    let ends = Heard<String>()
    func send(_ number: Int) {
      sides.phone.sendMessage(["n": number]) { _ in
        ends.add("reply")
      } errorHandler: {
        ends.add("\(number) \(($0 as NSError).code)")
      }
    }
    send(1)
    try inside.wait("the delegate is busy") { $0 == [1] }
    // One less than the limit.
    sides.watch.messagesWaiting.withLock { $0 += 9_999 }
    send(2)
    try eventually("it waits") { sides.watch.messagesWaiting.withLock { $0 == 10_000 } }
    send(3)
    #expect(throws: Never.self) { try ends.wait("its refusal") { $0 == ["3 7014"] } }
    sides.watch.messagesWaiting.withLock { $0 -= 9_999 }
    gate.signal { $0 = true }
    try inside.wait("what waited") { $0 == [1, 2] }
    send(4)
    try inside.wait("the next") { $0 == [1, 2, 4] }
  }

  @Test(.blocking) func aReplyThatNeverComesIsTold() throws {
    let sides = try TwoSides { $0.messageTimeout = .milliseconds(300) }
    let kept = Heard<@Sendable ([String: Any]) -> Void>()
    sides.watchSide.onMessage = { kept.add($1!) }
    try sides.activate()
    let codes = send(1, sides.phone)
    try codes.wait("its end") { $0 == [7012] }
  }

  /// The sender does not wait for its time limit, a minute.
  @Test(.blocking) func aReplyHandlerThatIsReleasedIsToldAtOnce() throws {
    let sides = try TwoSides()
    sides.watchSide.onMessage = { _, _ in }
    try sides.activate()
    let codes = send(3, sides.phone)
    #expect(throws: Never.self) { try codes.wait("the ends") { $0 == [7011, 7011, 7011] } }
  }

  @Test(.blocking) func theEnvironmentHasSettings() {
    func settings(_ variables: [String: String]) -> (WCSession.Settings, told: [String]) {
      var told: [String] = []
      let settings = WCSession.Settings {
        variables[$0]
      } tell: {
        told.append($0)
      }
      return (settings, told)
    }
    let usual = settings([:])
    #expect(usual.0.durability == .process && usual.0.messageTimeout == .seconds(60))
    let given = settings(["WORMHOLE_DURABILITY": "power", "WORMHOLE_MESSAGE_TIMEOUT": "2.5"])
    #expect(given.0.durability == .power && given.0.messageTimeout == .milliseconds(2500))
    #expect(usual.told.isEmpty && given.told.isEmpty)
    for word in ["", "-1", "0", "nan", "inf", "1e9", "soon"] {
      let wrong = settings(["WORMHOLE_DURABILITY": "disk", "WORMHOLE_MESSAGE_TIMEOUT": word])
      #expect(wrong.0.durability == .process && wrong.0.messageTimeout == .seconds(60))
      #expect(wrong.told.count == 2)
    }
  }

  /// How each of some messages ends.
  private func send(_ count: Int, _ session: WCSession) -> Heard<Int> {
    let codes = Heard<Int>()
    for number in 1...count {
      session.sendMessage(["n": number]) {
        codes.add($0.count)
      } errorHandler: {
        codes.add(($0 as NSError).code)
      }
    }
    return codes
  }

  @Test(.blocking) func errorsAreAsOnDevices() throws {
    func fail(_ code: WCError.Code) throws { throw WCError(code) }
    for code in WCError.Code.allCases {
      do {
        try fail(code)
      } catch let error as NSError {
        #expect(error.domain == WCErrorDomain && error.code == code.rawValue)
        #expect((error as? WCError)?.code == code)
        #expect(!error.localizedDescription.contains("couldn"))
      }
    }
    do {
      try fail(.notReachable)
    } catch WCError.notReachable {
    }
    let texts = Set(WCError.Code.allCases.map { WCError($0).localizedDescription })
    #expect(texts.count == 19)
    #expect((WCError(.deliveryFailed) as any Error as NSError).domain == "WCErrorDomain")
  }
}

/// Replies to data with the number of bytes that the test sets.
// As its superclass; the test sets the values before it sends the message.
private final class Answering: Recorder, @unchecked Sendable {
  var size = 0

  override func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void
  ) { replyHandler(Data(count: size)) }
}
