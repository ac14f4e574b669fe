import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// What the command says of a member whose home is another machine, and of a bridge's directory.
@Suite(.blocking) struct ElsewhereVerbTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  private func moveAway() throws {
    let first = "wormhole send --to printer one && wormhole receive --as printer --count 1"
    #expect(try stage.done(first) == "one\n")
    let folder = try TemporaryDirectory()
    let file = try Descriptor.open(
      path: folder.path + "/new", [.writeOnly, .create], mode: 0o600)
    let elsewhere = Elsewhere(machine: "0123456789abcdef", since: Date())
    try file.writeFully(elsewhere.encoded())
    #expect(try stage.done("mv '\(folder.path)/new' hole/members/printer/elsewhere.plist") == "")
  }

  @Test func eachVerbNamesTheMachine() throws {
    try moveAway()
    let members = try stage.done("wormhole members")
    #expect(members.hasPrefix("printer\tnot running\ton machine 0123456789abcdef\tjoined "))
    #expect(try stage.done("wormhole members --json").contains(#""machine":"0123456789abcdef""#))
    for line in ["receive --as printer", "wake printer", "remove member printer"] {
      let outcome = try stage.run("wormhole \(line)")
      #expect(outcome.status != .exited(0), "\(line)")
      let reason = "its home is another machine, '0123456789abcdef'"
      #expect(outcome.errors.contains(reason), "\(line): \(outcome.errors)")
    }
    #expect(try stage.done("wormhole send --to printer two") == "")
    let claim = "cd hole/members/printer && for f in inbox/*; do mv $f claimed/${f#inbox/}~1; done"
    #expect(try stage.done(claim) == "")
    #expect(try stage.done("wormhole queue printer | cut -f 2") == "in transit\n")
    let cancelling = try stage.run(
      "wormhole queue printer --cancel $(wormhole queue printer | cut -f 1)")
    #expect(cancelling.status == .exited(0))
    #expect(cancelling.errors.contains("which was asked to cancel it"), "\(cancelling.errors)")
    #expect(try stage.done("wormhole doctor").contains("its home is another machine"))
  }

  /// Names of queues and channels may be those of another machine, with any character.
  @Test func aNameWithControlCharactersIsShownOnOneLine() throws {
    _ = try stage.done("wormhole bridge queue \"$(printf 'a\\nb\\033[2J')\"")
    // The bridge looks at its queues while it waits for a server.
    func shown(after seconds: Double) throws -> String {
      let line = "wormhole bridge --shared-as g --nats nats://127.0.0.1:1 --timeout \(seconds)"
      #expect(try stage.run(line).status == .exited(69))
      return try stage.done("wormhole bridge status")
    }
    var status = try shown(after: 0.5)
    // On a busy machine, the look may take longer.
    for seconds in [4.0, 16] where !status.contains("home this machine") {
      status = try shown(after: seconds)
    }
    #expect(!status.unicodeScalars.contains("\u{1B}"))
    let lines = status.split(separator: "\n").filter { $0.contains("home this machine") }
    #expect(lines.count == 1)
    #expect(lines.allSatisfy { $0.hasPrefix("\"queue 'a\\nb") }, "\(status)")
  }

  /// The receiver is in another container, to which a process carries the messages; the sender is a
  /// member, or a guest.
  @Test(.notSanitized("waits for several processes"), arguments: ["--from phone", ""])
  func aSenderWaitsForTheOutcomeFromAnotherMachine(_ sender: String) throws {
    #expect(try stage.done("wormhole put x 1 && WORMHOLE_CONTAINER=there wormhole put x 1") == "")
    let folder = try stage.done("pwd").dropLast()
    let carrier = try Running(.carry(folder + "/hole", folder + "/there", members: ["printer"]))
    defer { try? carrier.child.send(.kill) }
    let send = "wormhole send --to printer \(sender) --wait --timeout 60"
    let receive = "WORMHOLE_CONTAINER=there wormhole receive --as printer --count 1 --timeout 60"
    #expect(try stage.done("true; \(send) one & \(receive) && wait $!") == "one\n")
    let refusing = "\(receive) --attempts 1 --exec 'exit 3' 2>/dev/null"
    let outcome = try stage.run(
      "true; \(refusing) & receiver=$!; \(send) two; end=$?; kill $receiver; exit $end")
    #expect(outcome.status == .exited(1))
    #expect(outcome.errors.contains("ended with status 3"), "\(outcome.errors)")
  }

  @Test func theDoctorKnowsTheBridge() throws {
    let made = "wormhole put x 1 && mkdir -m 700 hole/bridge && touch hole/bridge/lock"
    #expect(try stage.done(made) == "")
    let planted = try stage.run("wormhole doctor")
    #expect(planted.output.contains("bridge: not made by a bridge of this container"))
    let wide = try stage.run("chmod 755 hole/bridge && wormhole doctor")
    #expect(wide.output.contains("open to more users than its owner (mode 755)"))
    let file = try stage.run("rm -r hole/bridge && touch hole/bridge && wormhole doctor")
    #expect(file.output.contains("bridge: not a directory"), "\(file.output)")
  }

  @Test func aBridgeOfAnotherUserIsReported() throws {
    guard Processes.effectiveUser == 0 else {
      return skip("a directory of another user", because: "only root gives files away")
    }
    let outcome = try stage.run(
      "wormhole put x 1 && mkdir -m 700 hole/bridge && chown 4711 hole/bridge && wormhole doctor")
    #expect(outcome.output.contains("owned by user 4711, and the container by 0"))
  }
}
