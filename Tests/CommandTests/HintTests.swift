import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholeSyscalls

@testable import WormholeCommand

/// Each command and option that a hint, an error or a help text names exists.
///
/// The texts are the string literals of `Sources`, those of the stress and the benchmarks aside.
@Suite(.blocking, .notSanitized("it reads text and runs the command"))
struct HintTests {
  /// A string literal, with `x` for each interpolation, and the file that contains the literal.
  private struct Text {
    let file: String
    let content: String

    var program: String { file.contains("/WormholeCinemaTime") ? "cinematime" : "wormhole" }

    /// The commands in quotation marks, as in `see 'wormhole queue x'`.
    var commands: [[String]] {
      content.matches(of: /'((?:wormhole|cinematime) [^']+)'/).map { match in
        match.output.1.split(separator: " ").map(String.init)
      }
    }

    /// The options, with or without quotation marks; `--x` has an interpolated name.
    var options: Set<String> {
      let names = content.matches(of: /(?:^|[^a-z\-])--([a-z][a-z\-]*)/).map(\.output.1)
      return Set(names.map(String.init)).subtracting(["x"])
    }

    /// The verb that the options belong to: the verb of the command, or of `cannot send: ...`.
    var verb: String? {
      if let command = commands.first { return command.dropFirst().first }
      return content.prefixMatch(of: /cannot ([a-z]+):/).map { String($0.output.1) }
    }
  }

  /// The texts that name a command or an option.
  private static let texts = Result { try read() }

  private static func read() throws -> [Text] {
    let folder = Programs.source + "/Sources"
    let files = try run("find", [folder, "-name", "*.swift"]).output.split(separator: "\n")
    return try files.map(String.init).flatMap { file -> [Text] in
      let tools = ["WormholeStress/", "WormholeBenchmarks/", "/Completions.swift"]
      guard !tools.contains(where: file.contains) else { return [] }
      let bytes = try Descriptor.open(path: file, [.readOnly]).contents()
      let source = String(decoding: bytes, as: UTF8.self)
      guard source.contains(#/--[a-z]|'wormhole |'cinematime /#) else { return [] }
      var literals = Literals(bytes)
      return literals.all().map { Text(file: file, content: $0) }
        .filter { !$0.options.isEmpty || !$0.commands.isEmpty }
    }
  }

  @Test func everyCommandInATextRuns() throws {
    let commands = Set(try Self.texts.get().flatMap(\.commands))
    #expect(commands.count >= 15, "they were found: \(commands)")
    for command in commands {
      #expect(!command.contains("NAME"), "a hint contains the name itself: \(command)")
      let words = Array(command.dropFirst())
      if command[0] == "wormhole" {
        #expect(throws: Never.self, "\(command)") { _ = try Parser.parse(words, by: .wormhole) }
      }
      // The help of the verb, which is printed after all other words were understood.
      let outcome = try run(Programs.built(command[0]), words + ["-h"])
      #expect(outcome.status == .exited(0), "\(command): \(outcome.errors)")
    }
  }

  @Test func everyOptionInATextExists() throws {
    let manual = try run(Programs.built("cinematime"), ["manual"]).output
    let entries = manual.replacing("\\-", with: "-").matches(of: /\\fB--([a-z\-]+)/)
    let general = Set(Table.wormhole.options.map(\.name) + ["help", "version"])
    let all = [
      "wormhole": general.union(Table.wormhole.verbs.flatMap(\.options).map(\.name)),
      "cinematime": Set(entries.map { String($0.output.1) }),
    ]
    var count = 0
    for text in try Self.texts.get() {
      let program = text.commands.first?[0] ?? text.program
      let verb = program == "wormhole" ? text.verb.flatMap(Table.wormhole.verb) : nil
      let known = verb.map { general.union($0.options.map(\.name)) } ?? all[program]!
      let unknown = text.options.subtracting(known)
      #expect(unknown.isEmpty, "\(text.file): \(text.content)")
      count += text.options.count
    }
    #expect(count >= 100, "they were found")
  }

  @Test(arguments: Table.wormhole.verbs.map(\.name))
  func aVerbsHelpNamesOnlyOptionsOfTheVerb(_ name: String) throws {
    let verb = try #require(Table.wormhole.verb(name))
    let known = Set((Table.wormhole.options + verb.options).map(\.name))
    for paragraph in verb.details + verb.options.map(\.help) {
      let unknown = Text(file: "", content: paragraph).options.subtracting(known)
      #expect(unknown.isEmpty, "\(paragraph)")
    }
  }

  /// A dead letter stays until a user decides: each hint that lists dead letters names both ways.
  @Test func aHintAboutDeadLettersNamesBothWaysOn() throws {
    let hints = try Self.texts.get().filter { $0.commands.contains { $0.contains("--dead") } }
    #expect(hints.count >= 3)
    for hint in hints where !hint.file.hasSuffix("/Queue.swift") {
      #expect(hint.options.isSuperset(of: ["retry", "discard"]), "\(hint.content)")
    }
  }
}

