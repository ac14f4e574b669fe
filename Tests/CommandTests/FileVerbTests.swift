import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `wormhole send --file` and `wormhole receive --files`.
@Suite(.blocking, .notSanitized("about what a command prints")) struct FileVerbTests {
  @Test func filesComeUnderTheirOwnNamesAndReplaceNothing() throws {
    let stage = try Stage()
    #expect(try stage.run("mkdir in && echo one >seats && echo mine >in/seats").status.code == 0)
    for number in 1...2 {
      let sent = try stage.run(
        "wormhole send --to watch --file seats --meta film=M --meta n=\(number)")
      #expect(sent.status.code == 0, "\(sent.errors)")
      #expect(sent.output == "" && sent.errors == "")
    }
    #expect(try stage.run("wormhole send --to watch --file seats --move").status.code == 0)
    let plain = try stage.run("wormhole receive --as watch --count 1 --files in")
    #expect(plain.output == "in/seats.1\n", "\(plain.errors)")
    let json = try stage.run("wormhole receive --as watch --count 1 --files in --json")
    #expect(json.output.contains(#""path":"in/seats.2""#), "\(json.output) \(json.errors)")
    #expect(json.output.contains(#""value":{"film":"M","n":"2"}"#), "\(json.output)")
    let last = try stage.run(
      "wormhole receive --as watch --count 1 --exec 'cat \"$WORMHOLE_MESSAGE_FILE\"'")
    #expect(last.output == "one\n", "\(last.errors)")
    #expect(
      try stage.run("ls in; ls seats; cat in/*").output
        == "seats\nseats.1\nseats.2\nmine\none\none\n")
    #expect(try stage.run("ls -I room \"$WORMHOLE_CONTAINER\"/members/watch/files").output == "")
  }

  /// A receiver may get a file of the same name each day, for months.
  @Test func theNumberOfANameMayHaveSeveralDigits() throws {
    let stage = try Stage()
    let outcome = try stage.run(
      """
      mkdir in && echo one >seats && touch in/seats $(seq -f in/seats.%g 120)
      wormhole send --to watch --file seats
      wormhole receive --as watch --count 1 --attempts 1 --timeout 60 --files in
      """)
    #expect(outcome.output == "in/seats.121\n", "\(outcome.errors)")
  }

  /// A number behind such a name would make the name too long for the file system.
  @Test func theLongestNamesGetNumbersToo() throws {
    let stage = try Stage()
    let start = String(repeating: "n", count: 252)
    let outcome = try stage.run(
      """
      mkdir in && echo one >\(start)\u{20AC}
      for number in 1 2; do wormhole send --to watch --file \(start)\u{20AC}; done
      wormhole receive --as watch --count 2 --files in && ls in
      """)
    let names = outcome.output.split(separator: "\n").suffix(2).map { String($0) }
    #expect(Set(names) == ["\(start)\u{20AC}", "\(start).1"], "\(outcome.errors)")
  }

  @Test func aNameOfAFileIsOneLineAndNoOption() throws {
    let stage = try Stage()
    let outcome = try stage.run(
      """
      mkdir in && name="$(printf -- '-a\\nb')" && echo one >"./$name"
      wormhole send --to watch --file "./$name" && wormhole send --to watch --file "./$name"
      wormhole receive --as watch --count 1 --files in
      wormhole receive --as watch --count 1 --exec 'echo "$WORMHOLE_MESSAGE_FILE_NAME"'; ls in
      """)
    #expect(outcome.output == "in/_a_b\n_a_b\n_a_b\n", "\(outcome.errors)")
  }

  /// Swift combines an accent and the sign before it to one character, which is not the sign.
  @Test func whatStandsAfterTheSignMayBeginWithAnAccent() throws {
    let stage = try Stage()
    let sent = try stage.run(
      "echo one >seats; wormhole send --to=\u{301}w --id=\u{301}i --file seats --meta k=\u{301}v")
    #expect(sent.status.code == 0, "\(sent.errors)")
    let queue = try stage.run("wormhole queue \u{301}w | cut -f 1")
    #expect(Array(queue.output.utf8) == Array("\u{301}i\n".utf8), "\(queue.errors)")
    _ = try stage.run("wormhole wake \u{301}w --register --env A=\u{301}b -- true")
    let start = try stage.run("wormhole wake \u{301}w --show --json").output
    #expect(start.utf8.contains("\"A\":\"\u{301}b\"".utf8), "\(start)")
  }

  @Test func whatCannotBeSentOrTakenIsSaid() throws {
    let stage = try Stage()
    let directory = try stage.run("wormhole send --to watch --file .")
    #expect(directory.status.code != 0)
    #expect(directory.errors.contains("cannot send file '.': the path is a directory"))
    for line in [
      "--file seats value", "--file seats --lines", "--meta a=b value", "--move value",
      "--file seats --meta a", "--file seats --meta a=b --meta a=c",
    ] {
      #expect(try stage.run("wormhole send --to watch \(line)").status.code == 64, "\(line)")
    }
    _ = try stage.run("echo one >seats; wormhole send --to watch --file seats")
  }

  /// The message is not claimed, and costs no attempt; the message after it is delivered.
  @Test func aFileThatNobodyTakesWaits() throws {
    let stage = try Stage()
    _ = try stage.run(
      "echo one >seats; wormhole send --to watch --id f --file seats; wormhole send --to watch two")
    func receive(_ limit: String) throws -> (ProcessOutcome, String) {
      let outcome = try stage.run(
        "wormhole receive --as watch --count 2 --timeout \(limit) --attempts 1")
      return (outcome, try stage.run("wormhole queue watch | cut -f1,2").output)
    }
    for _ in 1...3 {
      var (without, list) = try receive("300ms")
      // On a busy machine, the time limit may pass before the command has seen both messages.
      if !without.errors.contains("message 'f'") || list != "f\twaiting\n" {
        (without, list) = try receive("20s")
      }
      #expect(without.status == .exited(1))
      #expect(
        without.errors.hasPrefix(
          "wormhole: message 'f' to 'watch' waits: the message has a file, and no receiver "
            + "of this process accepts files; give a directory with --files\n"),
        "\(without.errors)")
      #expect(list == "f\twaiting\n")
    }
    let with = try stage.run("wormhole receive --as watch --count 1 --files . --json")
    #expect(with.output.contains(#""attempt":1,"#), "\(with.errors)")
    #expect(with.output.contains(#""redelivered":false,"#))
  }

  /// No message is dead-lettered because a directory for its file is missing.
  @Test func aMissingPlaceForFilesCostsNoAttempt() throws {
    let stage = try Stage()
    _ = try stage.run(
      "mkdir in; echo one >seats; wormhole send --to watch --file seats --id first")
    let receiver = try stage.start("wormhole receive --as watch --files in --verbose --attempts 1")
    try eventually("the first has come") { try receiver.output == "in/seats\n" }
    _ = try stage.run("rm -r in; wormhole send --to watch --file seats --id second")
    let outcome = try receiver.outcome()
    #expect(outcome.status == .exited(1))
    #expect(outcome.errors.contains("cannot move file to 'in/seats'"), "\(outcome.errors)")
    #expect(try stage.run("wormhole queue watch | cut -f1,2").output == "second\twaiting\n")
    #expect(try stage.run("wormhole queue watch --dead").output == "")
  }

  @Test func theDoctorFindsWhatNobodyAwaits() throws {
    let stage = try Stage()
    _ = try stage.run("echo one >seats; wormhole send --to watch --file seats")
    #expect(try stage.run("wormhole doctor").status.code == 0)
    _ = try stage.run("rm \"$WORMHOLE_CONTAINER\"/members/watch/inbox/*")
    let found = try stage.run("wormhole doctor")
    #expect(found.status.code == 1)
    #expect(found.output.contains("a file whose message no longer exists"), "\(found.output)")
    #expect(try stage.run("wormhole doctor --repair").status.code == 0)
    #expect(try stage.run("ls -I room \"$WORMHOLE_CONTAINER\"/members/watch/files").output == "")
  }
}
