import Syscalls
import TestSupport
import TestTraits
import Testing

/// The article on the promises names tests; they exist.
@Suite(.blocking) struct PromisesTests {
  @Test func everyTestThatIsNamedExists() throws {
    let path = Programs.source + "/Sources/Wormhole/Wormhole.docc/Promises.md"
    let bytes = try Descriptor.open(path: path, [.readOnly]).contents()
    let named = names(in: String(decoding: bytes, as: UTF8.self))
    #expect(named.count >= 5)
    let sources = try testSources()
    for (suite, test) in named {
      let source = sources.first { $0.contains("struct \(suite) {") }
      #expect(source != nil, "\(suite)")
      if let test { #expect(source?.contains("func \(test)(") == true, "\(suite).\(test)") }
    }
  }

  @Test func aNameThatIsMissingIsSeen() {
    let found = names(in: "see `LockTests.none`, `OpenTests` and `value.plist`")
    #expect(found.map(\.suite) == ["LockTests", "OpenTests"])
    #expect(found.map(\.test) == ["none", nil])
  }

  /// What stands in back quotes and names a suite, or a test of one.
  private func names(in text: String) -> [(suite: String, test: String?)] {
    let quoted = text.split(separator: "`", omittingEmptySubsequences: false).enumerated()
      .filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
    return quoted.compactMap { name in
      let parts = name.split(separator: ".").map(String.init)
      guard let suite = parts.first, suite.hasSuffix("Tests"), parts.count <= 2 else { return nil }
      return (suite, parts.count == 2 ? parts[1] : nil)
    }
  }

  private func testSources() throws -> [String] {
    let tests = try Descriptor.open(path: Programs.source + "/Tests", [.readOnly, .directory])
    return try tests.names().flatMap { target in
      let folder = try tests.open(target, [.readOnly, .directory])
      return try folder.names().filter { $0.hasSuffix("Tests.swift") }.map { file in
        String(decoding: try folder.open(file, [.readOnly]).contents(), as: UTF8.self)
      }
    }
  }
}
