import Foundation
import Syscalls
import TestTraits
import Testing

@testable import PropertyLists

/// Threads with little stack, on which Foundation's reader crashes at 600 levels.
@Suite(.blocking) struct SmallStackTests {
  struct Nest: Codable {
    var inner: [Nest]
  }

  @Test func theDeepestValueFitsOnASmallStack() throws {
    let depth = PropertyListLimits.default.depth
    let hostile = try ["plist", "xml", "json"].map {
      try Fixtures.bytes("hostile/deep-nesting.\($0)")
    }
    try onSmallStack {
      let value = Samples.deep(depth)
      let bytes = try BinaryPropertyList.encode(value)
      let read = try BinaryPropertyList.decode(bytes)
      let json = try JSONPropertyList.encode(read)
      let again = try JSONPropertyList.decode(Array(json.utf8))
      let xml = try XMLPropertyList.encode(again)
      #expect(try XMLPropertyList.decode(Array(xml.utf8)) == value)
      #expect(Set([value]).contains(again))
      for bytes in hostile {
        expect(.limit(.depth)) { _ = try PropertyListValue(reading: bytes) }
      }
    }
  }

  /// Here the type recurses, and the limit is what bounds it.
  @Test func theDeepestTypeFitsOnAThreadsStack() throws {
    let depth = PropertyListLimits.default.depth
    try onSmallStack(bytes: 512 << 10) {
      let nest = (1..<depth / 2).reduce(Nest(inner: [])) { inner, _ in Nest(inner: [inner]) }
      let bytes = try BinaryEncoder().encode(nest)
      let read = try BinaryDecoder().decode(Nest.self, from: bytes)
      #expect(try BinaryEncoder().encode(read) == bytes)
      let deeper = Nest(inner: [Nest(inner: [nest])])
      expect(.limit(.depth)) { _ = try BinaryEncoder().encode(deeper) }
    }
  }

  private func onSmallStack(
    bytes: Int = 256 << 10, _ body: @escaping @Sendable () throws -> Void
  ) throws {
    let failure = Monitor<(any Error)?>(nil)
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
      do { try body() } catch { failure.withLock { $0 = error } }
      done.signal()
    }
    thread.stackSize = bytes
    thread.start()
    done.wait()
    if let failure = failure.withLock({ $0 }) { throw failure }
  }
}
