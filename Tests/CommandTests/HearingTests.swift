import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

/// Immediate messages, and contexts that are set for a member, between two processes.
@Suite(.blocking, .notSanitized("about what a command prints")) struct HearingTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private func receiver(_ options: String) throws -> Running {
    let receiver = try stage.start("wormhole receive --as tv --verbose \(options)")
    try eventually("it receives") { try receiver.errors.contains("receiving as 'tv'") }
    return receiver
  }

  @Test func whatIsSentForNowIsHeardAndTheSenderKnows() throws {
    let receiver = try receiver("--immediate --count 2 --json")
    let one = try stage.run("wormhole send --to tv --immediate one --verbose")
    #expect(one.errors == "wormhole: 'tv' has received the message\n")
    let two = try stage.run("wormhole send --to tv --from till --immediate two --json")
    #expect(two.status == .exited(0), "\(two.errors)")
    #expect(two.output.contains(#""delivery":"immediate""#))
    #expect(two.output.contains(#""status":"delivered""#))
    let lines = try receiver.outcome().output.split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines.allSatisfy { $0.contains(#""delivery":"immediate""#) })
    #expect(lines.last?.contains(#""from":"till""#) == true)
  }

  @Test func whoeverSendsForNowIsToldThatNobodyListens() throws {
    let receiver = try receiver("")
    let outcome = try stage.run("wormhole send --to tv --immediate hello")
    #expect(outcome.status == .exited(1))
    #expect(
      outcome.errors == "wormhole: cannot send message to 'tv': 'tv' has no handler for immediate "
        + "messages of kind 'String'\n")
    #expect(try receiver.output == "")
    try receiver.child.send(.kill)
    _ = try receiver.outcome()
    #expect(try stage.run("wormhole send --to tv --immediate hello").status == .exited(69))
  }

  @Test func whatIsNotHeardInTimeIsANo() throws {
    let receiver = try receiver("--immediate")
    try receiver.child.send(.stop)
    try receiver.waitUntilStopped()
    let outcome = try stage.run("wormhole send --to tv --immediate late --timeout 0.2")
    #expect(outcome.status == .exited(1))
    #expect(
      outcome.errors.contains(
        "no handler in the receiver confirmed the message within 0.2 seconds"))
    try receiver.child.send(.go)
    #expect(try stage.run("wormhole send --to tv --immediate now").status == .exited(0))
    #expect(try receiver.output == "now\n")
  }

  @Test func statesAreHeardOnceAndCountAsReceived() throws {
    _ = try stage.run("wormhole send --to tv --from till --context open")
    #expect(try stage.run("wormhole receive --as tv --timeout 0.1").status == .exited(1))
    #expect(
      try stage.run("wormhole queue tv --contexts | cut -f1-4").output
        == "till\twaiting\tString\topen\n")
    let receiver = try receiver("--contexts --count 2")
    try eventually("what waited comes") { try receiver.output == "open\n" }
    _ = try stage.run("wormhole send --to tv --from till --context closed")
    #expect(try receiver.outcome().output == "open\nclosed\n")
    #expect(
      try stage.run("wormhole queue tv --contexts | cut -f1-4").output
        == "till\treceived\tString\tclosed\n")
    #expect(try stage.run("wormhole receive --as tv --contexts --timeout 0.1").output == "")
  }

  @Test func commandsAreToldHowItCame() throws {
    let line = "echo \"$WORMHOLE_MESSAGE_DELIVERY $WORMHOLE_MESSAGE_FROM $(cat)\""
    let receiver = try stage.start(
      "wormhole receive --as tv --verbose --immediate --contexts --count 3 --exec '\(line)'")
    try eventually("it receives") { try receiver.errors.contains("receiving as 'tv'") }
    for words in ["--from a --immediate one", "--from b --context two", "--from c three"] {
      #expect(try stage.run("wormhole send --to tv \(words)").status == .exited(0))
    }
    let output = try receiver.outcome().output.split(separator: "\n").sorted()
    #expect(output == ["context b two", "guaranteed c three", "immediate a one"])
  }

  /// An immediate message does not wait for anyone, and the report promises no such thing.
  @Test func theReportOfAMissingProgramStatesWhatBecomesOfAnImmediateMessage() throws {
    let receiver = try receiver("--immediate --exec 'exit 127'")
    _ = try stage.run("wormhole send --to tv --immediate now")
    let outcome = try receiver.outcome()
    #expect(outcome.status == .exited(127))
    #expect(
      outcome.errors.contains(
        "a program of 'exit 127' was not found; the immediate message is not redelivered\n"),
      "\(outcome.errors)")
  }

  /// A program in another language may have left out the value.
  @Test func aContextWithoutAValueEndsNothing() throws {
    _ = try stage.run("wormhole send --to tv --from till --context open")
    let folder = try Descriptor.open(
      path: stage.container + "/members/tv/context", [.readOnly, .directory])
    let name = try #require(try folder.names().first)
    let sent = try folder.open(name, [.readOnly]).contents()
    var entries = try BinaryPropertyList.decode(sent).dictionaryValue ?? [:]
    entries["value"] = nil
    let bytes = try BinaryPropertyList.encode(.dictionary(entries))
    try folder.open(name, [.writeOnly, .truncate]).write(bytes)
    let receiver = try receiver("--contexts --count 1")
    try eventually("it is reported") {
      try receiver.errors.contains("context 'String' is not handled and is not redelivered: ")
    }
    _ = try stage.run("wormhole send --to tv --from till --context closed")
    #expect(try receiver.outcome().output == "closed\n")
  }
}
