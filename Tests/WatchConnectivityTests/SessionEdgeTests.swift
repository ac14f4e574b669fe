import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeDropIns
import WormholePropertyLists
import WormholeSyscalls

@testable import WatchConnectivity

/// The edges of a session: what is measured, what a foreign counterpart replies, and a watch that
/// is not paired.
@Suite(.blocking) struct SessionEdgeTests {
  /// Each type of value counts with all its bytes, wherever it is in the dictionary.
  @Test func theSizeLimitIsExactForEachType() throws {
    let contents: [[String: Any]] = [
      ["text": String(repeating: "é€", count: 100)],
      ["data": Data(count: 300)],
      ["numbers": [1, 2.5, true, Int64.min, UInt64.max] as [Any]],
      ["date": Date(timeIntervalSince1970: 5)],
      ["texts": (0..<300).map { "item \($0)" }],
      ["array": [Data(count: 300)]],
      ["outer": ["inner": ["data": Data(count: 300)]]],
      [String(repeating: "k", count: 500): 1],
      ["outer": [String(repeating: "k", count: 500): true]],
    ]
    for content in contents {
      let value = PropertyListValue.dictionary(try PropertyListValue.dictionary(any: content))
      let size = try BinaryPropertyList.encode(value).count
      #expect(try SessionPayload.take(content, largest: size) == value)
      let error = #expect(throws: WCError.self) {
        try SessionPayload.take(content, largest: size - 1)
      }
      #expect(error?.code == .payloadTooLarge)
      let reason = "the content has \(size) bytes, and the limit is \(size - 1)"
      #expect(error?.localizedDescription.contains(reason) == true)
    }
  }

  /// A foreign program, or one of another version, may reply anything.
  @Test func aFailureWithoutAKnownCodeOrReasonIsAFailureAllTheSame() {
    func failure(_ value: PropertyListValue) -> String? {
      guard case .failure(let code, let reason) = Answer(value) else { return nil }
      return "\(code.rawValue) \(reason)"
    }
    #expect(failure(["code": .integer(7014), "reason": .string("busy")]) == "7014 busy")
    #expect(failure(["code": .integer(7014)]) == "7014 the counterpart gave no reason")
    #expect(failure(["code": .integer(9999), "reason": .string("new")]) == "7001 new")
    #expect(failure(["code": .unsigned(.max), "reason": .string("new")]) == "7001 new")
    #expect(failure(["code": .string("7014"), "reason": .string("new")]) == "7001 new")
    let number = failure(["code": .integer(7014), "reason": .integer(1)])
    #expect(number == "7014 the counterpart gave no reason")
    #expect(failure(Answer.failure(.notReachable, "far").value) == "7007 far")
    #expect(failure(["reason": .string("busy")]) == nil)
    #expect(failure(Answer.handled.value) == nil)
    // A reply is a reply, whatever else is in it.
    let both: PropertyListValue = ["reply": .integer(1), "code": .integer(7014)]
    guard case .reply(let value) = Answer(both) else {
      Issue.record("it is no reply")
      return
    }
    #expect(value == .integer(1))
  }

  @Test func aWatchThatIsNotPairedSendsNothing() throws {
    let sides = try TwoSides()
    try sides.activateWatch()
    try sides.pairing.pair("other")
    try sides.pairing.unpair("watch")
    #expect(!sides.watch.isPaired && !sides.watch.isCompanionAppInstalled)
    #expect(!sides.watch.isReachable)
    let error = #expect(throws: WCError.self) {
      try sides.watch.updateApplicationContext(["n": 1])
    }
    #expect(error?.code == .deviceNotPaired)
    sides.watch.transferUserInfo(["n": 1])
    try sides.watchSide.heard.wait("its end") { $0.contains("finished n=1 7005") }
    #expect(sides.watch.outstandingUserInfoTransfers.isEmpty)
  }

  /// The context is in the counterpart's inbox: if the call failed, the program would take the
  /// earlier context for the present one.
  @Test func aContextWhoseSyncFailedIsSet() throws {
    let sides = try TwoSides { $0.durability = .power }
    try sides.activatePhone()
    let rule = FaultRule(.fsync, path: "/context", persistent: true, .fail(.inputOutput))
    let calls = try FaultPoints.with([rule]) {
      try sides.phone.updateApplicationContext(["n": 1])
    }
    #expect(calls.contains { $0.hasPrefix("fsync ") && $0.hasSuffix("/context") })
    #expect(sides.phone.applicationContext["n"] as? Int == 1)
    try sides.activateWatch()
    try sides.watchSide.heard.wait("it") { $0.contains("context n=1") }
  }
}
