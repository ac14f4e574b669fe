import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// What a person at a terminal sees of dead letters, and of a value to be typed.
@Suite(.blocking, .notSanitized("about what a command prints")) struct TerminalListTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private func makeDeadLetter() throws {
    let made = try stage.run(
      """
      wormhole put film x && wormhole send --to grave --from office --id bad --kind Order x \
      && wormhole send --to grave --id good fine \
      && wormhole receive --as grave --attempts 1 --count 1 --quiet --exec '[ $(cat) = fine ]'
      """)
    #expect(made.status == .exited(0), "\(made.errors)")
  }

  @Test func thePersonWhoTypesAValueIsTold() throws {
    let terminal = try TypedTerminal(stage, "wormhole put x")
    try terminal.shows(
      "reading the value from the terminal; Ctrl-D at the beginning of a line ends it")
    try terminal.type("hi\n\u{4}")
    #expect(try terminal.wait() == .exited(0))
    #expect(try stage.run("wormhole get x").output == "hi\n")
  }

  @Test func attemptsOfDeadLettersAreAlignedAsNumbers() throws {
    try makeDeadLetter()
    let terminal = try TypedTerminal(
      stage, "wormhole queue grave --dead", environment: ["NO_COLOR=1"])
    #expect(try terminal.wait() == .exited(0))
    try terminal.shows("the command ended with status 1")
    let lines = terminal.text.split(separator: "\r\n").map(String.init)
    try #require(lines.count == 2, "\(lines)")
    let titles = ["ID", "FROM", "KIND", "COUNT", "ATTEMPTS", "SENT", "REASON"]
    #expect(lines[0].split(separator: " ").map(String.init) == titles)
    let (header, row) = (Array(lines[0]), Array(lines[1]))
    let title = try #require(header.firstRange(of: Array("ATTEMPTS")))
    #expect(row[title.upperBound - 1] == "1" && row[title.lowerBound] == " ", "\(lines)")
  }

  @Test func theNumberOfDeadLettersIsRed() throws {
    try makeDeadLetter()
    let terminal = try TypedTerminal(stage, "wormhole status")
    #expect(try terminal.wait() == .exited(0))
    try terminal.shows("\u{1B}[31m1\u{1B}[0m")
    try terminal.shows("doctor: \u{1B}[31m1 problem")
  }

  @Test func theObjectOfAStatusHasTheNumbersOfTheLine() throws {
    try makeDeadLetter()
    _ = try stage.run("echo mine >hole/channels/mine")
    var (counts, object): ([String], String) = ([], "")
    // A status reads values for a fifth of a second: on a busy machine, it leaves some unchecked.
    try eventually("everything is checked") {
      let lines = try stage.run("wormhole status").output.split(separator: "\n")
      let line = try #require(lines.first { $0.hasPrefix("doctor\t") })
      counts = line.split(separator: "\t").map(String.init)
      object = try stage.run("wormhole status --json").output
      return counts.last == "0" && object.contains("\"unchecked\":0,")
    }
    try #require(counts.count == 4)
    // The foreign file is a note.
    #expect(counts[1] == "1")
    #expect(counts[2] != "0")
    #expect(object.contains("\"notes\":\(counts[2]),"), "\(object)")
    #expect(object.contains(#""problems":[{"finding":"message 'bad' is a dead letter"#))
    #expect(object.contains(#""subject":"members/grave/dead""#), "\(object)")
  }
}
