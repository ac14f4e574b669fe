import Foundation
import TestSupport
import TestTraits
import Testing
import WatchConnectivity
import WormholeSyscalls

/// When and where delegates are called.
@Suite struct CallbackTests {
  @Test(.blocking) func callbacksAreSerialAndOffTheMainQueueAndNoneIsBeforeTheActivation()
    throws
  {
    let sides = try TwoSides()
    try sides.activatePhone()
    for number in 1...100 { sides.phone.transferUserInfo(["n": number]) }
    try sides.phone.updateApplicationContext(["n": 1])
    let gate = Monitor(false)
    let inside = Heard<Int>()
    sides.watchSide.onActivation = {
      inside.add(1)
      gate.wait(until: nil) { $0 ? () : nil }
    }
    sides.watch.delegate = sides.watchSide
    sides.watch.activate()
    try inside.wait("the activation") { $0.count == 1 }
    // The watch is reachable, and receives more, while its callback is still running.
    try eventually("it is reachable") { sides.phone.isReachable }
    for number in 1...100 {
      sides.phone.sendMessage(["n": number], replyHandler: nil)
      sides.watch.transferUserInfo(["back": number])
    }
    try sides.phoneSide.heard.wait("what it transfers") { $0.contains("info back=100") }
    #expect(sides.watchSide.heard.all == [])
    gate.signal { $0 = true }
    try sides.watchSide.heard.wait("all") { heard in
      heard.contains("info n=100") && heard.contains("context n=1")
        && heard.contains("message n=100") && heard.contains("finished back=100 ok")
    }
    let heard = sides.watchSide.heard.all
    #expect(heard.first == "activated 2 ok")
    #expect(!heard.contains { $0.hasPrefix("main") })
    #expect(sides.watchSide.most == 1 && sides.phoneSide.most == 1)
    for kind in ["info n", "message n", "finished back"] {
      let numbers = heard.filter { $0.hasPrefix(kind) }.map {
        Int($0.split(separator: "=")[1].split(separator: " ")[0])!
      }
      #expect(numbers == Array(1...100), "\(kind)")
    }
  }

