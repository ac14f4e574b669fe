import Foundation
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholePropertyLists

/// Threads with little stack, on which Foundation's reader crashes at 600 levels.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct SmallStackTests {
  struct Nest: Codable {
    var inner: [Nest]
  }

  @Test func theDeepestValueFitsOnASmallStack() throws {
    let depth = PropertyListLimits.default.depth
    let hostile = try ["plist", "xml", "json"].map {
      try Fixtures.bytes("hostile/deep-nesting.\($0)")
    }
    let (areEqual, isInSet, refusals) = try onSmallStack {
      let value = Samples.deep(depth)
      let bytes = try BinaryPropertyList.encode(value)
      let read = try BinaryPropertyList.decode(bytes)
      let json = try JSONPropertyList.encode(read)
      let again = try JSONPropertyList.decode(Array(json.utf8))
      let xml = try XMLPropertyList.encode(again)
      return (
        try XMLPropertyList.decode(Array(xml.utf8)) == value, Set([value]).contains(again),
        hostile.map { bytes in Self.refusal { _ = try PropertyListValue(reading: bytes) } }
      )
    }
    #expect(areEqual)
    #expect(isInSet)
    #expect(refusals == Array(repeating: .limit(.depth), count: 3))
  }

  /// Here the type recurses, and the limit bounds the recursion.
  @Test func theDeepestTypeFitsOnAThreadsStack() throws {
    let depth = PropertyListLimits.default.depth
    let (isEqual, refusal) = try onSmallStack(bytes: 512 << 10) {
      let nest = (1..<depth / 2).reduce(Nest(inner: [])) { inner, _ in Nest(inner: [inner]) }
      let bytes = try BinaryEncoder().encode(nest)
      let read = try BinaryDecoder().decode(Nest.self, from: bytes)
      let deeper = Nest(inner: [Nest(inner: [nest])])
      return (
        try BinaryEncoder().encode(read) == bytes,
        Self.refusal { _ = try BinaryEncoder().encode(deeper) }
      )
    }
    #expect(isEqual)
    #expect(refusal == .limit(.depth))
  }

  /// The kind of the error that the body throws; nil if it throws none.
  private static func refusal(_ body: () throws -> Void) -> PropertyListError.Kind? {
    do { try body() } catch { return (error as? PropertyListError)?.kind }
    return nil
  }

  /// Returns the body's result on a thread with a small stack; the expectations are the test's.
  private func onSmallStack<Value: Sendable>(
    bytes: Int = 256 << 10, _ body: @escaping @Sendable () throws -> Value
  ) throws -> Value {
    let result = Monitor<Result<Value, any Error>?>(nil)
    let done = DispatchSemaphore(value: 0)
    let thread = Thread {
      let found = Result { try body() }
      result.withLock { $0 = found }
      done.signal()
    }
    thread.stackSize = bytes
    thread.start()
    done.wait()
    return try result.withLock { $0 }!.get()
  }
}
