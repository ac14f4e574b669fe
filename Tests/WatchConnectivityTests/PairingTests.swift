import Foundation
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import Wormhole
import WormholeSyscalls

/// The pairing, and the effect of its changes on sessions.
@Suite struct PairingTests {
  @Test(.blocking) func nothingOfOneWatchReachesTheOther() throws {
    let sides = try TwoSides()
    try sides.activate()
    sides.phone.transferUserInfo(["n": 1])
    try sides.watchSide.heard.wait("it") { $0.contains("info n=1") }
    try sides.phone.updateApplicationContext(["n": 1])
    try sides.watchSide.heard.wait("it") { $0.contains("context n=1") }
    sides.watch.end()
    sides.phone.transferUserInfo(["n": 2])
    // The phone changes to another watch.
    try sides.pairing.pair("other")
    try sides.phoneSide.heard.wait("the change") { $0.contains("deactivated") }
    // The end of the transfer, and that the watch is out of reach, may be reported before, in
    // between and afterwards.
    let changes = sides.phoneSide.heard.all.filter { $0 == "inactive" || $0 == "deactivated" }
    #expect(changes == ["inactive", "deactivated"])
    #expect(sides.phone.activationState == .notActivated)
    sides.phone.activate()
    try sides.phoneSide.heard.wait("activation") { heard in
      heard.count { $0 == "activated 2 ok" } == 2
    }
    #expect(sides.phone.applicationContext.isEmpty)
    #expect(sides.phone.outstandingUserInfoTransfers.isEmpty)
    let first = sides.watchSide
    try sides.restartWatch(named: "other")
    try sides.activateWatch()
    sides.phone.transferUserInfo(["n": 3])
    try sides.watchSide.heard.wait("it") { $0.contains("info n=3") }
    #expect(!sides.watchSide.heard.all.contains { $0.contains("n=2") || $0.contains("n=1") })
    // And back: the waiting messages are delivered.
    try sides.restartWatch()
    try sides.pairing.pair("watch")
    try sides.phoneSide.heard.wait("the change") { heard in
      heard.count { $0 == "deactivated" } == 2
    }
    sides.phone.activate()
    try sides.activateWatch()
    try sides.watchSide.heard.wait("it") { $0.contains("info n=2") }
    #expect(!sides.watchSide.heard.all.contains("info n=3"))
    _ = first
  }

  /// Many apps activate again in one of the two callbacks, or in both.
  @Test(.blocking, arguments: [0, 1, 2])
  func activatingInsideTheCallbacksGoesOnWithTheOtherWatch(place: Int) throws {
    final class Eager: Recorder, @unchecked Sendable {
      // The only property beside the superclass's properties is never changed.
      let place: Int
      init(_ place: Int) { self.place = place }
      override func sessionDidBecomeInactive(_ session: WCSession) {
        super.sessionDidBecomeInactive(session)
        if place != 1 { session.activate() }
      }
      override func sessionDidDeactivate(_ session: WCSession) {
        super.sessionDidDeactivate(session)
        if place != 0 { session.activate() }
      }
    }
    let sides = try TwoSides()
    sides.phoneSide = Eager(place)
    try sides.activatePhone()
    try sides.pairing.pair("other")
    try sides.phoneSide.heard.wait("activation") {
      $0 == ["activated 2 ok", "inactive", "deactivated", "activated 2 ok"]
    }
    try sides.restartWatch(named: "other")
    try sides.activateWatch()
    sides.phone.transferUserInfo(["n": 1])
    try sides.watchSide.heard.wait("it") { $0.contains("info n=1") }
    let activations = sides.phoneSide.heard.all.filter { $0.hasPrefix("activated") }
    #expect(activations.count == 2)
  }

