import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Messages and requests that cannot be passed to a command: earlier programs may have sent them.
@Suite(.blocking) struct OddKindVerbTests {
  private func sendOddKinds(_ stage: Stage, asks: Bool) throws -> Running {
    try Running(
      .sendOddKinds(stage.container, to: "watch", asks: asks),
      environment: ["WORMHOLE_MUTANT=any-kind"])
  }

  @Test func theCommandRefusesToSendThem() throws {
    let stage = try Stage()
    for verb in ["send", "send --immediate", "request", "send --from till --context"] {
      let outcome = try stage.run(
        "wormhole \(verb) --to watch --kind $(printf '%256s' | tr ' ' k) hello")
      #expect(outcome.status == .exited(64), "\(verb)")
      #expect(
        outcome.errors.hasSuffix(
          "'watch': the kind has 256 bytes, and the limit is 255; "
            + "give a shorter kind without zero bytes\n"),
        "\(outcome.errors)")
    }
  }

  /// The odd messages fail on their own, and the messages after them are handled.
  @Test func whatNoCommandCanTakeBecomesADeadLetter() throws {
    let stage = try Stage()
    #expect(try sendOddKinds(stage, asks: false).outcome().status == .exited(0))
    let receiver = try stage.run(
      "wormhole receive --as watch --attempts 2 --count 1 --timeout 60 "
        + "--exec 'printf \"%s \" \"$WORMHOLE_MESSAGE_KIND\"; cat'")
    #expect(receiver.status == .exited(0), "\(receiver.errors)")
    #expect(receiver.output == "usual hello\n")
    let next = try stage.start("wormhole receive --as watch --attempts 2 --exec cat --quiet")
    try eventually("both are dead letters") {
      try stage.run("wormhole queue watch --dead | wc -l").output == "2\n"
    }
    try next.child.send(.terminate)
    #expect(try next.outcome().status == .signalled(15))
    let letters = try stage.run("wormhole queue watch --dead --json").output
    let begin = #""reason":"no command can receive the value: "#
    #expect(letters.contains(begin + "argument list too long"), "\(letters.suffix(300))")
    #expect(letters.contains(begin + "WORMHOLE_MESSAGE_KIND contains a zero byte"))
    #expect(try stage.run("wormhole queue watch").output == "")
  }

  @Test func aRequestThatNoCommandCanTakeIsRefused() throws {
    let stage = try Stage()
    let replier = try stage.start("wormhole reply --as watch --verbose --count 3 --exec cat")
    try eventually("it replies") { try replier.errors.contains("replying as 'watch'") }
    let outcome = try sendOddKinds(stage, asks: true).outcome()
    let begin = "rejected: no command can receive the value: "
    #expect(
      outcome.output == begin + "argument list too long\n"
        + begin + "WORMHOLE_REQUEST_KIND contains a zero byte\nhello\n", "\(outcome.errors)")
    #expect(try replier.outcome().status == .exited(0))
  }
}
