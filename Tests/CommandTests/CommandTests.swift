import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeCommand

/// The built command, as sessions in `Fixtures/command` show it: output, errors, exit status.
@Suite(.blocking, .notSanitized("about what a command prints")) struct CommandTests {
  private static let sessions = [
    "values", "changes", "settings", "locks", "messages", "removing", "requests", "pairings",
    "coordination", "new",
  ]

  /// Verbs that a session cannot show; other suites test them.
  ///
  /// Their output differs from run to run, or is too long, or they run until a signal ends them.
  private static let withoutSession: Set = [
    "work", "bridge", "status", "events", "dump", "restore", "serve", "demo", "manual",
  ]

  @Test func everySessionIsRunAndEveryVerbIsShown() throws {
    let folder = try Descriptor.open(
      path: Programs.source + "/Fixtures/command", [.readOnly, .directory])
    let files = try folder.names().filter { $0.hasSuffix(".session") }
    let known = (Self.sessions + ["refusals", "office"]).map { "\($0).session" }
    for file in files where !known.contains(file) {
      Issue.record("Fixtures/command/\(file): 'sessions' in CommandTests does not name it")
    }
    let commands = try files.flatMap { try Session(fixture: "command/" + $0).exchanges }
      .map(\.command).joined(separator: "\n")
    for name in Table.wormhole.names where !Self.withoutSession.contains(name) {
      let isShown = commands.contains("wormhole \(name)")
      #expect(isShown, "no .session file in Fixtures/command shows 'wormhole \(name)'")
    }
  }

  @Test(arguments: sessions)
  func aSessionGoesAsItIsKept(_ name: String) throws {
    let stage = try Stage()
    let session = try Session(fixture: "command/\(name).session")
    #expect(session.exchanges.count >= 10)
    for exchange in session.exchanges {
      #expect(try stage.transcript(exchange.command) == exchange.expected, "\(exchange)")
    }
  }

  @Test func aRefusalChangesNothing() throws {
    let stage = try Stage()
    try prepareRefusals(stage)
    let session = try Session(fixture: "command/refusals.session")
    let before = try stage.state()
    #expect(!before.isEmpty)
    for exchange in session.exchanges {
      #expect(exchange.expected.hasSuffix("]\n"), "\(exchange)")
      #expect(try stage.transcript(exchange.command) == exchange.expected, "\(exchange)")
      #expect(try stage.state() == before, "\(exchange)")
    }
    let places = try stage.run("ls && ls full real").output
    #expect(places == "file\nfull\nhole\nlater\nlink\nopen\nreal\nfull:\nmine\n\nreal:\n")
  }

  /// Directories that are not containers, or that cannot be used.
  private func prepareRefusals(_ stage: Stage) throws {
    let outcome = try stage.run(
      """
      umask 077 && wormhole put speed 88 --type json && wormhole put text words \
      && touch file && mkdir real full open && touch full/mine && chmod 777 open \
      && ln -s real link && wormhole --container later put a b
      """)
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let later = try stage.directory.descriptor.open("later", [.readOnly, .directory])
    let bytes = try BinaryPropertyList.encode(["format": 9, "else": "unknown"])
    try later.open("container.plist", [.writeOnly, .truncate]).write(bytes)
  }

  /// Programs that keep their files to themselves have such a umask.
  @Test func directoriesCanBeEnteredWhateverTheUmask() throws {
    let stage = try Stage()
    for mask in ["0177", "0277", "0377"] {
      let outcome = try stage.run(
        """
        export WORMHOLE_ROOT="$STAGE/groups"; umask \(mask)
        wormhole put speed 88 && wormhole get speed \
        && wormhole send --to till seat && wormhole receive --as till --count 1 \
        && wormhole coordinate write file -- true && find . -type d ! -perm 700
        rm -rf hole groups
        """)
      #expect(outcome.status == .exited(0))
      #expect(outcome.errors == "")
      #expect(outcome.output == "88\nseat\n", "\(mask)")
    }
  }

  @Test func aContainerOfSomebodyElseIsRefused() throws {
    guard Processes.effectiveUser == 0 else {
      skip("a container of another user", because: "only root can make one")
      return
    }
    let stage = try Stage()
    let outcome = try stage.run("wormhole put speed 88 && chown 12345 hole && wormhole get speed")
    #expect(outcome.status == .exited(77))
    #expect(
      stage.normal(outcome.errors) == "wormhole: cannot open container 'DIR': the directory "
        + "belongs to user 12345, not to user 0; use a directory of user 0, or open the container "
        + "for a group\n")
  }

  @Test func theGroupsContainerIsFound() throws {
    let stage = try Stage()
    let settings = ["WORMHOLE_CONTAINER=", "WORMHOLE_ROOT=\(stage.directory.path)"]
    let outcome = try stage.run(
      "wormhole --group cinema put speed 88 && WORMHOLE_GROUP=cinema wormhole get speed",
      environment: settings)
    #expect(outcome.output == "88\n")
    #expect(outcome.errors == "")
    #expect(try stage.run("ls -A cinema").output == ".wormhole\n")
  }

  @Test func anArgumentWinsOverTheEnvironment() throws {
    let stage = try Stage()
    let outcome = try stage.run(
      "wormhole --container other put speed 1 && wormhole put speed 2 "
        + "&& wormhole get speed --container other")
    #expect(outcome.output == "1\n")
  }

  @Test func saysItsVersion() throws {
    let outcome = try run(Programs.built("wormhole"), ["--version"])
    #expect(outcome.status == .exited(0))
    let words = outcome.output.split(separator: " ")
    #expect(words.first == "wormhole")
    #expect(words.last?.split(separator: ".").count == 3)
  }
}
