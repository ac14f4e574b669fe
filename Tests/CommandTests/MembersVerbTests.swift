import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The members and their states, as the command prints them.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct MembersVerbTests {
  private let stage: Stage

  init() throws {
    stage = try Stage()
    #expect(try stage.run("wormhole put speed 88").status == .exited(0))
  }

  private func be(_ name: String, info: [String: String] = [:]) throws -> Running {
    let running = try Running(.be(stage.container, name, info: info))
    try eventually("it has joined") { try running.output.contains("\n") }
    return running
  }

  private func members() throws -> String {
    let outcome = try stage.run("wormhole members")
    #expect(outcome.errors == "")
    return stage.normal(outcome.output)
  }

  @Test func whereNobodyHasJoinedNothingIsListed() throws {
    let outcome = try stage.run("wormhole members")
    #expect(outcome.status == .exited(0))
    #expect(outcome.output == "")
    #expect(outcome.errors == "")
  }

  @Test func eachMemberIsALine() throws {
    let watch = try be("watch")
    let phone = try be("ph\no/ne", info: ["role": "a\tb"])
    let (first, second) = (
      #""ph\no/ne""# + "\trunning\tTestPeer (process N)\tjoined TIME\t" + #""role=a\tb""#,
      "watch\trunning\tTestPeer (process N)\tjoined TIME"
    )
    #expect(try members() == "\(first)\n\(second)\n")
    try watch.child.send(.stop)
    try watch.waitUntilStopped()
    #expect(try members() == "\(first)\n\(second.replacing("running", with: "stopped"))\n")
    for peer in [watch, phone] {
      try peer.child.send(.kill)
      _ = try peer.outcome()
    }
    let gone = [first, second].map {
      $0.replacing("running\tTestPeer (process N)", with: "not running") + "\n"
    }
    #expect(try members() == gone.joined())
    #expect(try stage.run("wormhole members").status == .exited(0))
  }

  @Test func forProgramsItIsAnObjectALine() throws {
    let phone = try be("phone", info: ["role": "screen"])
    let process = Int64(phone.child.process)
    func read() throws -> PropertyListValue {
      let outcome = try stage.run("wormhole members --json")
      #expect(outcome.status == .exited(0))
      #expect(outcome.output.split(separator: "\n").count == 1)
      return try JSONPropertyList.decode(
        Array(outcome.output.replacing(":null", with: #":"absent""#).utf8))
    }
    let running = try read()
    #expect(running["member"] == .string("phone"))
    #expect(running["state"] == .string("running"))
    #expect(running["running"] == .boolean(true))
    #expect(running["stopped"] == .boolean(false))
    #expect(running["process"] == .integer(process))
    #expect(running["program"] == .string("TestPeer"))
    #expect(running["info"] == .dictionary(["role": .string("screen")]))
    #expect(running["incarnation"] == .string(try phone.output.split(separator: "\n").joined()))
    #expect(running["joined"] != nil)
    try phone.child.send(.kill)
    _ = try phone.outcome()
    let gone = try read()
    #expect(gone["state"] == .string("not running"))
    #expect(gone["stopped"] == .string("absent"))
    #expect(gone["incarnation"] == running["incarnation"])
  }

  // MARK: The doctor

  private func doctor() throws -> (status: Int32, lines: [String]) {
    let outcome = try stage.run("wormhole doctor")
    let lines = stage.normal(outcome.output).split(separator: "\n").map(String.init)
    return (outcome.status.code, lines.filter { $0.contains("members/") || $0.contains("CONT") })
  }

  @Test func theDoctorSaysWhoHoldsANameAndWhetherItIsStopped() throws {
    let phone = try be("phone")
    #expect(
      try doctor()
        == (0, ["note      members/phone/presence: held by 'TestPeer' (process N, running)"]))
    try phone.child.send(.stop)
    try phone.waitUntilStopped()
    #expect(
      try doctor()
        == (
          1,
          [
            "problem   members/phone/presence: held by 'TestPeer' (process N, stopped)",
            "          resume the process with 'kill -CONT N', or end the process",
          ]
        ))
    try phone.child.send(.kill)
    _ = try phone.outcome()
    #expect(try doctor() == (0, []))
  }

  @Test func aSecondProcessWaitsForTheName() throws {
    let first = try stage.start("wormhole receive --as tv --verbose")
    try eventually("it receives") { try first.errors.contains("receiving as 'tv'") }
    let second = try stage.start(
      "wormhole receive --as tv --wait-for-name --verbose --count 1 --timeout 60")
    try eventually("it waits") { try second.errors.contains("waiting for the name 'tv'") }
    try first.child.send(.kill)
    _ = try first.outcome()
    #expect(try stage.run("wormhole send --to tv hello").status == .exited(0))
    let outcome = try second.outcome(within: .seconds(60))
    #expect(outcome.output == "hello\n" && outcome.status == .exited(0), "\(outcome.errors)")
  }

  @Test func theDoctorFindsWhatIsWrongWithMembers() throws {
    let phone = try be("phone")
    try phone.child.send(.kill)
    _ = try phone.outcome()
    let made = try stage.run(
      """
      cd hole && touch members/file members/phone/notes guests/notes && mkdir members/%zz \
      && mkdir members/tv && mkfifo members/tv/presence members/tv/profile.plist \
      && rmdir members/phone/dead && touch members/phone/dead \
      && echo junk > members/phone/profile.plist
      """)
    #expect(made.status == .exited(0), "\(made.errors)")
    let (status, lines) = try doctor()
    #expect(status == 1)
    let subjects = lines.map { $0.split(separator: " ").dropFirst().first.map(String.init) ?? "" }
    #expect(
      subjects == [
        "members/%zz:", "members/file:", "members/phone/profile.plist:", "members/phone/dead:",
        "members/phone/notes:", "members/tv/profile.plist:", "members/tv/presence:",
      ])
    #expect(lines.filter { $0.hasPrefix("problem") }.count == 4)
    #expect(try stage.run("wormhole doctor").output.contains("guests/notes: a foreign file"))
    #expect(try stage.run("wormhole doctor --repair").status == .exited(1))
    #expect(try doctor() == (1, lines))
  }
}