/// A reader of the string literals of a Swift source.
private struct Literals {
  private let bytes: [UInt8]
  private var place = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  /// Returns all literals; literals that `+` joins are one.
  mutating func all() -> [String] {
    var found: [[UInt8]] = []
    var gap: [UInt8] = []
    while place < bytes.count {
      if starts("//") {
        while place < bytes.count, bytes[place] != UInt8(ascii: "\n") { place += 1 }
      } else if bytes[place] == UInt8(ascii: "\"") {
        let isRaw = place > 0 && bytes[place - 1] == UInt8(ascii: "#")
        let literal = isRaw ? rawLiteral() : literal()
        let isJoined = gap.filter { $0 > 0x20 } == [UInt8(ascii: "+")] && !found.isEmpty
        if isJoined { found[found.count - 1] += literal } else { found.append(literal) }
        gap = []
      } else {
        gap.append(bytes[place])
        place += 1
      }
    }
    return found.map { String(decoding: $0, as: UTF8.self) }
  }

  private func starts(_ text: StaticString) -> Bool {
    guard place + text.utf8CodeUnitCount <= bytes.count else { return false }
    for index in 0..<text.utf8CodeUnitCount where text.utf8Start[index] != bytes[place + index] {
      return false
    }
    return true
  }

  private mutating func rawLiteral() -> [UInt8] {
    let begin = place + 1
    place = begin
    while place < bytes.count, !starts("\"#") { place += 1 }
    defer { place += 2 }
    return Array(bytes[begin..<place])
  }

  private mutating func literal() -> [UInt8] {
    let quotes: StaticString = starts("\"\"\"") ? "\"\"\"" : "\""
    place += quotes.utf8CodeUnitCount
    var content: [UInt8] = []
    while place < bytes.count, !starts(quotes) {
      if starts("\\(") {
        place += 1
        content += Self.placeholder(for: interpolation())
      } else if bytes[place] == UInt8(ascii: "\\") {
        content.append(bytes[place + 1])
        place += 2
      } else {
        content.append(bytes[place])
        place += 1
      }
    }
    place += quotes.utf8CodeUnitCount
    return content
  }

  /// Reads up to the closing parenthesis, and returns the expression.
  private mutating func interpolation() -> String {
    let begin = place + 1
    var depth = 0
    repeat {
      switch bytes[place] {
      case UInt8(ascii: "("): depth += 1
      case UInt8(ascii: ")"): depth -= 1
      case UInt8(ascii: "\""):
        _ = literal()
        continue
      default: break
      }
      place += 1
    } while depth > 0
    return String(decoding: bytes[begin..<(place - 1)], as: UTF8.self)
  }

  private static func placeholder(for expression: String) -> [UInt8] {
    switch expression {
    case "table.name": Array("wormhole".utf8)
    case "role.rawValue": Array("phone".utf8)
    default: [UInt8(ascii: "x")]
    }
  }
}
