import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeDropIns
import WormholePairings
import WormholeSyscalls

@testable import WatchConnectivity

/// Calls at the moment when another thread or process changes the same state.
@Suite(.blocking) struct SessionMomentTests {
  /// The session's queue has not ended the subscription yet.
  @Test func contentOfAKindThatIsNoLongerTakenIsDeclined() throws {
    let sides = try TwoSides()
    try sides.activate()
    try eventually("it receives") { sides.watch.connection?.reception?.isStopped == false }
    // The review that has begun to receive subscribes to contexts last.
    sides.watch.work.sync {}
    sides.watch.work.suspend()
    sides.watch.takenKinds = []
    let isDeclined = Result {
      sides.phone.transferUserInfo(["n": 1])
      try eventually("it is declined") { sides.watch.connection?.reception?.isStopped == true }
    }
    sides.watch.work.resume()
    try isDeclined.get()
    #expect(!sides.watchSide.heard.all.contains("info n=1"))
    sides.watch.takenKinds = nil
    try sides.watchSide.heard.wait("it") { $0.contains("info n=1") }
  }

  /// No notice reports that the property can be read again.
  @Test func aPropertyThatCouldNotBeReadIsReadAgainForItsObservers() throws {
    let sides = try TwoSides()
    try sides.pairing.setInRange(true)
    try sides.activatePhone()
    // A late notice of the first state would cause a reading without a second attempt.
    sides.phone.state.withLock { $0.opened }?.watching.stop()
    sides.phone.work.sync {}
    let (values, isRefused) = (Heard<Bool>(), Monitor(true))
    let rule = FaultRule(
      .open, path: "pairing/value.plist", persistent: true, .fail(.tooManyOpenFiles))
    let check = sides.phone.observers.add(
      SessionObservers.Check { session in
        let isFirst = isRefused.withLock { exchange(&$0, with: false) }
        FaultPoints.with(isFirst ? [rule] : []) { values.add(session.isPaired) }
      })
    sides.phone.observers.review()
    try values.wait("the second reading") { $0.count > 1 }
    #expect(Array(values.all.prefix(2)) == [false, true])
    check.cancel()
    withExtendedLifetime(sides) {}
  }

  /// As with the pairing, no notice reports that the counterpart's presence can be read again.
  ///
  /// Three readings fail, so that no late notice stands for the attempts of the session.
  @Test func aReachabilityThatCouldNotBeReadIsReadAgainForItsObservers() throws {
    let sides = try TwoSides()
    try sides.activate()
    try sides.phoneSide.heard.wait("the watch") { $0.contains("reachable true") }
    sides.phone.work.sync {}
    let (values, refusals) = (Heard<Bool>(), Monitor(3))
    let home = "members/watch.watch"
    let rules = [
      FaultRule(.open, path: home, persistent: true, .fail(.tooManyOpenFiles)),
      FaultRule(.ofdquery, path: home, persistent: true, .fail(.tooManyOpenFiles)),
    ]
    let check = sides.phone.observers.add(
      SessionObservers.Check { session in
        let isRefused = refusals.withLock { left in
          left -= 1
          return left >= 0
        }
        FaultPoints.with(isRefused ? rules : []) { values.add(session.isReachable) }
      })
    sides.phone.observers.review()
    try? values.wait("the reading that succeeds") { $0.count > 3 }
    #expect(Array(values.all.prefix(4)) == [false, false, false, true])
    check.cancel()
    withExtendedLifetime(sides) {}
  }

  /// A watch is paired, and the advice to pair one would be wrong.
  @Test func aSideThatIsTakenIsNotReportedAsNoWatch() throws {
    let sides = try TwoSides()
    try sides.pairing.unpair()
    try sides.activatePhone()
    let other = try SharedContainer(directory: sides.container).join(as: "phone.other")
    try sides.pairing.pair("other")
    let error = #expect(throws: WCError.self) {
      try sides.phone.updateApplicationContext(["n": 1])
    }
    #expect(error?.code == .genericError)
    other.leave()
  }

  // MARK: Observers

  /// A cancelled one is called no more.
  @Test func observersAreCalledInTheOrderOfTheirAddition() throws {
    let (session, calls) = (WCSession(part: nil), Heard<Int>())
    let tokens = (1...20).map { number in
      session.observers.add(SessionObservers.Check { _ in calls.add(number) })
    }
    session.observers.review()
    try calls.wait("all") { $0.count == 20 }
    #expect(calls.all == Array(1...20))
    for token in tokens.prefix(19) { token.cancel() }
    session.observers.review()
    try calls.wait("the last") { $0.count > 20 }
    #expect(calls.all.suffix(1) == [20])
    #expect(calls.count == 21)
    for token in tokens { token.cancel() }
    withExtendedLifetime(session) {}
  }

  /// The `work` queue may wait for a callback that waits for an observer.
  @Test func observersReadWhileTheQueuesOfTheSessionAreBlocked() throws {
    let (session, readings) = (WCSession(part: nil), Heard<Int>())
    session.work.suspend()
    session.observers.calls.suspend()
    defer {
      session.observers.calls.resume()
      session.work.resume()
    }
    let token = session.observers.add(SessionObservers.Check { _ in readings.add(1) })
    session.observers.review()
    try readings.wait("a reading") { !$0.isEmpty }
    token.cancel()
  }

  // MARK: Directories

  /// The removal of the watch's directories is over before the directory is made.
  @Test func noDirectoryStaysForAWatchThatIsUnpairedMeanwhile() throws {
    let folder = try TemporaryDirectory()
    let container = folder.path + "/container"
    let pairing = try Pairing(directory: container)
    let (pause, found) = (FaultPause(), Heard<String>())
    let asking = try WormholeSyscalls.Thread("asking") {
      FaultPoints.with([FaultRule(.mkdir, path: "watches", .pause(pause))]) {
        do {
          found.add(try pairing.directory(of: "watch") ?? "none")
        } catch {
          found.add("\(error)")
        }
      }
    }
    let change = Result {
      try eventually("it is about to make the directory") { pause.isReached }
      try pairing.unpair()
    }
    pause.open()
    asking.join()
    try change.get()
    #expect(found.all == ["none"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: container + "/watches") == [])
    withExtendedLifetime(folder) {}
  }

  /// Another process has removed the directory above just before.
  @Test func aDirectoryIsMadeAgainIfTheOneAboveIsGone() throws {
    let folder = try TemporaryDirectory()
    let pairing = try Pairing(directory: folder.path + "/container")
    let rule = FaultRule(.mkdir, path: "watches", .fail(.noSuchFile))
    var found: String?
    try FaultPoints.with([rule]) { found = try pairing.directory(of: "watch") }
    let directory = try #require(found)
    #expect(FileManager.default.fileExists(atPath: directory))
    withExtendedLifetime(folder) {}
  }
}
