import Foundation
import TestSupport
import TestTraits
import Testing
@testable import WatchConnectivity
import WormholeContainerStorage
import WormholeSyscalls

/// Transfers arrive as the table of transfers promises, both sides in one process.
@Suite struct TransferTests {
  @Test(.blocking) func aMessageIsHandledAndItsReplyComesOnce() throws {
    let sides = try TwoSides()
    sides.watchSide.onMessage = { message, reply in
      reply?(["sum": (message["a"] as? Int ?? 0) + 1, "half": message["half"] as? Double ?? 0])
    }
    try sides.activate()
    let ends = Heard<String>()
    sides.phone.sendMessage(["a": 41, "half": 0.5]) { reply in
      ends.add("\(reply["sum"] as? Int ?? 0) \(reply["half"] as? Double ?? 0)")
    } errorHandler: {
      ends.add("\($0)")
    }
    try ends.wait("a reply") { !$0.isEmpty }
    #expect(ends.all == ["42 0.5"])
    sides.phone.sendMessage(["b": 1], replyHandler: nil)
    try sides.watchSide.heard.wait("the message") { $0.contains("message b=1") }
    sides.watch.sendMessageData(Data("abc".utf8)) { ends.add(String(decoding: $0, as: UTF8.self)) }
    try ends.wait("a reply") { $0.last == "cba" }
    sides.watch.sendMessageData(Data("abc".utf8), replyHandler: nil)
    try sides.phoneSide.heard.wait("data") { $0.contains("data abc") }
  }

