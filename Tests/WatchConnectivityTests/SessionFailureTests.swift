import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WatchConnectivity

/// What remains possible after a call has failed in part.
@Suite(.blocking) struct SessionFailureTests {
  /// The message is in the counterpart's inbox, and only its durability is in doubt.
  @Test func aTransferWhoseSyncFailedCanBeCancelled() throws {
    let sides = try TwoSides { $0.durability = .power }
    try sides.activatePhone()
    let rule = FaultRule(.fsync, path: "/inbox", persistent: true, .fail(.inputOutput))
    var transfers: [WCSessionUserInfoTransfer] = []
    FaultPoints.with([rule]) { transfers.append(sides.phone.transferUserInfo(["n": 1])) }
    let connection = try #require(sides.phone.connection)
    #expect(try connection.peer.pendingMessages.count == 1)
    for transfer in transfers { transfer.cancel() }
    try #require(try connection.peer.pendingMessages.isEmpty)
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=1 7001") }
  }

  /// As with a file, whose copy is in the container.
  @Test func aFileWhoseSyncFailedCanBeCancelledAndHasItsSize() throws {
    let sides = try TwoSides { $0.durability = .power }
    try sides.activatePhone()
    try sides.folder.write("content", to: "a.txt")
    let url = URL(fileURLWithPath: sides.folder.path + "/a.txt")
    let rule = FaultRule(.fsync, path: "/inbox", persistent: true, .fail(.inputOutput))
    var transfers: [WCSessionFileTransfer] = []
    FaultPoints.with([rule]) {
      transfers.append(sides.phone.transferFile(url, metadata: nil))
    }
    #expect(transfers.map(\.progress.totalUnitCount) == [7])
    for transfer in transfers { transfer.progress.cancel() }
    let connection = try #require(sides.phone.connection)
    // Foundation calls the handler of a cancelled progress later.
    try eventually("nothing is in transfer") { try connection.peer.pendingMessages.isEmpty }
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished file a.txt 7001") }
  }

  /// Another thread reads the pairing while the session changes to another container.
  @Test func thePairingOfAFormerContainerIsNotThatOfTheNext() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    let phone = sides.phone
    let opened = try #require(phone.state.withLock { $0.opened })
    phone.state.withLock { $0.opened = nil }
    phone.forget()
    _ = try phone.look(at: opened)
    #expect(phone.known.withLock { $0.version } == -1)
    phone.state.withLock { $0.opened = opened }
    _ = try phone.look(at: opened)
    #expect(phone.known.withLock { $0.version } >= 0)
  }

  /// The caller of `cancel()` receives no error, and does not repeat the call.
  @Test func aCancellationThatTheSystemRefusesOnceIsRepeated() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    let transfer = sides.phone.transferUserInfo(["n": 1])
    let calls = FaultPoints.with([FaultRule(.rename, .fail(.inputOutput))]) { transfer.cancel() }
    #expect(calls.count { $0.hasPrefix("rename ") } >= 2, "\(calls)")
    let connection = try #require(sides.phone.connection)
    try #require(try connection.peer.pendingMessages.isEmpty)
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=1 7001") }
  }

  /// Code that changes a part of the last context would remove all the rest, and a transfer would
  /// fail without a reason that lasts.
  @Test func whatTheSystemRefusesToReadOnceIsReadAgain() throws {
    let sides = try TwoSides()
    try sides.pairing.setInRange(true)
    try sides.activatePhone()
    try sides.phone.updateApplicationContext(["n": 1])
    let context = FaultRule(.open, path: "context/", .fail(.tooManyOpenFiles))
    FaultPoints.with([context]) {
      #expect(sides.phone.applicationContext["n"] as? Int == 1)
    }
    let pairing = FaultRule(.open, path: "pairing/value.plist", .fail(.tooManyOpenFiles))
    FaultPoints.with([pairing]) { #expect(sides.phone.isPaired) }
  }

  /// An app would end its background task before all content has arrived, transfer again what is in
  /// transfer, or have no directory for its watch.
  @Test func whatTheSystemRefusesToListOnceIsListedAgain() throws {
    let sides = try TwoSides()
    // Out of range all content waits, and the watch claims none.
    try sides.pairing.setInRange(false)
    try sides.activatePhone()
    try sides.activateWatch()
    sides.phone.transferUserInfo(["n": 1])
    let inbox = FaultRule(.getdents, path: "watch.watch/inbox", .fail(.tooManyOpenFiles))
    FaultPoints.with([inbox]) { #expect(sides.watch.hasContentPending) }
    try sides.restartPhone()
    try sides.activatePhone()
    FaultPoints.with([inbox]) {
      #expect(sides.phone.outstandingUserInfoTransfers.map { $0.userInfo["n"] as? Int } == [1])
    }
    let directory = FaultRule(.mkdir, path: "watches", .fail(.inputOutput))
    FaultPoints.with([directory]) { #expect(sides.phone.watchDirectoryURL != nil) }
  }

  @Test func aComplicationTransferThatCannotBeStoredTakesNothingOfTheBudget() throws {
    let sides = try TwoSides { $0.complicationBudget = 2 }
    try sides.pairing.setComplication(enabled: true)
    try sides.activatePhone()
    let first = sides.phone.transferCurrentComplicationUserInfo(["n": 1])
    #expect(sides.phone.remainingComplicationUserInfoTransfers == 1)
    let rule = FaultRule(.rename, path: "inbox/", persistent: true, .fail(.noSpace))
    FaultPoints.with([rule]) {
      _ = sides.phone.transferCurrentComplicationUserInfo(["n": 2])
    }
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=2 7015") }
    #expect(sides.phone.remainingComplicationUserInfoTransfers == 1)
    // The latest that was sent.
    #expect(first.isCurrentComplicationInfo)
  }

  /// Nobody is told of the end, which the program can only see at the transfer.
  @Test func aTransferThatWasRefusedWithoutADelegateIsNotInProgress() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    sides.phone.delegate = nil
    let transfer = sides.phone.transferUserInfo(["n": 1])
    // The two queues on which the end is reported.
    sides.phone.ends.sync {}
    sides.phone.callbacks.sync {}
    #expect(!transfer.isTransferring)
  }

  /// The container was moved away after the session's deactivation, and before its activation.
  @Test func aDeactivatedSessionIsActivatedInTheContainerThatIsThere() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    try sides.pairing.pair("other")
    try sides.phoneSide.heard.wait("the change") { $0.last == "deactivated" }
    try FileManager.default.moveItem(atPath: sides.container, toPath: sides.container + ".away")
    sides.phone.activate()
    try sides.phoneSide.heard.wait("activation") { heard in
      heard.count { $0 == "activated 2 ok" } == 2
    }
    let opened = try #require(sides.phone.state.withLock { $0.opened })
    #expect(opened.container.storage.isInPlace)
  }

  /// No outcome arrives from there, and who waits for the end of a transfer would wait for ever.
  @Test func aTransferEndsWithItsContainer() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    let transfer = sides.phone.transferUserInfo(["n": 1])
    try FileManager.default.moveItem(atPath: sides.container, toPath: sides.container + ".away")
    sides.phone.activate()
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=1 7001") }
    #expect(!transfer.isTransferring)
    #expect(sides.phone.outstandingUserInfoTransfers.isEmpty)
    #expect(sides.phoneSide.heard.all.count { $0.hasPrefix("finished") } == 1)
  }
}
