import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeCommand

/// One table feeds the parser, the help, the manual page and the completions.
@Suite(.blocking, .notSanitized("about what a command prints")) struct TableTests {
  @Test func theHelpIsAsItIsKept() throws {
    for (arguments, fixture) in [
      (["--help"], "help.txt"), (["-h"], "short-help.txt"), (["help", "watch"], "help-watch.txt"),
      (["watch", "-h"], "short-help-watch.txt"),
    ] {
      let outcome = try run(Programs.built("wormhole"), arguments)
      #expect(outcome.status == .exited(0))
      #expect(outcome.errors == "")
      let command = ".build/debug/wormhole " + arguments.joined(separator: " ")
      for difference in try Fixture.differences(
        of: outcome.output, from: "command/" + fixture, renewing: command)
      { Issue.record("\(difference)") }
    }
  }

  @Test(arguments: Table.wormhole.verbs.map(\.name))
  func everyTextNamesTheVerbWithAllItTakes(_ name: String) throws {
    let verb = try #require(Table.wormhole.verb(name))
    #expect(verb.name == name)
    #expect(help.short.contains("  \(name) "))
    #expect(help.long.contains("  \(name) "))
    let section = manual.contains(".SS \"wormhole \(name)")
    #expect(section, "the manual page has no section on \(name)")
    for text in [help.short(verb), help.long(verb)] {
      #expect(text.hasPrefix("usage: wormhole \(name)"))
      for option in verb.options { #expect(text.contains("  \(option.usage)")) }
    }
    for option in verb.options + Table.wormhole.options {
      #expect(manual.contains(option.usage.replacing("-", with: "\\-")), "\(option.name)")
      #expect(Proposal(.wormhole, [name, "--"]).words.contains { $0.text == "--\(option.name)" })
    }
    #expect(!verb.examples.isEmpty)
    for example in verb.examples { #expect(help.long(verb).contains(example.line)) }
  }

  /// Each option is accepted by its own verb, and by no other verb.
  @Test func theParserTakesWhatTheTableSays() throws {
    let all = Set(Table.wormhole.verbs.flatMap(\.options).map(\.name))
    for verb in Table.wormhole.verbs {
      for name in all {
        let option = verb.options.first { $0.name == name }
        let isKnown = option != nil
        var words = [verb.name, "--" + name]
        if let argument = option?.argument {
          if case .oneOf(_, let choices) = argument {
            words.append(choices[0])
          } else {
            words.append("1")
          }
        }
        let failure = failure(of: words)
        #expect(failure?.contains("there is no such option") != isKnown, "\(words)")
      }
    }
  }

  /// A verb of the command may be a noun, as status: an error has words in its place.
  @Test func anErrorBeginsWithAVerb() {
    let verbs: Set<Substring> = [
      "put", "get", "watch", "update", "clear", "remove", "list", "send", "receive", "work",
      "request", "reply", "wake", "lock", "coordinate", "post", "observe", "use", "set", "carry",
      "show", "print", "dump", "restore", "check", "serve", "write",
    ]
    for verb in Table.wormhole.verbs {
      let word = verb.action.prefix { $0 != " " }
      #expect(verbs.contains(word), "cannot \(verb.action): ")
    }
  }

  @Test func whatHasToBeGivenIsMissed() {
    #expect(Verb.request.usage.hasPrefix("request --to PEER [VALUE] [--from NAME] "))
    #expect(
      failure(of: ["request", "hello"])
        == "cannot request: --to is missing; try 'wormhole help request'")
    #expect(failure(of: ["request", "hello", "--to=watch"]) == "")
  }

  private func failure(of words: [String]) -> String? {
    do throws(Failure) {
      _ = try Parser.parse(words, by: .wormhole)
      return ""
    } catch {
      return error.sentence
    }
  }

  private let help = Help(.wormhole)
  private var manual: String { Manual(.wormhole).page }

  @Test func theManualPageIsInOrder() throws {
    let folder = try TemporaryDirectory()
    let outcome = try run(Programs.built("wormhole"), ["manual"])
    #expect(outcome.status == .exited(0))
    try folder.write(outcome.output, to: "wormhole.1")
    guard Programs.installed("mandoc") != nil else {
      skip("the manual page's form", missing: "mandoc")
      return
    }
    // The manual has no date: a date would differ from build to build.
    let lint = try run(
      "mandoc", ["-T", "lint", "-W", "warning", folder.path + "/wormhole.1"])
    let complaints = lint.output.split(separator: "\n").filter { !$0.contains("missing date") }
    #expect(complaints.isEmpty, "\(complaints)")
    let shown = try run("mandoc", ["-T", "ascii", folder.path + "/wormhole.1"])
    // Bold letters are overprinted: the letter, a step back, the letter.
    let text = shown.output.replacing(/.\x{08}/, with: "")
    let missing = Table.wormhole.verbs.filter { !text.contains("\n   wormhole \($0.name)") }
    #expect(missing.map(\.name) == [])
  }

  /// A formatter shows a blank line in addition to the space that the macros make.
  @Test func theManualPageHasNoBlankLine() {
    let lines = manual.split(separator: "\n", omittingEmptySubsequences: false)
    #expect(lines.count > 100)
    #expect(!lines.dropLast().contains(""))
  }

  @Test func everyExampleIsUnderstood() throws {
    for example in Table.wormhole.verbs.flatMap(\.examples) where !example.line.contains("$(") {
      let command = example.line.split { $0 == "|" || $0 == "<" || $0 == ">" }[0]
      guard !command.contains("'"), !command.contains(" --exec ") else { continue }
      let words = command.split(separator: " ").dropFirst().map(String.init)
      #expect(failure(of: words) == "", "\(example.line)")
    }
  }

  /// `.ci/limits` runs each verb with few descriptors and threads.
  @Test func everyVerbIsRunWithinLimits() throws {
    let path = ".ci/limits"
    let file = try Descriptor.open(path: Programs.source + "/" + path, [.readOnly])
    let text = String(decoding: try file.contents(), as: UTF8.self)
    let verbs = Set(text.matches(of: /^    Case\("([a-z]+)[ "]/.anchorsMatchLineEndings()).map(\.1))
    #expect(verbs.count > 20, "they were found")
    for name in Table.wormhole.names where !verbs.contains(Substring(name)) {
      Issue.record("\(path): the list 'cases' has no Case(\"\(name) …\") with the verb's arguments")
    }
  }

  /// The mapping is whole, and only statuses that the help lists are given.
  @Test func everyCodeHasAStatus() {
    let given = Set(WormholeError.Code.allCases.map(\.exitCode))
    #expect(given.isSubset(of: ExitCode.allCases))
    #expect(!given.contains(.done))
    #expect(!given.contains(.neverRan))
    let others: Set<WormholeError.Code> = [
      .system, .nested, .deadlock, .cancelled, .forked,
    ]
    for code in WormholeError.Code.allCases where !others.contains(code) {
      #expect(code.exitCode != .software, "\(code) has none of its own")
    }
  }
}