  /// A context of a kind that the session does not take stays pending.
  @Test(.blocking) func aContextThatIsNotTakenStaysPending() throws {
    let sides = try TwoSides()
    sides.watch.takenKinds = [.userInfo]
    try sides.activate()
    try sides.phone.updateApplicationContext(["n": 1])
    sides.phone.transferUserInfo(["n": 2])
    try sides.watchSide.heard.wait("the info") { $0.contains("info n=2") }
    #expect(!sides.watchSide.heard.all.contains("context n=1"))
    #expect(sides.watch.hasContentPending)
    #expect(sides.watch.receivedApplicationContext.isEmpty)
    sides.watch.takenKinds = [.userInfo, .context]
    #expect(throws: Never.self) {
      try sides.watchSide.heard.wait("the context") { $0.contains("context n=1") }
    }
  }

  /// Handlers as they are written in a class of the main actor, which use its properties.
  @MainActor private final class Screen {
    nonisolated let heard = Heard<String>()
    private var count = 0

    func ask(_ session: WCSession) {
      session.sendMessage(["n": 1]) { reply in
        self.count += 1
        self.note("reply \(reply.count)")
      } errorHandler: { _ in
        self.note("no reply")
      }
      session.sendMessage(["n": 2], replyHandler: take, errorHandler: fail)
      session.sendMessageData(Data([1, 2])) { self.note("data \($0.count)") }
    }

    func fail(_ session: WCSession) {
      session.sendMessage(["n": 3], replyHandler: nil) { error in self.fail(error) }
      session.sendMessage(["n": 4], replyHandler: take, errorHandler: fail)
      session.sendMessageData(Data(), replyHandler: nil) { self.fail($0) }
    }

    private func take(_ reply: [String: Any]) { note("taken \(reply.count)") }
    private func fail(_ error: any Error) { note("failed \((error as NSError).code)") }

    private func note(_ words: String) {
      MainActor.preconditionIsolated()
      heard.add(words)
    }
  }

  @Test(.blocking) func handlersOfTheMainActorRunThere() throws {
    let (sides, heard) = (try TwoSides(), Heard<String>())
    try sides.activate()
    let phone = sides.phone
    let screen = DispatchQueue.main.sync { MainActor.assumeIsolated { Screen() } }
    DispatchQueue.main.async { MainActor.assumeIsolated { screen.ask(phone) } }
    try screen.heard.wait("the replies") {
      Set($0).isSuperset(of: ["reply 0", "taken 0", "data 2"])
    }
    sides.watch.end()
    try eventually("the watch is away") { !phone.isReachable }
    DispatchQueue.main.async { MainActor.assumeIsolated { screen.fail(phone) } }
    try screen.heard.wait("the errors") { $0.filter { $0.hasPrefix("failed") }.count == 3 }
    // A handler without an isolation is called on the session's queue.
    phone.sendMessage([:], replyHandler: nil) { _ in
      heard.add(Foundation.Thread.isMainThread ? "main" : "elsewhere")
    }
    try heard.wait("the error") { $0 == ["elsewhere"] }
  }

  @Test(.blocking) func noneIsCalledFromInsideACall() throws {
    let sides = try TwoSides()
    let isInside = Monitor(false)
    let broken = Heard<String>()
    let thread = Monitor<UInt>(0)
    try sides.activate()
    sides.phoneSide.onFinish = { _, _ in
      if isInside.withLock({ $0 }), thread.withLock({ $0 }) == WormholeSyscalls.Thread.currentNumber
      {
        broken.add("inside")
      }
    }
    thread.withLock { $0 = WormholeSyscalls.Thread.currentNumber }
    for number in 1...200 {
      isInside.withLock { $0 = true }
      sides.phone.transferUserInfo(["n": number % 3 == 0 ? NSNull() : number])
      isInside.withLock { $0 = false }
    }
    try sides.phoneSide.transfers.wait("all ends") { $0.count == 200 }
    #expect(broken.all == [])
  }

  @Test(.blocking) func anEndWaitsForTheNextTurnOfTheMainQueue() throws {
    let sides = try TwoSides()
    let stored = Monitor(0)
    let ends = Heard<Int>()
    sides.phoneSide.onFinish = { _, _ in ends.add(stored.withLock { $0 }) }
    try sides.activate()
    let (phone, watchSide) = (sides.phone, sides.watchSide)
    DispatchQueue.main.async {
      phone.transferUserInfo(["n": 1])
      // The transfer's end is known long before the sender continues.
      _ = try? watchSide.heard.wait("it") { $0.contains("info n=1") }
      let _: Void? = Monitor(0).wait(until: .now + .milliseconds(250)) { _ in nil }
      stored.withLock { $0 = 1 }
    }
    try ends.wait("its end") { $0.count == 1 }
    #expect(ends.all == [1])
  }

  @Test(.blocking) func twoHundredFilesFromOnePathKeepTheirContents() throws {
    let sides = try TwoSides()
    let path = sides.folder.path + "/same.txt"
    let moved = Heard<String>()
    let target = sides.folder.path
    sides.watchSide.onFile = { file in
      let number = file.metadata?["n"] as? Int ?? 0
      let url = URL(fileURLWithPath: "\(target)/moved-\(number)")
      try? FileManager.default.moveItem(at: file.fileURL, to: url)
      moved.add(file.fileURL.path)
    }
    try sides.activate()
    let phone = sides.phone
    let lock = Monitor(0)
    DispatchQueue.concurrentPerform(iterations: 200) { number in
      // The path is overwritten as soon as the call has returned.
      lock.withLock { _ in
        try? Data("content \(number)".utf8).write(to: URL(fileURLWithPath: path))
        phone.transferFile(URL(fileURLWithPath: path), metadata: ["n": number])
      }
    }
    try moved.wait("all files") { $0.count == 200 }
    try sides.phoneSide.transfers.wait("all ends") { $0.count == 200 }
    for number in 0..<200 {
      #expect(try sides.folder.read("moved-\(number)") == "content \(number)")
    }
    #expect(!moved.all.contains { FileManager.default.fileExists(atPath: $0) })
  }

  @Test(.blocking) func aCancelledTransferEndsOnce() throws {
    let sides = try TwoSides()
    try sides.activatePhone()
    let first = sides.phone.transferUserInfo(["n": 1])
    let second = sides.phone.transferUserInfo(["n": 2])
    first.cancel()
    try sides.phoneSide.heard.wait("its end") { $0.contains("finished n=1 7001") }
    #expect(!first.isTransferring && second.isTransferring)
    try sides.activateWatch()
    try sides.phoneSide.heard.wait("the other's") { $0.contains("finished n=2 ok") }
    #expect(!sides.watchSide.heard.all.contains("info n=1"))
    second.cancel()
    #expect(sides.phoneSide.transfers.count == 2)
  }
}
