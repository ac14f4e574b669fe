import Foundation
import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WatchConnectivity

/// Errors under their names on devices, and values at the edges of the module.
@Suite(.blocking) struct ErrorBridgingTests {
  /// Each name on the error's type, with the number that devices use.
  private let codes: [(code: WCError.Code, number: Int)] = [
    (WCError.genericError, 7001), (WCError.sessionNotSupported, 7002),
    (WCError.sessionMissingDelegate, 7003), (WCError.sessionNotActivated, 7004),
    (WCError.deviceNotPaired, 7005), (WCError.watchAppNotInstalled, 7006),
    (WCError.notReachable, 7007), (WCError.invalidParameter, 7008),
    (WCError.payloadTooLarge, 7009), (WCError.payloadUnsupportedTypes, 7010),
    (WCError.messageReplyFailed, 7011), (WCError.messageReplyTimedOut, 7012),
    (WCError.fileAccessDenied, 7013), (WCError.deliveryFailed, 7014),
    (WCError.insufficientSpace, 7015), (WCError.sessionInactive, 7016),
    (WCError.transferTimedOut, 7017), (WCError.companionAppNotInstalled, 7018),
    (WCError.watchOnlyApp, 7019),
  ]

  @Test func eachNameOnTheTypeMatchesItsOwnErrorAlone() {
    #expect(codes.map { $0.code } == WCError.Code.allCases)
    for (code, number) in codes {
      #expect(code.rawValue == number)
      let error: any Error = WCError(code)
      let matches = codes.filter { $0.code ~= error }.map { $0.number }
      #expect(matches == [number])
    }
  }

  @Test func theAdviceInstallsTheAppThatIsMissing() {
    let missing: [(WCError.Code, String)] = [
      (.watchAppNotInstalled, "watch"), (.companionAppNotInstalled, "phone"),
    ]
    for (code, side) in missing {
      #expect(
        WCError(code, nil).localizedDescription
          == "the \(side) app is not installed; install the app with "
          + "'wormhole watchconnectivity install \(side)'")
    }
  }

  /// Each code has its own next step, or none; a reason that contains one already stands alone.
  @Test func theAdviceOfEachCodeFollowsItsReason() {
    let role = """
      set WORMHOLE_ROLE to 'phone' or 'watch', and WORMHOLE_CONTAINER or WORMHOLE_GROUP, or call \
      WCSession.configure
      """
    let start = """
      start the counterpart's program, or check the range with 'wormhole watchconnectivity state'
      """
    let advice: [WCError.Code: String] = [
      .sessionNotSupported: role,
      .sessionMissingDelegate: "set the delegate before calling activate()",
      .sessionNotActivated: "call activate(), and wait for the delegate's callback",
      .deviceNotPaired: "pair a watch with 'wormhole watchconnectivity pair'",
      .watchAppNotInstalled: "install the app with 'wormhole watchconnectivity install watch'",
      .companionAppNotInstalled: "install the app with 'wormhole watchconnectivity install phone'",
      .notReachable: start,
      .payloadTooLarge: "send less, or transfer a file",
      .payloadUnsupportedTypes: "convert the value to a string or data",
      .messageReplyTimedOut: "check whether the counterpart is suspended or overloaded",
      .insufficientSpace:
        "free space on the disk, or wait until the counterpart has handled its queue",
      .sessionInactive: "activate the session again after its deactivation",
    ]
    for code in WCError.Code.allCases {
      let end = advice[code].map { ": reason; \($0)" } ?? ": reason"
      let text = WCError(code, "reason").localizedDescription
      #expect(text.hasSuffix(end), "\(text)")
      let advised = WCError(code, "reason", hasAdvice: true).localizedDescription
      #expect(advised.hasSuffix(": reason"), "\(advised)")
    }
  }

  @Test func anErrorKeepsItsObjectInBothDirections() throws {
    #expect(WCError.errorDomain == "WCErrorDomain")
    #expect(WCError._nsErrorDomain == "WCErrorDomain")
    let object = NSError(
      domain: "WCErrorDomain", code: 7009, userInfo: [NSLocalizedDescriptionKey: "too much"])
    var forced: WCError?
    WCError._forceBridgeFromObjectiveC(object, result: &forced)
    let error = try #require(forced)
    #expect(error.code == .payloadTooLarge)
    #expect(error._bridgeToObjectiveC() === object)
    #expect(error.localizedDescription == "too much")
    #expect(WCError._unconditionallyBridgeFromObjectiveC(object)._nsError === object)
    // The same number in another domain is another error.
    var taken: WCError?
    let foreign = NSError(domain: NSCocoaErrorDomain, code: 7009)
    let isTaken = WCError._conditionallyBridgeFromObjectiveC(foreign, result: &taken)
    #expect(!isTaken)
    #expect(taken == nil)
  }

  /// No program can be sent what no property list may hold, whatever its size.
  @Test func aLargeDictionaryThatIsNestedTooDeepIsTooLarge() throws {
    var nested: Any = 1
    for _ in 0..<200 { nested = [nested] as [Any] }
    let deep: [String: Any] = ["deep": nested, "rest": Data(count: 2000)]
    let error = #expect(throws: WCError.self) { try SessionPayload.take(deep, largest: 1000) }
    #expect(error?.code == .payloadTooLarge)
    let text = error?.localizedDescription ?? ""
    #expect(text.contains("contains more than 128 containers in each other"))
    // The same content without the nesting is refused for its size, with both numbers.
    let flat: [String: Any] = ["rest": Data(count: 2000)]
    let size = try BinaryPropertyList.encode(["rest": .data(Data(count: 2000))]).count
    let other = #expect(throws: WCError.self) { try SessionPayload.take(flat, largest: 1000) }
    #expect(other?.code == .payloadTooLarge)
    let reason = "the content has \(size) bytes, and the limit is 1000"
    #expect(other?.localizedDescription.contains(reason) == true)
  }

  /// Code for devices stores observers by their queues.
  @Test func aQueueIsAKeyByItsIdentity() {
    let (one, other) = (DispatchQueue(label: "same"), DispatchQueue(label: "same"))
    let again = one
    var names = [one: "one", other: "other"]
    names[again] = "again"
    #expect(names.count == 2)
    #expect(names[one] == "again")
    #expect(names[other] == "other")
    #expect(one == again)
    #expect(one != other)
  }

  /// Two places are one too many: the process must not choose one of them.
  @Test func aContainerAndAGroupTogetherAreRefused() throws {
    let folder = try TemporaryDirectory()
    let ended = try run(
      Programs.built("DropInPeer"), ["session", "activate", "context=1"],
      environment: [
        GroupsRoot.setting, "WORMHOLE_ROLE=phone", "WORMHOLE_CONTAINER=\(folder.path)/container",
        "WORMHOLE_GROUP=group.test.both",
      ])
    #expect(ended.status == .exited(0))
    #expect(ended.output == "activated 0\ncontext failed 7002\n")
    #expect(ended.errors.contains("both WORMHOLE_CONTAINER and WORMHOLE_GROUP are set"))
    #expect(!FileManager.default.fileExists(atPath: folder.path + "/container"))
  }
}
