import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Fields and causes that the command reports in rare cases, and files that it makes for others.
@Suite(.blocking, .notSanitized("about what a command prints")) struct ReportedFieldTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  // MARK: Messages and requests

  @Test func aQueueSaysWhichMessageIsDamaged() throws {
    let file = try stage.done(
      "wormhole send --to watch --id bad x; wormhole send --to watch --id good x; "
        + "ls hole/members/watch/inbox | head -1")
    let inbox = try Descriptor.open(
      path: stage.container + "/members/watch/inbox", [.readOnly, .directory])
    try inbox.open(String(file.dropLast()), [.writeOnly, .truncate]).write("damaged")
    let objects = try stage.done("wormhole queue watch --json")
      .split(separator: "\n").map(String.init)
    try #require(objects.count == 2, "\(objects)")
    #expect(objects[0].contains(#""damage":""#) && objects[0].contains(#""id":"bad""#))
    #expect(objects[1].contains(#""damage":null"#) && objects[1].contains(#""id":"good""#))
    let states = try stage.done("wormhole queue watch | cut -f 2").split(separator: "\n")
    try #require(states.count == 2, "\(states)")
    #expect(states[0].hasPrefix("damaged: "))
    #expect(states[1] == "waiting")
  }

  /// The last line of the errors follows the cause, if there is one.
  @Test(arguments: [
    ("kill -KILL $$", "the command was ended by signal 9"),
    ("echo over >&2; kill -KILL $$", "the command was ended by signal 9: over"),
  ])
  func aRefusalNamesTheSignalOfTheCommand(_ line: String, _ reason: String) throws {
    let replier = try stage.start(
      "wormhole reply --as watch --verbose --count 1 --json --exec \"$LINE\"",
      environment: ["LINE=\(line)"])
    try eventually("it replies") { try replier.errors.contains("replying as 'watch'") }
    let request = try stage.run("wormhole request --to watch it")
    #expect(request.status == .exited(1))
    #expect(request.errors == "wormhole: cannot get a reply from 'watch': \(reason)\n")
    let outcome = try replier.outcome()
    #expect(outcome.status == .exited(0))
    #expect(outcome.output.contains("\"reason\":\"\(reason)\",\"replied\":false"))
  }

  /// The command is ended by its write to a pipe that is read no further, which is not the cause.
  @Test func aReplyThatIsTooLargeIsRefusedForItsSize() throws {
    let replier = try stage.start(
      "wormhole reply --as watch --verbose --count 1 --exec 'head -c 70000000 /dev/zero'")
    try eventually("it replies") { try replier.errors.contains("replying as 'watch'") }
    let request = try stage.run("wormhole request --to watch --timeout 60 it")
    #expect(request.status == .exited(1))
    let refusal =
      "wormhole: cannot get a reply from 'watch': the command wrote more than 67108864 bytes"
    #expect(request.errors.hasPrefix(refusal), "\(request.errors)")
    #expect(try replier.outcome().status == .exited(0))
  }

  @Test func anImmediateMessageHasItsHeaders() throws {
    let receiver = try stage.start(
      "wormhole receive --as tv --verbose --immediate --count 1 --json")
    try eventually("it receives") { try receiver.errors.contains("receiving as 'tv'") }
    let sent = try stage.done("wormhole send --to tv --immediate --header trace-id=7 x --json")
    let headers = #""headers":{"trace-id":"7"}"#
    #expect(sent.contains(headers), "\(sent)")
    let outcome = try receiver.outcome()
    #expect(outcome.status == .exited(0))
    #expect(outcome.output.contains(headers), "\(outcome.output)")
  }

  // MARK: Events

  /// The directories for accesses are made by the first access, after the command has begun to
  /// watch.
  @Test func theFirstAccessOfAContainerIsAnEvent() throws {
    let container = "root/wormhole.user/.wormhole"
    let made = try stage.done(
      "mkdir -m 700 root root/wormhole.user; mkfifo pipe; "
        + "WORMHOLE_CONTAINER=\(container) wormhole put x 1; find root -name coordination")
    #expect(made == "")
    let running = try stage.start(
      "env WORMHOLE_CONTAINER=\(container) wormhole events --kind access --verbose")
    try eventually("it watches") { try running.errors.contains("watching '") }
    let writer = try stage.start(
      "env WORMHOLE_ROOT=\"$STAGE/root\" wormhole coordinate write file "
        + "-- sh -c 'read -r go <pipe'")
    try eventually("the access runs") {
      try running.output.contains("access\trunning\twrite '\(stage.directory.path)/file'")
    }
    _ = try stage.done("echo go >pipe")
    #expect(try writer.outcome().status == .exited(0))
    try running.child.send(.kill)
    _ = try running.outcome()
  }

  // MARK: Packages

  @Test func theUmaskIsKeptForSources() throws {
    let output = try stage.done(
      "umask 027 && wormhole new shim os target && stat -c %a target "
        + "&& find target -type f ! -perm 640 && find target -type d ! -perm 750")
    #expect(output == "750\n")
  }

  /// Around a user's sources the program does nothing but to start them.
  @Test func theWatchsProgramStartsTheUsersSources() throws {
    try stage.directory.descriptor.makeDirectory("app", mode: 0o700)
    try stage.directory.write(
      """
      import WatchConnectivity
      final class Talk: NSObject, WCSessionDelegate {
        static let common: Talk = Talk()
      }

      """, to: "app/Talk.swift")
    _ = try stage.done(
      "wormhole new two-sides ci --sources app --package https://swift.org/wormhole.git")
    #expect(
      try stage.directory.read("ci/Sources/WatchSide/WatchApp.swift") == """
        import Foundation
        import WatchConnectivity

        /// The watch's app without its screens.
        @main struct WatchApp {
          static func main() {
            _ = Talk.common
            while WCSession.default.activationState != .activated {
              RunLoop.main.run(until: Date(timeIntervalSinceNow: 0.05))
            }
            print("activated")
            RunLoop.main.run()
          }
        }

        """)
  }
}
