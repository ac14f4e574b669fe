import TestSupport
import TestTraits
import Testing

@testable import WormholeSyscalls

/// Several closures for one signal in one process.
///
/// The signals here are those that a process may have at any time, and that end no process: for a
/// changed window, and for urgent data at a socket.
@Suite(.blocking, .notSanitized("the sanitizer delays the handlers of signals"))
struct SharedSignalTests {
  private static let changedWindow: Int32 = 28
  private static let urgentData: Int32 = 23
  private let own = Child(process: Processes.current)

  /// The first of two services in a process may end before the second.
  @Test func theEndOfOneClosureLeavesTheSignalToTheOther() throws {
    let heard = Monitor<[String]>([])
    let first = try CaughtSignals([Self.changedWindow]) { heard.signal { $0.append("first") } }
    let second = try CaughtSignals([Self.changedWindow]) { heard.signal { $0.append("second") } }
    defer { second.end() }
    first.end()
    try own.send(number: Self.changedWindow)
    let calls = heard.wait(until: .now + patience) { $0.isEmpty ? nil : $0 }
    #expect(calls == ["second"])
  }

  /// The system lets no process catch the stop signal.
  ///
  /// The signal to continue has a lower number, and is caught first. Tests send the signal only to
  /// programs; the signal of an ended child would arrive at any time, and end the second catch.
  @Test func aRefusedSignalLeavesNoOtherCaught() throws {
    let (goOn, stop): (Int32, Int32) = (18, 19)
    #expect(throws: Errno.invalidArgument) { _ = try CaughtSignals([goOn, stop]) {} }
    #expect(try !isCaught(goOn))
    let caught = try CaughtSignals([goOn]) {}
    #expect(try isCaught(goOn))
    caught.end()
    #expect(try !isCaught(goOn))
  }

  /// Returns whether this process has a handler for a signal.
  private func isCaught(_ number: Int32) throws -> Bool {
    let bytes = try Descriptor.open(path: "/proc/self/status", [.readOnly]).contents()
    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
    let line = try #require(lines.first { $0.hasPrefix("SigCgt:\t") })
    let signals = try #require(UInt64(line.dropFirst("SigCgt:\t".count), radix: 16))
    return signals & 1 << (number - 1) != 0
  }

  /// A number that no signal has is refused, before the number is used as an index.
  @Test(arguments: [Int32.min, -1, 0, 65, .max])
  func aNumberWithoutASignalIsRefused(_ number: Int32) {
    #expect(throws: Errno.invalidArgument) { _ = try CaughtSignals([number]) {} }
  }

  @Test func theGreatestSignalIsCaught() throws {
    let heard = Monitor(0)
    let caught = try CaughtSignals([64]) { heard.signal { $0 += 1 } }
    defer { caught.end() }
    try own.send(number: 64)
    #expect(heard.wait(until: .now + patience) { $0 > 0 ? $0 : nil } == 1)
  }

  /// And a later catch begins again, with a thread of its own.
  @Test func aSignalCallsEachOfItsClosuresOnce() throws {
    let heard = Monitor<[String]>([])
    for round in 1...3 {
      let caught = try ["a", "b"].map { name in
        try CaughtSignals([Self.urgentData]) { heard.signal { $0.append("\(name)\(round)") } }
      }
      try own.send(number: Self.urgentData)
      let count = heard.wait(until: .now + patience) { $0.count >= 2 * round ? $0.count : nil }
      #expect(count == 2 * round)
      for one in caught { one.end() }
    }
    #expect(heard.withLock { $0.sorted() } == ["a1", "a2", "a3", "b1", "b2", "b3"])
  }
}
