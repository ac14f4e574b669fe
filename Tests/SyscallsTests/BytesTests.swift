import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Reads and writes that the kernel cuts short.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct BytesTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  @Test func continuesShortReads() throws {
    try folder.write("0123456789", to: "file")
    let file = try folder.descriptor.open("file", [.readOnly])
    var text = ""
    let calls = try FaultPoints.with([FaultRule(.pread, persistent: true, .short)]) {
      try withBuffer(8) { buffer in
        let count = try file.readFully(into: buffer, at: 1)
        text = String(decoding: buffer[..<count], as: UTF8.self)
      }
    }
    #expect(text == "12345678")
    #expect(calls.count == 4, "8, then 4, 2, 1 and 1 bytes")
  }

  @Test func readsUpToTheEnd() throws {
    try folder.write("0123", to: "file")
    let file = try folder.descriptor.open("file", [.readOnly])
    let count = try withBuffer(64) { try file.readFully(into: $0, at: 1) }
    #expect(count == 3)
  }

  @Test func continuesShortWrites() throws {
    let file = try folder.descriptor.open("file", [.writeOnly, .create], mode: 0o600)
    let calls = try FaultPoints.with([FaultRule(.write, persistent: true, .short)]) {
      try file.write("0123456789")
    }
    #expect(try folder.read("file") == "0123456789")
    #expect(calls.count > 1)
  }

  @Test func continuesShortWritesAtAnOffset() throws {
    try folder.write("..........", to: "file")
    let file = try folder.descriptor.open("file", [.writeOnly])
    let calls = try FaultPoints.with([FaultRule(.pwrite, persistent: true, .short)]) {
      try file.writeFully("abcdef".utf8.span.bytes, at: 2)
    }
    #expect(try folder.read("file") == "..abcdef..")
    #expect(calls.count > 1)
  }

  /// A signal ends the write to a pipe early.
  @Test func continuesShortWritesToAPipe() throws {
    let (pipe, bytes) = (try SharedPipe(), Array("0123456789".utf8))
    let calls = try FaultPoints.with([FaultRule(.write, persistent: true, .short)]) {
      try pipe.feed(bytes)
    }
    #expect(try pipe.collect(limit: 100) == bytes)
    #expect(calls.count { $0.hasPrefix("write") } > 1)
  }

  @Test func stopsAtAnErrorAfterAShortWrite() throws {
    let file = try folder.descriptor.open("file", [.writeOnly, .create], mode: 0o600)
    let rules = [FaultRule(.write, .short), FaultRule(.write, number: 2, .fail(.noSpace))]
    FaultPoints.with(rules) {
      #expect(throws: Errno.noSpace) { try file.write("0123456789") }
    }
    #expect(try folder.read("file") == "01234")
  }

  @Test func countsCallsAndSyncs() throws {
    let file = try folder.descriptor.open("file", [.writeOnly, .create], mode: 0o600)
    let before = CallCounters.current
    try file.sync()
    try file.sync()
    let after = CallCounters.current
    // Concurrent tests make calls and count as well.
    #expect(after.syncs >= before.syncs + 2)
    #expect(after.calls >= before.calls + 2)
  }
}
