import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The files of messages in a dump, and the fields of a channel's line.
@Suite(.blocking, .notSanitized("about what a command prints")) struct RestoredFileTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private static let other = "WORMHOLE_CONTAINER=\"$STAGE/copy\" wormhole"

  /// The pieces of its file are left out too, and what follows is restored.
  @Test func anExpiredMessageIsLeftOutWithItsFile() throws {
    let lines = [
      #"{"wormhole":1}"#,
      #"{"message":"m","to":"till","kind":"file","file":{"name":"f","size":6},"#
        + #""expires":"2001-01-01T00:00:00Z"}"#,
      #"{"piece":"YWFh"}"#, #"{"piece":"YWFh"}"#,
      #"{"message":"next","to":"till","kind":"String","value":"x"}"#,
      #"{"channel":"after","value":1}"#, #"{"end":[1,0,2]}"#,
    ]
    try stage.directory.write(lines.joined(separator: "\n") + "\n", to: "d")
    let outcome = try stage.run("wormhole restore <d")
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.errors == "")
    #expect(try stage.done("wormhole get after") == "1\n")
    #expect(try stage.done("wormhole queue till | cut -f 1") == "next\n")
  }

  @Test func aFileOfSeveralPiecesIsRestoredWhole() throws {
    _ = try stage.done(
      """
      set -e; seq 30000 >f; wormhole send --to till --file f; wormhole dump --messages >d
      \(Self.other) restore <d; mkdir in
      \(Self.other) receive --as till --count 1 --timeout 60 --files in
      """)
    let pieces = try stage.directory.read("d").split(separator: "\n").count {
      $0.hasPrefix(#"{"piece":"#)
    }
    #expect(pieces > 2)
    _ = try stage.done("cmp f in/f")
  }

  /// Everything else of a dump that has lost a line, or got one, is restored.
  @Test func aDumpWithoutOneOfItsLinesIsNoticed() throws {
    _ = try stage.done(
      """
      set -e; wormhole put a 1; wormhole put b 2; wormhole defaults write cinema rows 12
      wormhole send --to till x; wormhole dump --messages >whole
      """)
    for (line, missing) in [
      (#""channel":"a""#, "1 of 2 channels are missing"),
      (#""suite":"#, "1 of 1 suites are missing"),
      (#""message":"#, "1 of 1 messages are missing"),
    ] {
      let cut = try stage.run(
        "rm -rf copy; grep -v '\(line)' whole >cut; \(Self.other) restore <cut")
      #expect(cut.status == .exited(65), "\(line): \(cut.errors)")
      #expect(
        cut.errors.contains("by its last line, \(missing); everything else was restored"),
        "\(cut.errors)")
      #expect(try stage.done("\(Self.other) get b") == "2\n")
    }
    let more = try stage.run(
      #"rm -rf copy; sed '1a {"channel":"more","value":1}' whole >long; "#
        + "\(Self.other) restore <long")
    #expect(more.status == .exited(65), "\(more.errors)")
    #expect(more.errors.contains("it has 3 channels in place of 2; "), "\(more.errors)")
    #expect(try stage.done("\(Self.other) get more") == "1\n")
    for end in ["[1,2]", #"[1,"2",3]"#, "[-1,0,0]", "[]"] {
      try stage.directory.write("{\"end\":\(end)}\n", to: "d")
      let outcome = try stage.run("wormhole restore <d")
      #expect(outcome.status == .exited(65), "\(end)")
      #expect(outcome.errors.contains("cannot restore line 1: 'end' has no three numbers"))
    }
  }

  /// The file has fewer bytes than its message states, as after a power cut.
  @Test func aShortenedFileKeepsNoLaterMessageOut() throws {
    _ = try stage.done(
      """
      printf 'a file' >f; wormhole send --to till --id short --file f
      wormhole send --to till --id whole x
      for file in hole/members/till/files/*; do
        case "$file" in */room) ;; *) printf a >cut; mv cut "$file" ;; esac
      done
      """)
    _ = try stage.run("wormhole dump --messages >d; \(Self.other) restore <d")
    #expect(try stage.done("\(Self.other) queue till | cut -f 1").contains("whole\n"))
  }

  @Test func aChannelsLineStatesWhoHasWrittenItAndWhen() throws {
    let object = try stage.done(
      "wormhole put film x; wormhole get film --json >got; wormhole dump >dump; cat got")
    let dump = try stage.directory.read("dump")
    for pattern in [/"writer":"[^"]+"/, /"writtenAt":"[^"]+"/, /"version":[0-9]+/] {
      let field = String(try #require(object.firstMatch(of: pattern)).0)
      #expect(dump.contains(field), "\(field) in \(dump)")
    }
  }

  /// The option holds for each kind of line.
  @Test func withPowerEverythingThatIsRestoredIsSynced() throws {
    _ = try stage.done(
      """
      set -e; echo content >f; wormhole put film x; wormhole defaults write cinema rows 12
      wormhole send --to till x; wormhole send --queue jobs --file f
      wormhole dump --messages >dump
      \(Self.other) put film y; \(Self.other) defaults write cinema rows 13
      """)
    let outcome = try stage.run(
      "\(Self.other) restore --replace --power <dump",
      environment: [
        "WORMHOLE_FAULTS=fsync~/no-such-name:before:fail=EIO",
        "WORMHOLE_FAULT_TRACE=\(stage.directory.path)/trace",
      ])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let trace = try stage.directory.read("trace")
    let syncs = trace.split(separator: "\n").filter { $0.contains(" fsync ") }
    for (place, end) in [
      ("channels/film/", "/next"), ("system/defaults.cinema/", "/next"),
      ("members/till/", "/inbox"), ("queues/jobs/", "/inbox"),
    ] {
      #expect(
        syncs.contains { $0.contains(place) && $0.hasSuffix(end) }, "\(place) \(end): \(trace)")
    }
    #expect(try stage.done("\(Self.other) defaults read cinema rows") == "12\n")
  }
}
