import Foundation
import Syscalls
import TestSupport
import TestTraits
import Testing
import WatchConnectivity

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

  @Test(.blocking) func noneIsCalledFromInsideACall() throws {
    let sides = try TwoSides()
    let isInside = Monitor(false)
    let broken = Heard<String>()
    let thread = Monitor<UInt>(0)
    try sides.activate()
    sides.phoneSide.onFinish = { _, _ in
      if isInside.withLock({ $0 }), thread.withLock({ $0 }) == Syscalls.Thread.currentNumber {
        broken.add("inside")
      }
    }
    thread.withLock { $0 = Syscalls.Thread.currentNumber }
    for number in 1...200 {
      isInside.withLock { $0 = true }
      sides.phone.transferUserInfo(["n": number % 3 == 0 ? NSNull() : number])
      isInside.withLock { $0 = false }
    }
    try sides.phoneSide.transfers.wait("all ends") { $0.count == 200 }
    #expect(broken.all == [])
  }

  /// The way of many apps: handlers are stored, by transfer, after the call.
  @Test(.blocking, arguments: [false, true])
  func everyHandlerStoredAfterTheCallIsCalledOnce(fromMain: Bool) throws {
    let count = TestRun.isLong ? 10_000 : 2_000
    let sides = try TwoSides()
    let handlers = Monitor<[ObjectIdentifier: Int]>([:])
    let ends = Heard<Int>()
    sides.phoneSide.onFinish = { transfer, error in
      // A handler that is not stored yet stands out as -1.
      let number = handlers.withLock { $0.removeValue(forKey: ObjectIdentifier(transfer)) }
      ends.add(error == nil ? number ?? -1 : -2)
    }
    try sides.activate()
    let phone = sides.phone
    let send = { @Sendable in
      for number in 1...count {
        let transfer = phone.transferUserInfo(["n": number])
        handlers.withLock { $0[ObjectIdentifier(transfer)] = number }
      }
    }
    if fromMain { DispatchQueue.main.async { send() } } else { send() }
    try ends.wait("all ends", within: patience * 4) { $0.count >= count }
    #expect(ends.all == Array(1...count))
    let got = sides.watchSide.heard.all.filter { $0.hasPrefix("info") }
    #expect(got == (1...count).map { "info n=\($0)" })
  }

  /// A thread that sends its next transfer has stored the previous one.
  @Test(.blocking) func anOutcomeWaitsAtMostUntilTheThreadsNextTransfer() throws {
    let sides = try TwoSides()
    let ends = Heard<Instant>()
    sides.phoneSide.onFinish = { _, _ in ends.add(.now) }
    try sides.activate()
    let deadline = Instant.now + patience
    // Without a next transfer it takes 200 ms; a busy machine may need as long.
    var quickest = Duration.seconds(1)
    while quickest >= .milliseconds(150) {
      try #require(.now < deadline, "never in less than \(quickest)")
      let before = ends.count
      sides.phone.transferUserInfo(["n": 1])
      let next = Instant.now
      sides.phone.transferUserInfo(["n": 2])
      try ends.wait("both ends") { $0.count == before + 2 }
      quickest = min(quickest, ends.all[before] - next)
    }
  }

  @Test(.blocking) func anEndWaitsForTheNextTurnOfTheMainQueue() throws {
    let sides = try TwoSides()
    let stored = Monitor(0)
    let ends = Heard<Int>()
    sides.phoneSide.onFinish = { _, _ in ends.add(stored.withLock { $0 }) }
    try sides.activate()
    let (phone, watchSide) = (sides.phone, sides.watchSide)
    let deadline = Instant.now + patience
    for number in 1... {
      let isInTime = Monitor<Bool?>(nil)
      DispatchQueue.main.async {
        let begun = Instant.now
        phone.transferUserInfo(["n": number])
        // The transfer's end is known long before the sender continues.
        let hasCome: Void? = try? watchSide.heard.wait("it", within: .milliseconds(30)) {
          $0.contains("info n=\(number)")
        }
        let _: Void? = Monitor(()).wait(until: .now + .milliseconds(20)) { _ in nil }
        stored.withLock { $0 = number }
        // No end is delayed for more than 100 ms: on a busy machine an end may arrive before the
        // store.
        isInTime.signal { $0 = hasCome != nil && Instant.now - begun < .milliseconds(100) }
      }
      try ends.wait("its end") { $0.count == number }
      if isInTime.wait(until: .now + patience, { $0 }) == true { break }
      try #require(.now < deadline, "the machine is too slow")
    }
    #expect(ends.all.last == ends.count)
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