  @Test(.blocking) func userInfosAndFilesComeInTheOrderInWhichTheyWereTransferred() throws {
    let sides = try TwoSides()
    try sides.activate()
    try sides.folder.write("content", to: "a.txt")
    let url = URL(fileURLWithPath: sides.folder.path + "/a.txt")
    let first = sides.phone.transferUserInfo(["n": 1])
    let second = sides.phone.transferFile(url, metadata: ["n": 2])
    let third = sides.phone.transferUserInfo(["n": 3])
    // A report of the reachability may follow.
    try sides.watchSide.heard.wait("all") { $0.contains("info n=3") }
    #expect(
      sides.watchSide.heard.all.filter { !$0.hasPrefix("reach") }
        == ["activated 2 ok", "info n=1", "file a.txt content n=2", "info n=3"])
    try sides.phoneSide.heard.wait("ends") { $0.contains("finished n=3 ok") }
    #expect(
      sides.phoneSide.transfers.all
        == [first, second, third].map { ObjectIdentifier($0 as AnyObject) })
    #expect(![first, third].contains { $0.isTransferring } && !second.isTransferring)
    #expect(second.progress.isFinished)
    #expect(sides.phone.outstandingUserInfoTransfers.isEmpty)
  }

  /// It is compared with its checksum first, about a second for a gigabyte; no message waits.
  @Test(.blocking) func aLargeFileHoldsUpWhatComesAfterItForSecondsOnly() throws {
    let sides = try TwoSides()
    sides.watchSide = WhoeverReadsNoFile()
    try sides.activate()
    let file = URL(fileURLWithPath: sides.folder.path + "/large")
    try sides.folder.write("", to: "large")
    let handle = try FileHandle(forWritingTo: file)
    var random = SeededRandom(seed: 37)
    let megabyte = Data(random.bytes(1 << 20))
    let megabytes = TestRun.isLong ? 1024 : 64
    for _ in 0..<megabytes { try handle.write(contentsOf: megabyte) }
    try handle.close()
    sides.phone.transferFile(file, metadata: nil)
    let begin = Instant.now
    sides.phone.transferUserInfo(["n": 1])
    let replies = Heard<Duration>()
    sides.phone.sendMessage(["a": 1]) { _ in replies.add(Instant.now - begin) }
    try sides.watchSide.heard.wait("the user info") { $0.contains("info n=1") }
    // Ten times a second for a gigabyte, for busy machines, and a few seconds for everything else.
    let took = Instant.now - begin
    #expect(took < .seconds(10) + .milliseconds(10 * megabytes))
    try replies.wait("a reply") { $0.count == 1 }
  }

  @Test(.blocking) func ofContextsTheLatestComesAndTheSameOnlyOnce() throws {
    let sides = try TwoSides()
    let areSame = Heard<Bool>()
    sides.watchSide.onContext = { session, context in
      let received = NSDictionary(dictionary: session.receivedApplicationContext)
      areSame.add(received.isEqual(to: context))
    }
    try sides.activatePhone()
    for number in 1...5 { try sides.phone.updateApplicationContext(["n": number]) }
    #expect(sides.phone.applicationContext["n"] as? Int == 5)
    try sides.activateWatch()
    try sides.watchSide.heard.wait("the context") { $0.contains("context n=5") }
    try sides.phone.updateApplicationContext(["n": 5])
    try sides.phone.updateApplicationContext(["n": 6])
    try sides.watchSide.heard.wait("the next") { $0.contains("context n=6") }
    #expect(
      sides.watchSide.heard.all.filter { $0.hasPrefix("context") }
        == ["context n=5", "context n=6"])
    #expect(areSame.all == [true, true])
    #expect(sides.watch.receivedApplicationContext["n"] as? Int == 6)
  }

  @Test(.blocking) func whatWasSentToNobodyComesOnceSomebodyIsThere() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    sides.phone.transferUserInfo(["n": 1])
    let outstanding = sides.phone.outstandingUserInfoTransfers
    #expect(outstanding.count == 1 && outstanding[0].isTransferring)
    // A second instance of the phone's session knows the transfer too.
    try sides.restartPhone()
    try sides.activatePhone()
    let again = sides.phone.outstandingUserInfoTransfers
    #expect(again.map { $0.userInfo["n"] as? Int } == [1])
    try sides.activateWatch()
    try sides.watchSide.heard.wait("it") { $0.contains("info n=1") }
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=1 ok") }
    #expect(sides.phoneSide.transfers.all == again.map { ObjectIdentifier($0) })
  }

  /// An app shows what it still has to transfer by the path and the metadata of each file.
  @Test(.blocking) func aFileOfAnEarlierRunIsListedAsItWasSent() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    try sides.folder.write("content", to: "a.txt")
    let url = URL(fileURLWithPath: sides.folder.path + "/a.txt")
    sides.phone.transferFile(url, metadata: ["n": 2])
    try sides.restartPhone()
    try sides.activatePhone()
    let transfers = sides.phone.outstandingFileTransfers
    #expect(transfers.map { $0.file.fileURL.path } == [url.path])
    #expect(transfers.map { $0.file.metadata?["n"] as? Int } == [2])
    #expect(transfers.map(\.progress.totalUnitCount) == [7])
    #expect(transfers.allSatisfy { $0.isTransferring })
  }

  @Test(.blocking) func withoutADelegateNothingIsTaken() throws {
    let sides = try TwoSides()
    try sides.activate()
    sides.watch.delegate = nil
    sides.phone.transferUserInfo(["n": 1])
    try sides.phone.updateApplicationContext(["n": 1])
    let ends = Heard<Int>()
    sides.phone.sendMessage([:], replyHandler: nil) { ends.add(($0 as NSError).code) }
    try ends.wait("nobody") { $0 == [7014] }
    try eventually("it is pending") { sides.watch.hasContentPending }
    #expect(sides.phone.outstandingUserInfoTransfers.count == 1)
    sides.watch.delegate = sides.watchSide
    try sides.watchSide.heard.wait("both") {
      $0.contains("info n=1") && $0.contains("context n=1")
    }
    try eventually("nothing is pending") { !sides.watch.hasContentPending }
  }

  /// Apps ask after each item whether more is pending.
  @Test(.blocking) func theQuestionWhetherContentIsPendingReadsOneTransferOfAThousand() throws {
    let sides = try TwoSides()
    try sides.activate()
    sides.watch.delegate = nil
    func send(_ count: Int) throws -> Int {
      for number in 0..<count { sides.phone.transferUserInfo(["n": number]) }
      try eventually("the watch has no delegate") { sides.watch.hasContentPending }
      return FaultPoints.with { #expect(sides.watch.hasContentPending) }.count
    }
    let few = try send(10)
    let many = try send(990)
    #expect(many <= few + 2 && few < 40, "\(few) calls with 10 waiting, \(many) with 1000")
  }

  /// Draining takes a time linear to the number of transfers: no question costs more than another.
  @Test(.blocking) func aThousandAreDrainedWithAFewCallsForEachQuestion() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    let count = 1000
    for number in 0..<count { sides.phone.transferUserInfo(["n": number]) }
    let (watch, calls) = (sides.watch, Heard<Int>())
    sides.watchSide.onUserInfo = { _ in
      calls.add(FaultPoints.with { _ = watch.hasContentPending }.count)
    }
    try sides.activateWatch()
    try calls.wait("all") { $0.count == count }
    let most = try #require(calls.all.max())
    // Reading each header that waits would take more than a thousand.
    #expect(most < 200, "\(most) calls for one of \(count) questions")
  }

  /// A transfer in the delegate's call has arrived, also if it is the first of a session.
  @Test(.blocking) func aTransferInTheDelegatesCallIsNotPending() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    for number in 1...2 { sides.phone.transferUserInfo(["n": number]) }
    let watch = sides.watch
    let infos = Heard<Bool>()
    sides.watchSide.onUserInfo = { _ in infos.add(watch.hasContentPending) }
    try sides.activateWatch()
    #expect(throws: Never.self) { try infos.wait("both") { $0.count == 2 } }
    #expect(infos.all == [true, false])
    let contexts = Heard<Bool>()
    sides.watchSide.onContext = { session, _ in contexts.add(session.hasContentPending) }
    try sides.phone.updateApplicationContext(["n": 1])
    try contexts.wait("the context") { $0 == [false] }
  }

  /// The transfer is in the receiver's inbox: if it failed, the program would send it twice.
  @Test(.blocking) func aTransferWhoseSyncFailedArrives() throws {
    let sides = try TwoSides { $0.durability = .power }
    try sides.activatePhone()
    try sides.folder.write("content", to: "a.txt")
    let url = URL(fileURLWithPath: sides.folder.path + "/a.txt")
    let rule = FaultRule(.fsync, path: "/inbox", persistent: true, .fail(.inputOutput))
    let calls = FaultPoints.with([rule]) {
      sides.phone.transferUserInfo(["n": 1])
      sides.phone.transferFile(url, metadata: ["n": 2])
    }
    #expect(calls.count { $0.hasPrefix("fsync ") && $0.hasSuffix("/inbox") } == 2)
    #expect(sides.phone.outstandingUserInfoTransfers.count == 1)
    #expect(sides.phone.outstandingFileTransfers.count == 1)
    try sides.activateWatch()
    try sides.watchSide.heard.wait("both") {
      $0.contains("info n=1") && $0.contains("file a.txt content n=2")
    }
    try sides.phoneSide.heard.wait("their ends") {
      $0.contains("finished n=1 ok") && $0.contains("finished file a.txt ok")
    }
    #expect(sides.phoneSide.transfers.count == 2)
  }

  @Test(.blocking) func anArchivedTransferIsAsItWas() throws {
    let sides = try TwoSides()
    try sides.pairing.setComplication(enabled: true)
    try sides.activatePhone()
    for transfer in [
      sides.phone.transferCurrentComplicationUserInfo(["n": 1, "data": Data([1, 2])]),
      sides.phone.transferUserInfo(["n": 1, "data": Data([1, 2])]),
    ] {
      let archive = try NSKeyedArchiver.archivedData(
        withRootObject: transfer, requiringSecureCoding: true)
      let read = try #require(
        try NSKeyedUnarchiver.unarchivedObject(
          ofClass: WCSessionUserInfoTransfer.self, from: archive))
      #expect(read.userInfo.keys.sorted() == ["data", "n"])
      #expect(read.userInfo["n"] as? Int == 1)
      #expect(read.userInfo["data"] as? Data == Data([1, 2]))
      #expect(read.isCurrentComplicationInfo == transfer.isCurrentComplicationInfo)
      #expect(transfer.isTransferring && !read.isTransferring)
    }
  }

  @Test(.blocking) func outOfRangeNothingComesAndAfterwardsAllDoes() throws {
    let sides = try TwoSides()
    try sides.activate()
    for round in 1...20 {
      try sides.pairing.setInRange(false)
      sides.phone.transferUserInfo(["n": round])
      try sides.phone.updateApplicationContext(["n": round])
      let ends = Heard<Int>()
      sides.phone.sendMessage([:], replyHandler: nil) { ends.add(($0 as NSError).code) }
      sides.watch.sendMessage([:], replyHandler: { _ in }) { ends.add(($0 as NSError).code) }
      try ends.wait("nobody is reachable") { $0 == [7007, 7007] }
      #expect(!sides.phone.isReachable && !sides.watch.isReachable)
      #expect(!sides.watchSide.heard.all.contains("info n=\(round)"))
      #expect(!sides.watchSide.heard.all.contains("context n=\(round)"))
      try sides.pairing.setInRange(true)
      try sides.watchSide.heard.wait("both") {
        $0.contains("info n=\(round)") && $0.contains("context n=\(round)")
      }
    }
    try sides.phoneSide.heard.wait("the change") { $0.contains("reachable true") }
  }

  @Test(.blocking) func endsWaitForADelegate() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    sides.phone.transferUserInfo(["n": 1])
    sides.phone.delegate = nil
    try sides.activateWatch()
    try sides.watchSide.heard.wait("it") { $0.contains("info n=1") }
    // A second watch session joins, so that the first end is certainly read and declined.
    try sides.restartWatch()
    sides.phone.delegate = sides.phoneSide
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=1 ok") }
    #expect(sides.phoneSide.transfers.count == 1)
  }

  @Test(.blocking) func rangeThatChangesFastLeavesNothingBehind() throws {
    let sides = try TwoSides()
    try sides.activate()
    for number in 1...100 {
      try sides.pairing.setInRange(false)
      sides.phone.transferUserInfo(["n": number])
      try sides.pairing.setInRange(true)
    }
    try sides.watchSide.heard.wait("all") { $0.contains("info n=100") }
    let infos = sides.watchSide.heard.all.filter { $0.hasPrefix("info") }
    #expect(infos == (1...100).map { "info n=\($0)" })
  }

  /// A receiver that has not been notified that it is out of range checks before it claims
  /// anything.
  @Test(.blocking, arguments: ["info", "context"])
  func whatIsSentOutOfRangeWaitsAlsoForWhoHasNotHeardOfIt(kind: String) throws {
    let sides = try TwoSides()
    try sides.activate()
    try eventually("it receives") { sides.watch.connection?.reception?.isStopped == false }
    // On the queue that would receive the notice.
    sides.watch.work.suspend()
    try sides.pairing.setInRange(false)
    if kind == "info" {
      sides.phone.transferUserInfo(["n": 1])
    } else {
      try sides.phone.updateApplicationContext(["n": 1])
    }
    let isDeclined = Result {
      try eventually("it is declined") { sides.watch.connection?.reception?.isStopped == true }
    }
    sides.watch.work.resume()
    try isDeclined.get()
    #expect(!sides.watchSide.heard.all.contains("\(kind) n=1"))
    try sides.pairing.setInRange(true)
    try sides.watchSide.heard.wait("it") { $0.contains("\(kind) n=1") }
  }
}

// As its superclass: the class adds no state.
private final class WhoeverReadsNoFile: Recorder, @unchecked Sendable {
  override func session(_ session: WCSession, didReceive file: WCSessionFile) { note("file") }
}
