import TestSupport
import TestTraits
import Testing

/// A name of a type in the sources belongs to one type, unless the type or a type around it is
/// private.
@Suite(.blocking, .notSanitized("it reads text")) struct TypeNameTests {
  /// The names that types share, each group with the reason.
  ///
  /// A new name needs a reason that is among these.
  private static let shared: [String: Set<String>] = [
    "a protocol prescribes it": ["Instant", "Iterator"],
    "the interface of an original prescribes it": [
      "AppState", "Code", "Context", "ImmediateMessage", "Options", "Publisher", "Reachability",
      "Role",
    ],
    "a common word for a machine's parts, which stands behind the machine's name": [
      "Action", "Event", "Kind", "Settings", "State", "Step",
    ],
    "a common word for the parts of a file or a list, which stands behind the owner's name": [
      "Entry", "Header",
    ],
  ]
  /// The largest number of shared names.
  private static let limit = 20

  @Test func aNameBelongsToOneType() throws {
    let files = try House.files().filter { $0.isSwift && $0.path.hasPrefix("Sources/") }
    #expect(files.count > 600, "the files were found")
    let listed = Self.shared.values.flatMap { $0 }
    #expect(listed.count <= Self.limit && Set(listed).count == listed.count)
    for finding in Self.findings(files, shared: Set(listed)) { Issue.record("\(finding)") }
  }

  @Test(arguments: [
    "struct Slot {}", "package final class Slot {}", "enum A {\n  enum Slot { case a }\n}",
    "@frozen public struct Slot<A> {}", "private struct A {}\nprotocol Slot {}",
    "extension Other {\n  actor Slot {}\n}", "enum A { struct Slot {} }",
  ])
  func aSharedNameIsFound(_ planted: String) {
    #expect(Self.findings(Self.files(planted), shared: []).count == 1)
    #expect(Self.findings(Self.files(planted), shared: ["Slot"]) == [])
  }

  @Test(arguments: [
    "private struct Slot {}", "fileprivate enum Slot {}", "// struct Slot {}",
    "private struct A {\n  struct B {}\n  struct Slot {}\n}", "extension Slot {}",
    "private extension Other {\n  enum Slot {}\n}", "import struct Other.Slot",
    "class A { class func slot() {} }", "let text = \"struct Slot {}\"",
  ])
  func whatSharesNoNameIsNotFound(_ harmless: String) {
    #expect(Self.findings(Self.files(harmless), shared: []) == [])
    #expect(Self.findings(Self.files(harmless), shared: ["Slot"]).count == 1)
  }

  /// A file with a type, and a planted file of another module.
  private static func files(_ planted: String) -> [SourceFile] {
    [
      SourceFile("Sources/Wormhole/Slot.swift", "/// A slot.\npublic struct Slot {}\n"),
      SourceFile("Sources/WormholeRelay/Planted.swift", planted + "\n"),
    ]
  }

  /// The names of several types that are not listed, and the listed names of at most one type.
  private static func findings(_ files: [SourceFile], shared: Set<String>) -> [Finding] {
    let types = Dictionary(grouping: files.flatMap(declarations), by: \.message)
    var findings: [Finding] = []
    for (name, all) in types where all.count > 1 && !shared.contains(name) {
      let places = all.map { "\($0.path):\($0.line)" }.joined(separator: ", ")
      findings.append(
        Finding(
          path: all[0].path, line: all[0].line,
          message: "'\(name)' is the name of \(all.count) types: \(places)"))
    }
    for name in shared where types[name, default: []].count < 2 {
      let message = "'\(name)' is listed as shared, and is not"
      findings.append(
        Finding(path: "Tests/TidyTests/TypeNameTests.swift", line: 1, message: message))
    }
    return findings.sorted { $0.message < $1.message }
  }

  private static let kinds: Set<Substring> = [
    "class", "struct", "enum", "actor", "protocol", "extension",
  ]
  private static let others: Set<Substring> = ["import", "func", "var", "let", "case"]

  /// The names of the types that a file declares, without the private ones.
  private static func declarations(in file: SourceFile) -> [Finding] {
    var found: [Finding] = []
    // The indentations of the private types around the line.
    var around: [Int] = []
    for (index, line) in file.words.enumerated() {
      let texts = line.map(\.text)
      let indentation = file.code[index].prefix { $0 == " " }.count
      for (place, kind) in texts.enumerated() where kinds.contains(kind) {
        guard place + 1 < texts.count, texts[place + 1].first?.isUppercase == true,
          !texts[..<place].contains(where: others.contains)
        else { continue }
        // A type behind another one on the line is inside the other.
        if kinds.isDisjoint(with: texts[..<place]) { around.removeAll { $0 >= indentation } }
        let isPrivate = !Set(["private", "fileprivate"]).isDisjoint(with: texts[..<place])
        if isPrivate { around.append(indentation) }
        guard around.isEmpty, kind != "extension" else { continue }
        found.append(
          Finding(path: file.path, line: index + 1, message: String(texts[place + 1])))
      }
    }
    return found
  }
}
