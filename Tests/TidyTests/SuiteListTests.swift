import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `.ci/suites` names all suites, so that `.ci/run` notices a suite that does not run.
///
/// To renew the file after a suite was added, renamed or removed:
///
///     WORMHOLE_RENEW_SUITES=1 swift test --filter SuiteListTests
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct SuiteListTests {
  private static let path = ".ci/suites"

  @Test func theListHoldsTheSuitesOfTheSources() throws {
    let suites = try House.files().flatMap(\.suites).sorted()
    #expect(suites.count > 200, "they were found")
    #expect(Set(suites).count == suites.count, "each has a name of its own")
    var list = try self.list()
    if Processes.environment("WORMHOLE_RENEW_SUITES") != nil {
      list.steps["swift test"] = suites
      try write(list)
    }
    let listed = try #require(list.steps["swift test"])
    let hint = "if that is meant: WORMHOLE_RENEW_SUITES=1 swift test --filter SuiteListTests"
    for suite in Set(suites).subtracting(listed) {
      Issue.record("\(Self.path): \(suite) is missing; \(hint)")
    }
    for suite in Set(listed).subtracting(suites) {
      Issue.record("\(Self.path): \(suite) is in no source file; \(hint)")
    }
    #expect(listed == listed.sorted())
  }

  /// The suites of each step that runs only some of the suites.
  @Test func theOtherStepsNameSuitesOfTheList() throws {
    let list = try self.list()
    let all = Set(list.steps["swift test", default: []])
    #expect(list.order.count > 2)
    for step in list.order {
      let suites = list.steps[step, default: []]
      #expect(!suites.isEmpty, "\(step)")
      #expect(all.isSuperset(of: suites), "\(step)")
    }
  }

  /// `.ci/run` fails itself if a step of the list did not run.
  @Test func theStepsThatRunSuitesAreSteps() throws {
    let steps = Set(try text(".ci/steps").split(separator: "\n").map(String.init))
    #expect(steps.isSuperset(of: try list().order))
  }

  private struct List {
    var head: [String] = []
    var order: [String] = []
    var steps: [String: [String]] = [:]
  }

  private func text(_ path: String) throws -> String {
    let file = try Descriptor.open(path: Programs.source + "/" + path, [.readOnly])
    return String(decoding: try file.contents(), as: UTF8.self)
  }

  private func list() throws -> List {
    var list = List()
    for line in try text(Self.path).split(separator: "\n").map(String.init) {
      if line.hasPrefix("#") {
        list.head.append(line)
      } else if line.hasPrefix("[") {
        list.order.append(String(line.dropFirst().dropLast()))
      } else {
        list.steps[try #require(list.order.last), default: []].append(line)
      }
    }
    return list
  }

  private func write(_ list: List) throws {
    let lines = list.order.flatMap { ["[\($0)]"] + list.steps[$0, default: []] }
    let file = try Descriptor.open(
      path: Programs.source + "/" + Self.path, [.writeOnly, .truncate])
    try file.write((list.head + lines).joined(separator: "\n") + "\n")
  }
}

extension SourceFile {
  /// The suites that the file declares, as `swift test list` names them.
  fileprivate var suites: [String] {
    guard isTest, isSwift, room != "ExamplePackage" else { return [] }
    let kinds: Set<Substring> = ["struct", "class", "enum", "actor"]
    var found: [String] = []
    var isMarked = false
    for (index, words) in words.enumerated() {
      // A test outside of all suites stands for itself.
      if code[index].hasPrefix("@Test"), let name = words.first(where: { $0.previous == "func" }) {
        found.append("\(room).\(name.text)()")
      }
      isMarked = isMarked || words.contains { $0.text == "Suite" && $0.previous == nil }
      guard let kind = words.firstIndex(where: { kinds.contains($0.text) }),
        words.indices.contains(kind + 1)
      else { continue }
      if isMarked || words.contains(where: { $0.text == "XCTestCase" }) {
        found.append("\(room).\(words[kind + 1].text)")
      }
      isMarked = false
    }
    return found
  }
}
