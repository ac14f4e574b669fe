import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import Wormhole

/// A list that is read in parts, with a thread that reads ahead.
@Suite(.blocking) struct ReadAheadTests {
  /// Lists with and without a thread, and with a shorter last part.
  @Test(arguments: [0, 1, 10, 79, 80, 1001])
  func allPartsComeInOrder(_ count: Int) {
    for _ in 0..<20 {
      let ahead = ReadAhead(count, step: 10) { Array($0) }
      defer { ahead.stop() }
      var found: [Int] = []
      while let part = ahead.next() { found += part }
      #expect(found == Array(0..<count))
    }
  }

  /// While the thread reads the part that the caller needs, the caller reads a later one.
  ///
  /// So both processors work. Here the thread's part ends only after the caller's part has begun.
  @Test func theCallerReadsWhileTheThreadDoes() throws {
    let started = Heard<Int>()
    let ahead = ReadAhead(100, step: 10) { range in
      started.add(range.lowerBound)
      guard range.lowerBound == 0 else { return true }
      let found: Void? = try? started.wait("the caller's part", within: .seconds(10)) {
        $0.contains(10)
      }
      return found != nil
    }
    defer { ahead.stop() }
    try started.wait("the thread's part") { $0 == [0] }
    #expect(ahead.next() == true)
    #expect(ahead.next() == true)
  }

  /// If no thread can be started, the caller's thread would wait for itself to take the parts.
  @Test func withoutAThreadTheCallerReadsAllParts() throws {
    let threads = CallThreads(most: 1) { _ throws(Errno) in throw .wouldBlock }
    let found = Heard<Int>()
    try Thread("caller") {
      let ahead = ReadAhead(1000, step: 10, on: threads) { $0.lowerBound }
      while let part = ahead.next() { found.add(part) }
    }.detach()
    try found.wait("all parts") { $0.count == 100 }
    #expect(found.all == Array(stride(from: 0, to: 1000, by: 10)))
  }

  /// The thread waits for the caller, and ends when the caller has enough.
  @Test func fewPartsAreInMemory() throws {
    let started = Heard<Int>()
    let ahead = ReadAhead(1000, step: 10) { range in
      started.add(range.lowerBound)
      return range.lowerBound
    }
    try eventually("four parts are read ahead") { started.all.count == 4 }
    #expect(ahead.next() == 0)
    try eventually("one more part is read ahead") { started.all.count == 5 }
    ahead.stop()
    #expect(started.all == [0, 10, 20, 30, 40])
  }

  /// The thread waits for room when the caller stops.
  @Test func aStoppedThreadKeepsNothing() throws {
    let started = Heard<Int>()
    weak var held: KeptByThread?
    do {
      let one = KeptByThread()
      held = one
      let ahead = ReadAhead(1000, step: 10) { range in
        started.add(range.lowerBound)
        return one
      }
      try eventually("four parts are read ahead") { started.all.count == 4 }
      ahead.stop()
    }
    try eventually("the thread has ended") { held == nil }
  }

  private final class KeptByThread: Sendable {}
}
