import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// `wormhole doctor` in containers where another tool has replaced a file or directory.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct DoctorVerbTests {
  private let stage: Stage

  init() throws {
    stage = try Stage()
    let made = try stage.run(
      """
      wormhole put a 1 && wormhole put zlast 1 && wormhole post n && wormhole send --to m hello \
      && wormhole coordinate read hole/x --container hole -- true; wormhole defaults write s k 1
      """)
    #expect(made.status == .exited(0), "\(made.errors)")
  }

  private func damage(_ path: String, keeping: Bool) throws {
    _ = try stage.run(keeping ? "true" : "rm -f hole/\(path)/kept.plist")
    _ = try stage.run("echo damaged >bad; mv bad hole/\(path)/value.plist")
  }

  private static let wrong = [
    ("channels", ["file", "link", "fifo"]), ("channels/a/lock/1", ["fifo", "link", "directory"]),
    ("channels/a/lock/1.d", ["file", "link", "fifo"]), ("channels/a/lock", ["file"]),
    ("system/defaults.s/lock/1.d", ["file"]), ("notices", ["file", "link"]),
    ("notices/n", ["link", "directory", "fifo"]), ("members/m/progress", ["directory"]),
    ("damaged", ["file", "link", "fifo"]), ("members/m/inbox", ["file"]),
    ("members/m/files", ["file", "fifo"]), ("members", ["file"]), ("guests", ["file"]),
    ("system", ["file"]), ("system/coordination/waiting", ["file"]),
    ("system/coordination/running", ["file"]), ("channels/a/value.plist", ["fifo"]),
  ].flatMap { path, kinds in kinds.map { (path, $0) } }

  /// Every obstacle to a change is reported, and none of them hides the rest from the report.
  @Test(arguments: wrong) func whatStandsInThePlaceOfSomethingElseIsTold(
    _ path: String, _ kind: String
  ) throws {
    let make = ["file": "touch", "link": "ln -s /tmp", "fifo": "mkfifo", "directory": "mkdir"]
    let made = try stage.run(
      "mkdir -p $(dirname hole/\(path)) && rm -rf hole/\(path) && \(make[kind]!) hole/\(path)")
    #expect(made.status == .exited(0), "\(made.errors)")
    for words in ["doctor", "doctor --repair"] {
      let outcome = try stage.run("wormhole \(words)")
      #expect(outcome.status == .exited(1), "\(outcome.errors)")
      #expect(outcome.output.contains("fine      container: "))
      #expect(outcome.output.contains("problem   \(path)"), "\(outcome.output)")
      #expect(!outcome.output.contains("repaired"))
    }
  }

  @Test(arguments: ["007", "00", "+9"]) func aNameThatOnlyLooksLikeALockIsForeign(
    _ name: String
  ) throws {
    let outcome = try stage.run("touch hole/channels/a/lock/\(name) && wormhole doctor")
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output.contains("note      channels/a/lock/\(name): a foreign file"))
  }

  @Test func foreignFilesAreTold() throws {
    let places = ["notices", "damaged", "members/m/files", "members/m/context"]
    for place in places {
      _ = try stage.run("mkdir -p hole/\(place); touch hole/\(place)/%mine")
    }
    let outcome = try stage.run("wormhole doctor")
    #expect(outcome.status == .exited(0))
    for place in places {
      #expect(outcome.output.contains("note      \(place)/%mine: a foreign file"), "\(place)")
    }
  }

  @Test(arguments: [
    "mkfifo hole/staging/0123456789abcdef", "mkdir -p hole/staging/0123456789abcdef/2/3/4/5/6/7",
    "mkdir -p hole/channels/a/lock/1.d/2/3/4/5/6/7",
    "mkdir -p hole/guests/0123456789abcdef/presence",
  ])
  func whatCannotBeRepairedKeepsNothingElseFromIt(_ obstacle: String) throws {
    _ = try stage.run("for n in 1 2 3; do wormhole put zlast $n --power; done")
    try damage("channels/zlast", keeping: true)
    let made = try stage.run(obstacle + " && mkdir hole/staging/fedcba9876543210")
    #expect(made.status == .exited(0), "\(made.errors)")
    let outcome = try stage.run("wormhole doctor --repair")
    #expect(outcome.status == .exited(1))
    let repaired = outcome.output.split(separator: "\n").filter { $0.hasPrefix("repaired") }
    #expect(
      repaired.map { $0.split(separator: " ")[1] }
        == ["staging/fedcba9876543210:", "channels/zlast/value.plist:"], "\(outcome.output)")
  }

  /// As on a file system mounted read-only.
  @Test func whereNothingCanBeChangedAllIsToldStill() throws {
    _ = try stage.run("for n in 1 2 3; do wormhole put a $n --power; done")
    try damage("channels/a", keeping: true)
    _ = try stage.run("mkdir hole/staging/fedcba9876543210 hole/guests/0123456789abcdef")
    let calls = ["rename", "mkdir", "unlink", "rmdir"]
    let faults = calls.map { "\($0)~hole/@1+:before:fail=EROFS" }.joined(separator: ";")
    let outcome = try stage.run(
      "wormhole doctor --repair", environment: ["WORMHOLE_FAULTS=\(faults)"])
    #expect(outcome.status == .exited(1), "\(outcome.errors)")
    #expect(!outcome.output.contains("repaired"), "\(outcome.output)")
    for path in ["staging/fedcba9876543210", "channels/a/value.plist", "guests/0123456789abcdef"] {
      #expect(outcome.output.contains("problem   \(path)"), "\(outcome.output)")
    }
    #expect(outcome.errors.contains(": cannot be repaired: read-only file system"))
  }

  @Test(arguments: ["touch", "mkfifo", "ln -s /tmp"])
  func aDamagedValueThatCannotBeSetAsideIsNotLost(_ make: String) throws {
    _ = try stage.run("for n in 1 2 3; do wormhole put a $n --power; done")
    try damage("channels/a", keeping: true)
    _ = try stage.run("rm -rf hole/damaged; \(make) hole/damaged")
    let outcome = try stage.run("wormhole doctor --repair")
    #expect(outcome.status == .exited(1))
    #expect(!outcome.output.contains("repaired"))
    #expect(try stage.run("grep -rlx damaged hole").output == "hole/channels/a/value.plist\n")
    let mended = try stage.run("rm hole/damaged; wormhole doctor --repair")
    #expect(mended.output.contains("repaired  channels/a/value.plist: "))
    #expect(try stage.run("cat hole/damaged/*.plist").output == "damaged\n")
  }

  /// A guest that goes has its directory in `staging/` for a moment.
  @Test func aGuestThatGoesIsNoDeadOne() throws {
    let reply = try stage.start("wormhole reply --as m --exec cat --verbose")
    try eventually("it replies") { try reply.errors.contains("replying as 'm'") }
    let ask = try stage.start(
      "wormhole request --to m x", environment: ["WORMHOLE_FAULTS=rename~hole/staging/:after:stop"])
    try ask.waitUntilStopped()
    let outcome = try stage.run("ls hole/staging hole/guests && wormhole doctor")
    #expect(outcome.status == .exited(0), "\(outcome.output)")
    #expect(outcome.output.contains(": being written"))
    try ask.child.send(.go)
    #expect(try ask.outcome().output == "x\n")
  }

  @Test func eachKindOfDamageHasItsAdvice() throws {
    _ = try stage.run("mkdir -p hole/system/epoch")
    for path in ["channels/a", "system/defaults.s", "system/epoch"] {
      try damage(path, keeping: false)
    }
    let output = try stage.run("wormhole doctor").output
    #expect(output.contains("put a new value; the damaged file moves to damaged/"))
    #expect(output.contains("remove all settings with 'wormhole defaults delete s'"))
    #expect(output.contains("end all programs of the container, and move system/epoch away"))
    let write = try stage.run("wormhole defaults write s k 2")
    #expect(write.status == .exited(65))
    #expect(write.errors.contains("removeAll() or 'wormhole defaults delete s'"))
    #expect(try stage.run("wormhole defaults delete s").status == .exited(0))
    #expect(try stage.run("wormhole defaults write s k 2").status == .exited(0))
  }

  @Test func itMakesNothing() throws {
    _ = try stage.run(
      "echo x >f; wormhole send --to m --file f; rm -r hole/members/m/inbox hole/members/m/dead")
    _ = try stage.run("wormhole doctor")
    #expect(try stage.run("ls hole/members/m | grep -cE 'inbox|dead'").output == "0\n")
  }

  /// A suspended worker does not handle its messages, and keeps them until its deadline passes.
  @Test func aSuspendedWorkerIsAProblem() throws {
    let worker = try stage.start("wormhole work jobs --exec true")
    let path = "queues/jobs/workers/"
    try eventually("the running worker is a note") {
      try stage.run("wormhole doctor").output.contains("note      \(path)")
    }
    try worker.child.send(.stop)
    try worker.waitUntilStopped()
    let outcome = try stage.run("wormhole doctor")
    #expect(outcome.status == .exited(1))
    #expect(outcome.output.contains("problem   \(path)"), "\(outcome.output)")
    try worker.child.send(.go)
  }
}
