import Foundation
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import Wormhole
import WormholeSyscalls

/// Errors that need a full disk, a change of watches, or the passage of time.
@Suite struct RareErrorTests {
  @Test(.blocking) func onAFullDiskThereIsNoSpace() throws {
    guard let disk = try TestFileSystem.make(.memory, for: "insufficientSpace") else { return }
    let sides = try TwoSides(in: disk.path)
    try sides.activate()
    try sides.folder.write("a", to: "a")
    try disk.fill()
    let file = URL(fileURLWithPath: sides.folder.path + "/a")
    sides.phone.transferUserInfo(["n": 1])
    sides.phone.transferFile(file, metadata: nil)
    try sides.phoneSide.heard.wait("both ends") { heard in
      heard.contains("finished n=1 7015") && heard.contains("finished file a 7015")
    }
    let error = #expect(throws: WCError.self) {
      try sides.phone.updateApplicationContext(["n": 1])
    }
    #expect(error?.code == .insufficientSpace)
    try disk.makeRoom()
    sides.phone.transferUserInfo(["n": 2])
    try sides.watchSide.heard.wait("it") { $0.contains("info n=2") }
    #expect(!sides.watchSide.heard.all.contains("info n=1"))
  }

  /// A program that changes a part of the last context would remove all the rest.
  @Test(.blocking) func aContextThatCannotBeReadIsNotTakenForNone() throws {
    let sides = try TwoSides()
    try sides.activate()
    #expect(try sides.phone.readApplicationContext().isEmpty)
    try sides.phone.updateApplicationContext(["n": 1])
    try sides.watchSide.heard.wait("it") { $0.contains("context n=1") }
    let rule = FaultRule(
      .open, path: "context/", persistent: true, .fail(.tooManyOpenFiles))
    try FaultPoints.with([rule]) {
      #expect(sides.phone.applicationContext.isEmpty)
      #expect(throws: WormholeError.self) { try sides.phone.readApplicationContext() }
      // While the context is being delivered to the delegate, nothing has to be read.
      try eventually("it has been told") { sides.watch.receivedApplicationContext.isEmpty }
      #expect(throws: WormholeError.self) { try sides.watch.readReceivedApplicationContext() }
    }
    #expect(try sides.phone.readApplicationContext()["n"] as? Int == 1)
    sides.phone.end()
    #expect(throws: WCError.self) { try sides.phone.readApplicationContext() }
  }

  /// The phone's delegate may still send when it is notified of a change of watches.
  @Test(.blocking) func betweenTwoWatchesTheSessionIsInactive() throws {
    final class Hasty: Recorder, @unchecked Sendable {
      // The class adds no state to its superclass.
      override func sessionDidBecomeInactive(_ session: WCSession) {
        super.sessionDidBecomeInactive(session)
        session.transferUserInfo(["n": 1])
        session.sendMessage(["n": 1], replyHandler: nil) { [self] error in
          heard.add("message \((error as? WCError)?.code.rawValue ?? 0)")
        }
        do {
          try session.updateApplicationContext(["n": 1])
        } catch {
          heard.add("context \((error as? WCError)?.code.rawValue ?? 0)")
        }
      }
    }
    let sides = try TwoSides()
    let hasty = Hasty()
    sides.phoneSide = hasty
    try sides.activatePhone()
    try sides.pairing.pair("other")
    try hasty.heard.wait("all ends") { heard in
      heard.contains("message 7016") && heard.contains("context 7016")
    }
    sides.phone.activate()
    try hasty.heard.wait("the transfer's end") { $0.contains("finished n=1 7016") }
  }

  @Test(.blocking) func whatTakesTooLongHasTimedOut() throws {
    let sides = try TwoSides {
      $0.transferTimeout = .seconds(1)
      $0.messageTimeout = .milliseconds(200)
    }
    // The watch does not run, so the transfer waits.
    try sides.activatePhone()
    sides.phone.transferUserInfo(["n": 1])
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=1 7017") }
    // The watch runs, and does not get to the message.
    let isOver = Monitor(false)
    let isBusy = Heard<Int>()
    sides.watchSide.onUserInfo = { _ in
      isBusy.add(1)
      isOver.wait(until: .now + patience) { $0 ? () : nil }
    }
    try sides.activateWatch()
    try eventually("it is reachable") { sides.phone.isReachable }
    // On a busy machine a transfer may time out before the watch receives it.
    try eventually("it is busy") {
      sides.phone.transferUserInfo(["n": 2])
      try? isBusy.wait("the transfer", within: .seconds(2)) { !$0.isEmpty }
      return isBusy.count == 1
    }
    let codes = Heard<Int>()
    sides.phone.sendMessage([:], replyHandler: nil) { codes.add(($0 as NSError).code) }
    try codes.wait("the end") { $0 == [7017] }
    isOver.signal { $0 = true }
    #expect(!sides.watchSide.heard.all.contains { $0.hasPrefix("info n=1") })
    // A message whose sender has timed out is not delivered either.
    try eventually("it has time again") {
      sides.phone.sendMessage(["n": 3], replyHandler: nil)
      return sides.watchSide.heard.all.contains("message n=3")
    }
    #expect(!sides.watchSide.heard.all.contains("message "))
  }
}
