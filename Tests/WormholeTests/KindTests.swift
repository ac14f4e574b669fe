import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Kinds that messages, requests and contexts may have.
@Suite(.blocking) struct KindTests {
  private typealias Heard = TestSupport.Heard

  private static let long = String(repeating: "k", count: 256)

  private struct Named<A: Codable & Sendable>: Codable, Sendable { var value: A }

  /// Commands get a kind in their environment, which can hold neither of the two.
  @Test(arguments: [long, "zero\0byte"])
  func kindsThatNoCommandCanTakeAreRefused(_ kind: String) throws {
    let pair = try Pair()
    let file = pair.meeting.folder.path + "/file"
    try pair.meeting.folder.write("a file", to: "file")
    let options = SendOptions.quick { $0.kind = kind }
    let calls: [() throws -> Void] = [
      { _ = try pair.phone.send(1, options) },
      { _ = try pair.phone.send(contentsOf: [1, 2], options) },
      { _ = try pair.phone.send(file: file, metadata: 1, options) },
      { _ = try pair.phone.setContext(1, kind: kind) },
      { try pair.phone.sendImmediately(1, kind: kind) },
      { _ = try pair.phone.request(1, as: Int.self, kind: kind) },
    ]
    let problem =
      kind == Self.long
      ? "the kind has 256 bytes, and the limit is 255" : "the kind contains a zero byte"
    for call in calls {
      let error = #expect(throws: WormholeError.self) { try call() }
      #expect(error?.code == .invalidName)
      #expect(error?.reason == problem)
    }
    let ends = Heard<WormholeError?>()
    pair.phone.request(1, as: Int.self, kind: kind) { end in
      do throws(WormholeError) { _ = try end.get() } catch { ends.add(error) }
    }
    try ends.wait("the end") { $0.count == 1 }
    #expect(ends.all[0]?.code == .invalidName && ends.all[0]?.reason == problem)
    #expect(try pair.files("inbox") == [])
  }

  @Test func theLongestKindArrives() throws {
    let pair = try Pair()
    let kind = String(repeating: "k", count: 255)
    let heard = Heard<String>()
    let receiving = try pair.watch.receive { heard.add($0.kind) }
    try pair.phone.send(1, .quick { $0.kind = kind })
    try heard.waitForLast(kind)
    receiving.stop()
  }

  @Test func aTypeWhoseNameIsTooLongNeedsAKindOfItsOwn() throws {
    let pair = try Pair()
    let error = #expect(throws: WormholeError.self) {
      try send(Int.self, wrapped: 60, .quick(), through: pair)
    }
    #expect(error?.code == .invalidName)
    #expect(error?.hint?.contains("a shorter kind") == true)
    try send(Int.self, wrapped: 60, .quick { $0.kind = "deep" }, through: pair)
  }

  /// Sends a value of a type whose name grows with each wrapping.
  ///
  /// The type is made at run time: the compiler takes minutes for a written-out type.
  private func send<A: Codable & Sendable>(
    _ type: A.Type, wrapped times: Int, _ options: SendOptions, through pair: Pair
  ) throws {
    guard times == 0 else {
      return try send(Named<A>.self, wrapped: times - 1, options, through: pair)
    }
    try pair.phone.send(A?.none, options)
  }

  /// A single message, and the last one of a batch.
  @Test(arguments: [1, 2])
  func aRequeuedMessageIsForThoseWhoWantItsKind(_ count: Int) throws {
    let pair = try Pair()
    let gate = Gate()
    let (own, other) = (Heard<String>(), Heard<String>())
    let first = try pair.watch.receive(kinds: ["a"]) { message in
      own.add(message.kind)
      guard gate.isClosed, message.batchIndex == count - 1 else { return }
      message.requeue()
      gate.pass()
    }
    let second = try pair.watch.receive(kinds: ["b"]) { other.add($0.kind) }
    try pair.phone.send(contentsOf: Array(1...count), .quick { $0.kind = "a" })
    try gate.waitForSomebody()
    // What was requeued would come first.
    try pair.phone.send(1, .quick { $0.kind = "b" })
    try other.wait("its own message") { $0.last == "b" }
    #expect(other.all == ["b"])
    gate.open()
    try own.wait("the requeued one") { $0.count == count + 1 }
    for one in [first, second] { one.stop() }
    #expect(Set(own.all) == ["a"] && other.all == ["b"])
  }

  /// As sent by programs that know of no limit.
  @Test func longerKindsOfEarlierProgramsAreReceived() throws {
    let meeting = try Meeting()
    let member = try meeting.container.join(as: "watch")
    let outcome = try run(
      .sendOddKinds(meeting.path, to: "watch", asks: false),
      environment: ["WORMHOLE_MUTANT=any-kind"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let heard = Heard<String>()
    let receiving = try member.receive { heard.add($0.kind) }
    try heard.waitForLast("usual")
    #expect(heard.all == [String(repeating: "k", count: 131_072), "zero\0byte", "usual"])
    receiving.stop()
  }
}