  /// The watch's app was uninstalled and installed again between two looks of the phone: all flags
  /// are as before, but the phone's directory for the watch is another.
  @Test(.blocking) func aNewDirectoryForTheSameWatchIsReported() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    let before = sides.phone.watchDirectoryURL
    try sides.pairing.update { $0.watches["watch"]?.directory = 4711 }
    try sides.phoneSide.heard.wait("the change") { $0.last == "watch state" }
    #expect(sides.phone.watchDirectoryURL != before)
    #expect(sides.phoneSide.heard.all == ["activated 2 ok", "watch state"])
  }

  /// The phone's app need not run to be reached, if a command is registered that starts it.
  @Test(.blocking) func theWatchHearsThatThePhoneCanBeStarted() throws {
    let sides = try TwoSides()
    try sides.activateWatch()
    #expect(!sides.watch.isReachable)
    let container = try SharedContainer(directory: sides.container)
    try container.registerLaunch(of: "phone.watch", program: "/bin/true")
    try sides.watchSide.heard.wait("the change") { $0.last == "reachable true" }
    try container.removeLaunch(of: "phone.watch")
    try sides.watchSide.heard.wait("and back") { $0.last == "reachable false" }
  }

  /// The phone's message never starts the watch's app.
  @Test(.blocking) func aWatchWithALaunchCommandIsNotReachable() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    let container = try SharedContainer(directory: sides.container)
    try container.registerLaunch(of: "watch.watch", program: "/bin/true")
    #expect(!sides.phone.isReachable)
    let ends = Heard<Int>()
    sides.phone.sendMessage([:], replyHandler: nil) { ends.add(($0 as NSError).code) }
    try ends.wait("its end") { $0 == [7007] }
    try sides.activateWatch()
    try sides.phoneSide.heard.wait("the watch") { $0.last == "reachable true" }
    #expect(sides.phoneSide.heard.all.count { $0.hasPrefix("reachable") } == 1)
  }

  @Test(.blocking) func complicationTransfersComeFirstWithinTheirBudget() throws {
    let sides = try TwoSides { $0.complicationBudget = 2 }
    try sides.activatePhone()
    #expect(sides.phone.remainingComplicationUserInfoTransfers == 0)
    let plain = sides.phone.transferCurrentComplicationUserInfo(["n": 0])
    #expect(!plain.isCurrentComplicationInfo)
    try sides.pairing.setComplication(enabled: true)
    #expect(sides.phone.isComplicationEnabled)
    #expect(sides.phone.remainingComplicationUserInfoTransfers == 2)
    let first = sides.phone.transferCurrentComplicationUserInfo(["n": 1])
    #expect(first.isCurrentComplicationInfo)
    let second = sides.phone.transferCurrentComplicationUserInfo(["n": 2])
    #expect(!first.isCurrentComplicationInfo && second.isCurrentComplicationInfo)
    let third = sides.phone.transferCurrentComplicationUserInfo(["n": 3])
    #expect(!third.isCurrentComplicationInfo && second.isCurrentComplicationInfo)
    #expect(sides.phone.outstandingUserInfoTransfers.count == 4)
    // The day's budget is not the process's.
    try sides.restartPhone()
    try sides.activatePhone()
    #expect(sides.phone.remainingComplicationUserInfoTransfers == 0)
    try sides.activateWatch()
    try sides.watchSide.heard.wait("all") { $0.contains("info n=3") }
    #expect(
      sides.watchSide.heard.all.filter { $0.hasPrefix("info") }
        == ["info n=1", "info n=2", "info n=0", "info n=3"])
  }

  @Test(.blocking) func whatCannotBeSentCostsNothingOfTheBudget() throws {
    let sides = try TwoSides { $0.complicationBudget = 2 }
    try sides.pairing.setComplication(enabled: true)
    sides.phone.transferCurrentComplicationUserInfo(["n": 1])
    try sides.activatePhone()
    sides.phone.transferCurrentComplicationUserInfo(["n": NSNull()])
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=<null> 7010") }
    #expect(sides.phone.remainingComplicationUserInfoTransfers == 2)
    sides.phone.delegate = nil
    sides.phone.transferCurrentComplicationUserInfo(["n": 2])
    #expect(sides.phone.remainingComplicationUserInfoTransfers == 2)
  }

  /// Only the last complication transfer is the current one, also among transfers from an earlier
  /// run of the app.
  @Test(.blocking) func ofComplicationTransfersTheLastIsTheCurrentOne() throws {
    let sides = try TwoSides()
    try sides.pairing.setComplication(enabled: true)
    try sides.activatePhone()
    for number in 1...2 { sides.phone.transferCurrentComplicationUserInfo(["n": number]) }
    try sides.restartPhone()
    try sides.activatePhone()
    let earlier = sides.phone.outstandingUserInfoTransfers
    #expect(earlier.map(\.isCurrentComplicationInfo) == [false, true])
    sides.phone.transferCurrentComplicationUserInfo(["n": 3])
    #expect(earlier.map(\.isCurrentComplicationInfo) == [false, false])
    #expect(
      sides.phone.outstandingUserInfoTransfers.map(\.isCurrentComplicationInfo)
        == [false, false, true])
  }

  /// The transfers of the earlier run are listed only after this run has sent its own.
  @Test(.blocking) func anEarlierRunsTransferDoesNotReplaceTheCurrentOne() throws {
    let sides = try TwoSides()
    try sides.pairing.setComplication(enabled: true)
    try sides.activatePhone()
    sides.phone.transferCurrentComplicationUserInfo(["n": 1])
    try sides.restartPhone()
    try sides.activatePhone()
    let own = sides.phone.transferCurrentComplicationUserInfo(["n": 2])
    let all = sides.phone.outstandingUserInfoTransfers
    #expect(all.map { $0.userInfo["n"] as? Int } == [1, 2])
    #expect(all.map(\.isCurrentComplicationInfo) == [false, true])
    #expect(own.isCurrentComplicationInfo)
  }

  @Test(.blocking) func eachRealChangeOfReachabilityIsTold() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    #expect(!sides.phone.isReachable)
    try sides.activateWatch()
    try sides.phoneSide.heard.wait("it") { $0.last == "reachable true" }
    try sides.pairing.setInRange(false)
    try sides.phoneSide.heard.wait("it") { $0.last == "reachable false" }
    try sides.watchSide.heard.wait("it") { $0.last == "reachable false" }
    try sides.pairing.setInRange(true)
    try sides.phoneSide.heard.wait("it") { $0.last == "reachable true" }
    try sides.pairing.update { $0.isPhoneLocked = true }
    try sides.watchSide.heard.wait("it") { $0.last == "reachable false" }
    #expect(sides.watch.iOSDeviceNeedsUnlockAfterRebootForReachability)
    #expect(sides.phone.isReachable)
    try sides.pairing.update { $0.isPhoneLocked = false }
    sides.watch.end()
    try sides.phoneSide.heard.wait("it") { $0.last == "reachable false" }
  }

  /// The process that was to remove the directory is killed, or is suspended until another watch
  /// has the name.
  @Test(.blocking, arguments: ["kill", "stop"])
  func aDirectoryBelongsToOnePairing(fault: String) throws {
    let sides = try TwoSides()
    let old = try #require(try sides.pairing.directory(of: "watch"))
    try Data("old".utf8).write(to: URL(fileURLWithPath: old + "/token"))
    let unpairing = try Running(
      Programs.built("wormhole"),
      ["--container", sides.container, "watchconnectivity", "unpair"],
      environment: ["WORMHOLE_FAULTS=open~watches@1:before:\(fault)"])
    if fault == "kill" {
      #expect(try unpairing.outcome().status == .signalled(9))
    } else {
      try unpairing.waitUntilStopped()
    }
    #expect(try sides.pairing.state.watches.isEmpty)
    try sides.pairing.pair()
    let new = try #require(try sides.pairing.directory(of: "watch"))
    #expect(try FileManager.default.contentsOfDirectory(atPath: new).isEmpty)
    try Data("new".utf8).write(to: URL(fileURLWithPath: new + "/token"))
    if fault == "stop" {
      try unpairing.child.send(.go)
      #expect(try unpairing.outcome().status == .exited(0))
      #expect(!FileManager.default.fileExists(atPath: old))
    }
    #expect(try String(contentsOfFile: new + "/token", encoding: .utf8) == "new")
    // Leftovers are removed with the next watch.
    try sides.pairing.unpair()
    let all = sides.container + "/watches"
    #expect(try FileManager.default.contentsOfDirectory(atPath: all).isEmpty)
  }

  /// In a group's container, any member may have given another directory the name.
  @Test(.blocking) func inAGroupsContainerADirectoryOfOthersIsNotEmptied() throws {
    let folder = try TemporaryDirectory()
    var options = Options()
    options.sharing = .group
    let pairing = Pairing(in: try SharedContainer(directory: folder.path + "/c", options: options))
    let own = try #require(try pairing.directory(of: "watch"))
    try Data("token".utf8).write(to: URL(fileURLWithPath: own + "/token"))
    try pairing.unpair()
    #expect(!FileManager.default.fileExists(atPath: own))
    let root = try folder.descriptor.open("c", [.readOnly, .directory])
    try root.rename("watches", to: folder.descriptor, "aside")
    try root.makeDirectory("watches", mode: 0o700)
    try root.open("watches", [.readOnly, .directory]).setMode(0o2770)
    try root.makeDirectory("watches/watch", mode: 0o700)
    try folder.write("private", to: "c/watches/watch/letter")
    try pairing.pair()
    let error = #expect(throws: WormholeError.self) { try pairing.unpair() }
    #expect(error?.code == .permissionDenied)
    #expect(try folder.read("c/watches/watch/letter") == "private")
  }

  @Test(.blocking) func whatTheAppRemovesItselfKeepsNothingElseFromBeingRemoved() throws {
    let sides = try TwoSides()
    let directory = try #require(try sides.pairing.directory(of: "watch"))
    for number in 0..<20 {
      try Data("a".utf8).write(to: URL(fileURLWithPath: directory + "/file\(number)"))
    }
    let gone = FaultRule(.unlink, path: "/file", .fail(.noSuchFile))
    // The file exists all the same, and a second listing finds it.
    let calls = try FaultPoints.with([gone]) { try sides.pairing.unpair() }
    #expect(calls.contains { $0.begins(with: "unlink") })
    #expect(!FileManager.default.fileExists(atPath: directory))
  }

  @Test(.blocking) func aWatchsDirectoryGoesWithItAndItsApp() throws {
    let sides = try TwoSides()
    try sides.activate()
    #expect(sides.watch.watchDirectoryURL == nil)
    for take in [{ try sides.pairing.uninstall(.watch) }, { try sides.pairing.unpair() }] {
      let url = try #require(sides.phone.watchDirectoryURL)
      let file = url.appendingPathComponent("deep/token")
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data("token".utf8).write(to: file)
      // A name may be no text.
      let deep = file.deletingLastPathComponent().path + "/"
      let odd = deep.utf8CString.dropLast() + [CChar(bitPattern: 0xE9), 0]
      _ = try Descriptor.open(path: Array(odd), [.writeOnly, .create], mode: 0o600)
      // The removal must not follow a link out of the directory.
      try FileManager.default.createSymbolicLink(
        at: url.appendingPathComponent("link"),
        withDestinationURL: URL(fileURLWithPath: sides.folder.path))
      try take()
      #expect(sides.phone.watchDirectoryURL == nil)
      #expect(!FileManager.default.fileExists(atPath: url.path))
      #expect(FileManager.default.fileExists(atPath: sides.container))
      try sides.pairing.pair()
      try sides.pairing.install(.watch)
    }
  }
}
