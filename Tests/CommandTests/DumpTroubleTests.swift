import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `wormhole dump` of values at the limits, and of messages that cannot be read.
@Suite(.blocking, .notSanitized("about what a command prints")) struct DumpTroubleTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  /// In a dump the value nests twice as deep, and in the line of the dump once more.
  @Test func aDeepValueIsDumpedAndRestored() throws {
    let (count, other) = (100, "WORMHOLE_CONTAINER=\"$STAGE/copy\" wormhole")
    let deep =
      String(repeating: #"{"type":1,"value":"#, count: count) + "2"
      + String(repeating: "}", count: count)
    try stage.directory.write(deep, to: "deep")
    let value = try stage.done(
      """
      set -e; wormhole put deep --type json <deep; wormhole put last 1
      wormhole dump >dump; \(other) restore <dump; \(other) get last >last; \(other) get deep
      """)
    #expect(try value == stage.done("wormhole get deep"))
    #expect(try stage.directory.read("last") == "1\n")
    #expect(try stage.directory.read("dump").hasSuffix("{\"end\":[2,0,0]}\n"))
  }

  /// The names are those of the channels that may have a value.
  @Test func aDamagedChannelIsReportedAndLeftOut() throws {
    _ = try stage.done(
      """
      set -e; for name in a bad c gone; do wormhole put $name 1; done; wormhole clear gone
      printf damaged >hole/channels/bad/value.plist
      """)
    let outcome = try stage.run("wormhole dump")
    #expect(outcome.status == .exited(65))
    #expect(outcome.errors.contains("'bad'"), "\(outcome.errors)")
    #expect(outcome.output.contains("{\"names\":[\"a\",\"bad\",\"c\"]}\n"))
    for name in ["a", "c"] { #expect(outcome.output.contains("\"channel\":\"\(name)\"")) }
    #expect(!outcome.output.contains(#""channel":"bad""#))
    #expect(outcome.output.hasSuffix("{\"end\":[2,0,0]}\n"), "\(outcome.output)")
  }

  /// The file may not become as long as one of the values.
  @Test func aRefusedWriteEndsTheDumpWithOneError() throws {
    try stage.directory.write(String(repeating: "x", count: 100_000), to: "long")
    _ = try stage.done(
      """
      set -e; for name in a b c; do wormhole put $name <long; done
      """)
    let outcome = try stage.run("ulimit -f 8; wormhole dump >dump")
    #expect(outcome.status == .exited(65))
    let errors = outcome.errors.split(separator: "\n")
    #expect(errors.count == 1, "\(errors)")
    #expect(errors.first?.contains("standard output") == true, "\(errors)")
  }

  /// Two messages wait; of the first one, the shell command takes something away.
  private func dump(after trouble: String) throws -> ProcessOutcome {
    _ = try stage.done(
      """
      set -e; echo x >f; wormhole send --to till --id first --file f
      \(trouble)
      wormhole send --to till --id second good
      """)
    return try stage.run("wormhole dump --messages")
  }

  private func checkOthers(_ outcome: ProcessOutcome) {
    #expect(outcome.status == .exited(65), "\(outcome.errors)")
    #expect(outcome.output.contains(#""message":"second""#))
    #expect(!outcome.output.contains(#""message":"first""#))
    #expect(outcome.output.hasSuffix("{\"end\":[0,0,1]}\n"), "\(outcome.output)")
  }

  @Test func aMessageWithoutItsFileIsReportedAndLeftOut() throws {
    let outcome = try dump(after: "rm hole/members/till/files/*")
    checkOthers(outcome)
    #expect(
      outcome.errors
        == "wormhole: cannot read file of message 'first': the file does not exist\n")
  }

  /// A symbolic link in place of a message is refused, and no end of the dump.
  @Test func aMessageThatIsRefusedIsReportedAndLeftOut() throws {
    let outcome = try dump(
      after: "f=$(echo hole/members/till/inbox/*); mv \"$f\" away; ln -s \"$STAGE/away\" \"$f\"")
    checkOthers(outcome)
    #expect(outcome.errors.hasPrefix("wormhole: cannot read message "), "\(outcome.errors)")
  }
}
