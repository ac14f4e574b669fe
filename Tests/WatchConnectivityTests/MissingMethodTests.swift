import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WatchConnectivity

/// Delegates that lack methods, which are optional on devices.
@Suite(.blocking) struct MissingMethodTests {
  /// Each default of a method for content names its own method, and no other default does.
  @Test func eachDefaultNamesItsMethod() {
    let (session, mute) = (WCSession(part: nil), Mute())
    func missing(_ call: (any WCSessionDelegate) -> Void) -> String? {
      session.unhandled.withLock { $0 = nil }
      call(mute)
      return session.unhandled.withLock { $0 }
    }
    let file = WCSessionFile(URL(fileURLWithPath: "/a"), nil)
    #expect(
      missing { $0.session(session, didReceiveMessage: [:]) } == "session(_:didReceiveMessage:)")
    #expect(
      missing { $0.session(session, didReceiveMessage: [:]) { _ in } }
        == "session(_:didReceiveMessage:replyHandler:)")
    #expect(
      missing { $0.session(session, didReceiveMessageData: Data()) }
        == "session(_:didReceiveMessageData:)")
    #expect(
      missing { $0.session(session, didReceiveMessageData: Data()) { _ in } }
        == "session(_:didReceiveMessageData:replyHandler:)")
    #expect(
      missing { $0.session(session, didReceiveApplicationContext: [:]) }
        == "session(_:didReceiveApplicationContext:)")
    #expect(
      missing { $0.session(session, didReceiveUserInfo: [:]) }
        == "session(_:didReceiveUserInfo:)")
    #expect(missing { $0.session(session, didReceive: file) } == "session(_:didReceive:)")
    // No content is lost with a notification.
    #expect(missing { $0.sessionDidBecomeInactive(session) } == nil)
    #expect(missing { $0.sessionDidDeactivate(session) } == nil)
    #expect(missing { $0.sessionWatchStateDidChange(session) } == nil)
    #expect(missing { $0.sessionCompanionAppInstalledDidChange(session) } == nil)
    #expect(missing { $0.sessionReachabilityDidChange(session) } == nil)
    #expect(session.activationState == .notActivated)
  }

  /// Content that waited for a method would arrive at a delegate of a later run.
  @Test func contentWithoutAMethodIsDropped() throws {
    let sides = try TwoSides()
    let mute = Mute()
    try sides.activatePhone()
    sides.watch.delegate = mute
    sides.watch.activate()
    try eventually("it is reachable") { sides.phone.isReachable }
    try sides.folder.write("text", to: "a")
    sides.phone.transferUserInfo(["n": 1])
    sides.phone.transferFile(URL(fileURLWithPath: sides.folder.path + "/a"), metadata: nil)
    try sides.phoneSide.heard.wait("both ends") {
      $0.contains("finished n=1 ok") && $0.contains("finished file a ok")
    }
    try sides.phone.updateApplicationContext(["n": 2])
    try eventually("the context is over") {
      sides.watch.receivedApplicationContext["n"] as? Int == 2
    }
    sides.watch.delegate = sides.watchSide
    sides.phone.transferUserInfo(["n": 3])
    try sides.watchSide.heard.wait("the next") { $0.contains("info n=3") }
    let content = sides.watchSide.heard.all.filter { line in
      ["info", "file", "context"].contains { line.hasPrefix($0) }
    }
    #expect(content == ["info n=3"])
    withExtendedLifetime(mute) {}
  }

  /// The sender's error names the method that the other program lacks.
  @Test func theSenderIsToldTheMethod() throws {
    let sides = try TwoSides()
    let mute = Mute()
    try sides.activatePhone()
    sides.watch.delegate = mute
    sides.watch.activate()
    try eventually("it is reachable") { sides.phone.isReachable }
    let ends = Heard<String>()
    sides.phone.sendMessageData(Data()) { _ in
      ends.add("reply")
    } errorHandler: {
      ends.add("\(($0 as NSError).code) \($0.localizedDescription)")
    }
    try ends.wait("the end") { $0.count == 1 }
    let method = "session(_:didReceiveMessageData:replyHandler:)"
    let reason = "the delegate of the counterpart does not implement \(method)"
    #expect(ends.all[0].hasPrefix("7014 "))
    #expect(ends.all[0].contains(reason))
    withExtendedLifetime(mute) {}
  }
}
