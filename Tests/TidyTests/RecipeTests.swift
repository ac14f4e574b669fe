import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Additions by the recipes in `.github/CONTRIBUTING.md` are in each place that users notice.
@Suite(.blocking, .notSanitized("it reads text and runs other tools")) struct RecipeTests {
  private func text(_ path: String) throws -> String {
    let file = try House.files().first { $0.path == path }
    return try #require(file, "\(path)").lines.joined(separator: "\n")
  }

  /// The part of a text from one mark to the next other mark.
  private func part(of text: String, from start: String, to end: String) throws -> Substring {
    let rest = try #require(text.split(separator: start, maxSplits: 1).dropFirst().first)
    return try #require(rest.split(separator: end, maxSplits: 1).first)
  }

  // MARK: How to add a code of errors

  @Test func everyErrorCodeIsInTheListAndInTheArticle() throws {
    let path = "Sources/WormholeContainerStorage/Base/WormholeError+Code.swift"
    let article = "Sources/Wormhole/Wormhole.docc/Errors.md"
    let text = try text(path)
    let codes = text.matches(of: /static let (\w+) = Code\(rawValue: "(\w+)"\)/).map(\.output)
    #expect(codes.count > 20, "they were found")
    let list = try part(of: text, from: "static let allCases: [Code] = [", to: "]")
    let explained = try self.text(article).split(separator: "\n")
      .filter { $0.hasPrefix("| `") }.compactMap { $0.split(separator: "|").first }.joined()
    for (_, name, rawValue) in codes {
      #expect(name == rawValue, "\(path): the code '\(name)' has another name as text")
      if !list.contains(".\(name),") {
        Issue.record("\(path): the list 'allCases' does not contain '.\(name)'")
      }
      if !explained.contains("`\(name)`") {
        Issue.record("\(article): the table 'What to do' has no row with `\(name)`")
      }
    }
  }

  // MARK: How to add an option

  private func properties(of text: String) -> [Substring] {
    text.split(separator: "\n").compactMap { $0.firstMatch(of: /^  public var (\w+):/)?.output.1 }
  }

  @Test(arguments: [
    "Base/SharedContainer+Options.swift", "Base/MailboxOptions.swift", "Sending/SendOptions.swift",
  ])
  func everyOptionOfTheLibraryIsAnArgument(_ file: String) throws {
    let path = "Sources/Wormhole/" + file
    let text = try text(path)
    let properties = properties(of: text)
    #expect(properties.count > 5, "they were found")
    let arguments = try part(of: text, from: "  public init(\n", to: ") {\n")
    for property in properties where !arguments.contains(" \(property): ") {
      Issue.record("\(path): 'init' has no argument for the option '\(property)'")
    }
  }

  /// Options that only queues or few senders need are not arguments of `send`.
  private static let withoutArgument: Set<Substring> = ["notBefore", "orderingKey"]

  @Test(arguments: ["Sending/Peer+SendArguments.swift", "Top/Peer+AsyncArguments.swift"])
  func everyOptionOfAMessageIsAnArgumentOfSend(_ file: String) throws {
    let path = "Sources/Wormhole/" + file
    let text = try text(path)
    let options = try properties(of: self.text("Sources/Wormhole/Sending/SendOptions.swift"))
    #expect(options.count > 5, "they were found")
    for option in options where !Self.withoutArgument.contains(option) {
      let count = text.ranges(of: "\(option): \(option)").count
      #expect(count == 2, "\(path): 'send' and 'send(contentsOf:)' do not pass '\(option)' on")
    }
  }

  /// A declared option does something, and a test shows what.
  @Test func everyOptionOfTheCommandIsReadAndTested() throws {
    let sources = try House.files().filter { $0.path.hasPrefix("Sources/WormholeCommand") }
    let own = sources.filter { $0.room == "WormholeCommand" }
    let options = own.flatMap { file in
      file.lines.joined(separator: "\n")
        .matches(of: /static let (\w+) = Option\(\s*"([a-z-]+)"/).map(\.output)
    }
    #expect(options.count > 80, "they were found")
    var uses: [Substring: Int] = [:]
    for line in sources.flatMap(\.code) where line.contains(".") {
      for word in line.split(whereSeparator: { !($0.isLetter || $0 == ".") }) {
        uses[word, default: 0] += 1
      }
    }
    let tests = try tested()
    for (_, property, name) in options {
      // The first use is in the list of a verb.
      if uses[".\(property)", default: 0] < 2 {
        Issue.record("Sources/WormholeCommand: no code reads the option '--\(name)'")
      }
      if !tests.contains("--\(name)") {
        Issue.record("Tests/CommandTests, Fixtures/command: no test uses the option '--\(name)'")
      }
    }
  }

  /// The words of the tests and sessions of the command.
  private func tested() throws -> Set<Substring> {
    let folder = try Descriptor.open(
      path: Programs.source + "/Fixtures/command", [.readOnly, .directory])
    let sessions = try folder.names().filter { $0.hasSuffix(".session") }
      .map { try Fixture.text("command/" + $0) }
    let tests = try House.files()
      .filter { ["CommandTests", "BridgeTests"].contains($0.room) }.flatMap(\.lines)
    let lines = (sessions + tests).filter { $0.contains("--") }
    return Set(
      lines.flatMap { line in
        line.split { !($0.isLetter || $0.isNumber || $0 == "-") }
      })
  }
}
