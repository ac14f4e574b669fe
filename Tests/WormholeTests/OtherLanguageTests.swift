import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// A program in another language, written only from the description of the directory.
@Suite(.blocking) struct OtherLanguageTests {
  private let meeting: Meeting
  private let program = Programs.source + "/Fixtures/python/take_part.py"

  init() throws { meeting = try Meeting() }

  private func python(_ arguments: [String]) throws -> Running? {
    guard let python = Programs.installed("python3") else {
      skip("taking part in Python", missing: "python3")
      return nil
    }
    return try Running(python, [program, meeting.path] + arguments)
  }

  @Test func readsAChannel() throws {
    try meeting.container.channel("tür/1", of: Int.self).put(42)
    guard let reader = try python(["tür/1", "read"]) else { return }
    #expect(try reader.outcome().output == "42\n")
  }

  /// By the wall clock, which the two programs share.
  @Test func findsNoExpiredValue() throws {
    let visits = meeting.container.channel("visits", of: Int.self)
    try visits.put(41, timeToLive: .seconds(3600))
    let until = try #require(try visits.metadata?.expiresAt)
    guard let writer = try python(["visits", "add", "1"]) else { return }
    #expect(try writer.outcome().status == .exited(0))
    #expect(try visits.value == 42)
    let later = try #require(try visits.metadata?.expiresAt)
    // Python's times have microseconds.
    #expect(abs(later.timeIntervalSince(until)) < 0.001)
    try visits.put(7, timeToLive: .milliseconds(1))
    try eventually("the value expires") { try visits.value == nil }
    #expect(try python(["visits", "read"])?.outcome().output == "None\n")
    _ = try python(["visits", "add", "1"])?.outcome()
    #expect(try visits.value == 1)
    #expect(try visits.latest?.version == 4)
  }

  /// P2: two Python processes and two of the library's, and not an update is lost.
  @Test func writesUnderTheLockBesideOurs() throws {
    let sum = meeting.container.channel("sum", of: Int.self)
    try sum.put(0)
    var writers: [Running] = []
    for _ in 0..<2 {
      guard let writer = try python(["sum", "add", "100"]) else { return }
      writers.append(writer)
      writers.append(
        try Running(.count(meeting.path, "sum", times: 200)))
    }
    for writer in writers {
      let outcome = try writer.outcome()
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }
    #expect(try sum.value == 600)
    #expect(try sum.latest?.version == 601)
  }

  /// P3: one of the library's holders is suspended, and the program follows to the next generation.
  @Test func followsToTheNextGeneration() throws {
    let sum = meeting.container.channel("sum", of: Int.self)
    try sum.put(0)
    let stopped = try Running(
      .stopUpdating(meeting.path, "sum"))
    try stopped.waitUntilStopped()
    try sum.update(default: 0) { $0 += 1 }
    guard let writer = try python(["sum", "add", "10"]) else { return }
    #expect(try writer.outcome().status == .exited(0))
    #expect(try sum.value == 11)
  }

  @Test func sendsAndReadsHeaders() throws {
    let watch = try meeting.container.join(as: "watch")
    let sender = ["watch", "send", "hello", "trace-id=7", "tenant=türkis"]
    guard let sending = try python(sender) else { return }
    let outcome = try sending.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let message = try watch.take(1)[0]
    #expect(message.headers == ["trace-id": "7", "tenant": "türkis"])
    #expect(try message.value(as: String.self) == "hello" && message.from == nil)
    try message.acknowledge()
    try meeting.container.peer("watch").send("back", headers: ["b": "2", "a": "1"])
    let reader = try python(["watch", "inbox"])
    #expect(try reader?.outcome().output == "String [('a', '1'), ('b', '2')] back\n")
  }
}
