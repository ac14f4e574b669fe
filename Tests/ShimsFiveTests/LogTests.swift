import Foundation
import TestSupport
import TestTraits
import Testing

@testable import os

/// The shim of `os`.
@Suite struct LogTests {
  @Test(.blocking) func aMessageHasItsValues() {
    let (count, name, ratio) = (42, "Ada", 0.5)
    let message: OSLogMessage =
      "\(count) \(name, privacy: .public) \(name, privacy: .private(mask: .hash))"
    #expect(message.text == "42 Ada <private>")
    let right = OSLogStringAlignment.right(columns: 5)
    let form: OSLogMessage =
      "\(ratio, format: .fixed(precision: 2)) \(count, format: .hex) \(name, align: right)"
    #expect(form.text == "0.50 2a   Ada")
    let error: any Error = CocoaError(.fileNoSuchFile)
    let other: OSLogMessage = "failed: \(error) \(String(describing: Int?.none)) \([1, 2])"
    #expect(other.text.hasPrefix("failed: ") && other.text.hasSuffix(" nil [1, 2]"))
  }

  @Test(.blocking) func aMessageIsOneLine() {
    #expect(LogLine.line("a.b:c", .error, "one\ntwo\n") == "[a.b:c] error: one\\ntwo\\n")
    #expect(LogLine.line("", .default, "") == "notice: ")
  }

  @Test(.blocking) func olderCallsHaveAFormat() {
    let values: [Any] = ["Ada", 3, 0.25, "secret", UInt8(7)]
    let text = formatted("%{public}@ %d %.1f %{private}s 100%% %llu", values)
    #expect(text == "Ada 3 0.2 <private> 100% 7")
    #expect(formatted("%@ %d", ["one"]) == "one ")
  }

  @Test(.blocking) func eachCallWritesALineUnlessTheLogIsOff() throws {
    func lines(_ environment: [String]) throws -> [String] {
      let program = try Running(
        Programs.built("DropInPeer"), ["log"], environment: environment)
      #expect(try program.outcome(within: .seconds(60)).status == .exited(0))
      return try program.errors.split(separator: "\n").map(String.init)
    }
    let label = "[com.example.app:old]"
    #expect(
      try lines([]) == [
        "notice: one", "\(label) notice: two", "\(label) fault: three <private>",
        "\(label) debug: four", "\(label) debug: five", "\(label) info: six",
        "\(label) error: seven", "\(label) error: eight", "\(label) fault: nine",
        "\(label) fault: ten", "notice: eleven", "\(label) info: twelve a <private> 3",
        "\(label) error: thirteen 13",
      ])
    #expect(try lines(["OS_ACTIVITY_MODE=disable"]) == [])
  }

  @Test(.blocking) func stateIsProtected() {
    let lock = OSAllocatedUnfairLock(initialState: 0)
    DispatchQueue.concurrentPerform(iterations: 8) { _ in
      for _ in 1...1000 { lock.withLock { $0 += 1 } }
    }
    #expect(lock.withLock { $0 } == 8000)
    #expect(lock.withLockIfAvailable { $0 } == 8000)
    let plain = OSAllocatedUnfairLock()
    plain.lock()
    #expect(!plain.lockIfAvailable())
    plain.unlock()
    #expect(plain.withLock { 1 } == 1)
    let any = OSAllocatedUnfairLock(uncheckedState: NSMutableArray())
    any.withLockUnchecked { $0.add(1) }
    #expect(any.withLockUnchecked { $0.count } == 1)
  }
}
