import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The files of messages in a dump, and the fields of a channel's line.
@Suite(.blocking, .notSanitized("about what a command prints")) struct RestoredFileTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private func done(_ command: String) throws -> String {
    let outcome = try stage.run(command)
    #expect(outcome.status == .exited(0), "\(command): \(outcome.errors)")
    return outcome.output
  }

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
    #expect(try done("wormhole get after") == "1\n")
    #expect(try done("wormhole queue till | cut -f 1") == "next\n")
  }

  /// The file has fewer bytes than its message states, as after a power cut.
  @Test func aShortenedFileKeepsNoLaterMessageOut() throws {
    _ = try done(
      """
      printf 'a file' >f; wormhole send --to till --id short --file f
      wormhole send --to till --id whole x
      for file in hole/members/till/files/*; do
        case "$file" in */room) ;; *) printf a >cut; mv cut "$file" ;; esac
      done
      """)
    _ = try stage.run("wormhole dump --messages >d; \(Self.other) restore <d")
    #expect(try done("\(Self.other) queue till | cut -f 1").contains("whole\n"))
  }

  @Test func aChannelsLineStatesWhoHasWrittenItAndWhen() throws {
    let object = try done(
      "wormhole put film x; wormhole get film --json >got; wormhole dump >dump; cat got")
    let dump = try stage.directory.read("dump")
    for pattern in [/"writer":"[^"]+"/, /"writtenAt":"[^"]+"/, /"version":[0-9]+/] {
      let field = String(try #require(object.firstMatch(of: pattern)).0)
      #expect(dump.contains(field), "\(field) in \(dump)")
    }
  }
}
