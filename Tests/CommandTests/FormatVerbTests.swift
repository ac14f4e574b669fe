import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholeSyscalls

@testable import WormholeCommand

/// `--format` and `--timestamps`, with one table of placeholders for all verbs.
@Suite(.blocking, .notSanitized("about what a command prints")) struct FormatVerbTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  /// A pattern for each placeholder, with the line of a received message or of a watched channel.
  private static let message: [(LineFormat.Placeholder, String)] = [
    (.name, "till"), (.value, "öl"), (.hexadecimal, "c3b66c"), (.capitalHexadecimal, "C3B66C"),
    (.length, "3"), (.id, "one"), (.sender, "office"), (.kind, "Order"),
    (.headers, #"\{"a":"b"\}"#), (.attempt, "1"), (.redelivered, "0"),
    (.time, #"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"#), (.unixTime, #"\d{10}\.\d{9}"#),
    (.object, #"\{"attempt":1,.*"value":"öl"\}"#), (.version, ""), (.event, ""),
  ]

  @Test func eachPlaceholderHasItsField() throws {
    #expect(Set(Self.message.map(\.0)) == Set(LineFormat.Placeholder.allCases))
    for (placeholder, pattern) in Self.message {
      _ = try stage.done(
        "wormhole send --to till --id one --from office --kind Order --header a=b öl")
      let line = try stage.done(
        "wormhole receive --as till --count 1 --format '<%\(placeholder.rawValue)>'")
      #expect(try Regex("<\(pattern)>\n").wholeMatch(in: line) != nil, "\(placeholder): \(line)")
    }
    _ = try stage.done("wormhole put film x")
    let format = #"%t\t%v\t%p\\%%\e%e"#
    #expect(
      try stage.done("wormhole watch film --now --count 1 --format '\(format)'")
        == "film\t1\tx\\%\u{1B}\n")
    let event = try stage.start("wormhole events --kind channel --count 1 --format '%k %e %t %v'")
    try eventually("it is reported") {
      _ = try stage.run("wormhole put film y")
      return event.hasEnded
    }
    #expect(try event.outcome().output.hasPrefix("channel put film "))
  }

  @Test func everyVerbWithLinesTakesAFormat() throws {
    _ = try stage.done("wormhole put film x; wormhole send --queue jobs --id one job")
    let observer = try stage.start("wormhole observe done --count 1 --format 'got %t'")
    try eventually("the notice") {
      _ = try stage.run("wormhole post done")
      return observer.hasEnded
    }
    #expect(try observer.outcome().output == "got done\n")
    let worked = try stage.done("wormhole work jobs --count 1 --exec cat --format ' %m %a'")
    #expect(worked == "job\n one 1\n")
    #expect(
      try stage.done("wormhole watch film --now --count 1 --exec 'echo run' --format '%t'")
        == "run\nfilm\n")
    let time = try stage.done("wormhole watch film --now --count 1 --timestamps")
    #expect(time.wholeMatch(of: /[0-9-]+T[0-9:.]+Z\tx\n/) != nil, "\(time)")
  }

  @Test func aFormatThatMeansNothingIsRefused() throws {
    _ = try stage.done("wormhole put film x")
    for options in [
      "--format '%y'", "--format '\\q'", "--format '%'", "--format '%t' --json",
      "--timestamps --json", "--timestamps --format '%t'",
    ] {
      let outcome = try stage.run("wormhole watch film --now --count 1 \(options)")
      #expect(outcome.status == .exited(64), "\(options): \(outcome.errors)")
    }
  }

  @Test func theTableIsInTheHelpTheManualAndTheArticle() throws {
    let article = try sourceText("Sources/Wormhole/Wormhole.docc/TheCommand.md")
    let help = try stage.done("wormhole help watch")
    for (name, meaning) in LineFormat.entries {
      #expect(help.contains("  \(name) "))
      #expect(help.contains(meaning))
      #expect(article.contains("| `\(name)` | \(meaning) |"), "\(name): \(meaning)")
      #expect(Manual(.wormhole).page.contains(".SH FORMATS"))
    }
    for verb in Table.wormhole.verbs where verb.name != "watch" {
      let has = ["observe", "receive", "work", "events"].contains(verb.name)
      let text = Help(.wormhole).long(verb)
      #expect(text.contains("Placeholders in --format") == has, "\(verb.name)")
    }
  }

  private func sourceText(_ path: String) throws -> String {
    String(
      decoding: try Descriptor.open(path: "\(Programs.source)/\(path)", [.readOnly]).contents(),
      as: UTF8.self)
  }

  // MARK: Lists

  @Test func listsAreTablesInATerminal() throws {
    _ = try stage.done(
      """
      wormhole put film Metropolis; wormhole put a-longer-name 1; wormhole send --to till --id m x
      wormhole defaults write cinema rows 12 --type json
      """)
    let titles = [
      "list": ["CHANNEL", "VERSION", "WRITTEN", "WRITER"],
      "members": ["NAME", "STATE"], "queue till": ["ID", "STATE", "FROM", "KIND", "COUNT"],
      "defaults read cinema": ["KEY", "VALUE"],
    ]
    _ = try stage.done("wormhole receive --as till --timeout 0 --kind none; true")
    for (verb, words) in titles {
      let terminal = try TypedTerminal(stage, "wormhole \(verb)", environment: ["NO_COLOR=1"])
      #expect(try terminal.wait() == .exited(0))
      for word in words { try terminal.shows(word) }
      let header = terminal.text.split(separator: "\r\n").first ?? ""
      #expect(header.split(separator: " ").map(String.init).starts(with: words), "\(verb)")
      #expect(!terminal.text.contains("\u{1B}"))
      let coloured = try TypedTerminal(stage, "wormhole \(verb)")
      #expect(try coloured.wait() == .exited(0))
      try coloured.shows("\u{1B}[1m\(words[0])\u{1B}[0m")
      // The bare form in a pipe.
      #expect(try !stage.run("wormhole \(verb)").output.contains(words[0]))
    }
    let terminal = try TypedTerminal(stage, "wormhole list", environment: ["NO_COLOR=1"])
    #expect(try terminal.wait() == .exited(0))
    try terminal.shows("film ")
    let lines = terminal.text.split(separator: "\r\n").map(Array.init)
    let columns = lines.map { $0.firstIndex(of: "2") ?? 0 }
    #expect(columns[1] == columns[2], "\(terminal.text)")
    // Each version has fewer digits than its title has letters.
    #expect(lines[0].firstRange(of: Array("WRITTEN"))?.lowerBound == columns[1], "\(terminal.text)")
    #expect(try stage.done("wormhole list") == "a-longer-name\nfilm\n")
  }

  @Test func oldNamesAreRemoved() throws {
    _ = try stage.done(
      """
      wormhole put old 1; wormhole put other 2; wormhole defaults write suite key 1
      wormhole receive --as gone --timeout 0; wormhole receive --as kept --timeout 0
      wormhole send --to kept x; sleep 2.1
      """)
    #expect(try stage.done("wormhole remove channel --older-than 3600") == "")
    let removed = try stage.done("wormhole put new 3; wormhole remove channel --older-than 2")
    #expect(removed == "old\nother\n")
    #expect(try stage.done("wormhole list") == "new\n")
    #expect(try stage.done("wormhole remove suite --older-than 2") == "suite\n")
    #expect(try stage.done("wormhole remove member --older-than 2") == "gone\n")
    #expect(try stage.done("wormhole members | cut -f 1") == "kept\n")
    let recent = try stage.run("wormhole remove channel new --older-than 3600")
    #expect(recent.status == .exited(1))
    #expect(
      recent.errors
        == "wormhole: cannot remove channel 'new': no channel has this name, or it was used in the "
        + "given time\n")
    #expect(try stage.run("wormhole remove channel").status == .exited(64))
  }
}
