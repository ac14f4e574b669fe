import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The article on the promises names tests; the testing library runs each of them.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct PromisesTests {
  /// A function of that name is not enough: the testing library must list the test.
  @Test func everyNamedTestRuns() throws {
    let path = Programs.source + "/Sources/Wormhole/Wormhole.docc/Promises.md"
    let bytes = try Descriptor.open(path: path, [.readOnly]).contents()
    let named = names(in: String(decoding: bytes, as: UTF8.self))
    #expect(named.count >= 5)
    let listed = try listedTests()
    let conditional = try conditionalTests()
    for (suite, test) in named {
      let own = listed.filter { $0.suite == suite }
      #expect(!own.isEmpty, "\(suite)")
      guard let test else { continue }
      #expect(own.contains { $0.test == test }, "\(suite).\(test)")
      #expect(!conditional.contains("\(suite).\(test)"), "\(suite).\(test) may be switched off")
    }
  }

  @Test func aMissingNameIsFound() throws {
    let found = names(in: "see `LockTests.none`, `OpenTests` and `value.plist`")
    #expect(found.map(\.suite) == ["LockTests", "OpenTests"])
    #expect(found.map(\.test) == ["none", nil])
    // This suite has a function of each name, and only the first is a test.
    let own = try listedTests().filter { $0.suite == "PromisesTests" }.map(\.test)
    #expect(own.contains("aMissingNameIsFound"))
    #expect(!own.contains("names"))
  }

  @Test func aConditionalTestIsFound() throws {
    let source = """
      @Suite struct ATests {
        @Test func one() {}
        @Test(.disabled("for now")) func two() {}
        @Test(
          .blocking, .enabled(if: false)
        ) func three() {}
        func helper() {}
      }
      """
    #expect(switchedOff(in: source) == ["ATests.two", "ATests.three"])
    #expect(try conditionalTests().contains { $0.hasPrefix("FileTests.") })
  }

  /// The names in back quotes that belong to a suite, or to a test of a suite.
  private func names(in text: String) -> [(suite: String, test: String?)] {
    let quoted = text.split(separator: "`", omittingEmptySubsequences: false).enumerated()
      .filter { !$0.offset.isMultiple(of: 2) }.map(\.element)
    return quoted.compactMap { name in
      let parts = name.split(separator: ".").map(String.init)
      guard let suite = parts.first, suite.hasSuffix("Tests"), parts.count <= 2 else { return nil }
      return (suite, parts.count == 2 ? parts[1] : nil)
    }
  }

  /// Returns the testing library's list for this program: `WormholeTests.LockTests/none()`.
  private func listedTests() throws -> [(suite: String, test: String)] {
    let outcome = try run(
      Programs.built("wormholePackageTests.xctest"),
      ["--testing-library", "swift-testing", "--list-tests"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    return outcome.output.split(separator: "\n").compactMap { line in
      let parts = line.split(separator: "/")
      guard let suite = parts.first?.split(separator: ".").last, parts.count > 1,
        let test = parts[parts.count - 1].split(separator: "(").first
      else { return nil }
      return (String(suite), String(test))
    }
  }

  /// Returns the tests whose traits may disable them.
  private func conditionalTests() throws -> Set<String> {
    let tests = try Descriptor.open(path: Programs.source + "/Tests", [.readOnly, .directory])
    let found = try tests.names().flatMap { target in
      let folder = try tests.open(target, [.readOnly, .directory])
      // A symbolic link leads to the same file of another target.
      let files = try folder.names().filter { name in
        try name.hasSuffix("Tests.swift") && folder.status(of: name).kind == .regular
      }
      return try files.flatMap { file in
        let bytes = try folder.open(file, [.readOnly]).contents()
        return switchedOff(in: String(decoding: bytes, as: UTF8.self))
      }
    }
    return Set(found)
  }

  private func switchedOff(in source: String) -> [String] {
    let suites = source.matches(of: /struct (\w+Tests)\b/)
    return source.matches(of: /@Test\(([^{}]*?)\)\s*func (\w+)\(/).compactMap { match in
      let isConditional = match.1.contains(".disabled") || match.1.contains(".enabled")
      let suite = suites.last { $0.range.lowerBound < match.range.lowerBound }
      guard isConditional, let suite else { return nil }
      return "\(suite.1).\(match.2)"
    }
  }
}
