import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// What `wormhole status` counts, in a pipe and in a terminal.
@Suite(.blocking, .notSanitized("about what a command prints")) struct StatusVerbTests {
  private let stage: Stage

  init() throws {
    stage = try Stage()
    #expect(try stage.run("wormhole put speed 88").status == .exited(0))
  }

  private func rows(_ options: String = "") throws -> [[String]] {
    let outcome = try stage.run("wormhole status " + options)
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors == "")
    return outcome.output.split(separator: "\n").map {
      $0.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
    }
  }

  private func row(_ kind: String, _ rows: [[String]]) throws -> [String] {
    try #require(rows.first { $0[0] == kind })
  }

  @Test func itCountsChannelsAndMessages() throws {
    let made = try stage.run(
      """
      wormhole put film Metropolis; printf 'a\\nb\\n' | wormhole send --queue jobs --lines
      wormhole send --to watch one; wormhole send --to watch --urgent two
      wormhole send --to watch later --delay 3600
      wormhole receive --as watch --attempts 1 --count 1 --exec '[ $(cat) = one ]' --quiet
      """)
    #expect(made.status == .exited(0), "\(made.errors)")
    let rows = try rows()
    #expect(try row("container", rows)[1] == stage.container)
    #expect(try row("channels", rows)[1] == "2")
    let queue = try row("queue", rows)
    #expect(queue[1...2] == ["jobs", "2"])
    #expect(try #require(Double(queue[3])) >= 0)
    #expect(queue[4...7] == ["0", "0", "0", "0"])
    let member = try row("member", rows)
    #expect(member[1...2] == ["watch", "not running"])
    // The urgent message has failed, and the other was handled.
    #expect(member[6] == "1")
    #expect(member[7] == "1")
    #expect(try row("doctor", rows)[1] == member[7])
    #expect(rows.contains { $0[0] == "problem" && $0[2].contains("is a dead letter") })
    #expect(try #require(Int(try row("space", rows)[1])) > 300)
    #expect(try row("damaged", rows) == ["damaged", "0"])
  }

  /// So many messages are not read, and each dead letter is a problem all the same.
  @Test func deadLettersAreProblemsAmongManyMessages() throws {
    let made = try stage.run(
      """
      seq 201 | wormhole send --to watch --lines
      wormhole send --queue jobs bad; wormhole send --to till bad
      """)
    #expect(made.status == .exited(0), "\(made.errors)")
    let places = ["members/till/dead", "queues/jobs/dead"]
    try stage.makeDeadLetter(of: "jobs", by: "work jobs")
    try stage.makeDeadLetter(of: "till", by: "receive --as till")
    try eventually("both letters are problems") {
      let problems = try rows().filter { $0[0] == "problem" && $0[2] == "1 dead letter" }
      return problems.map { $0[1] }.sorted() == places
    }
  }

  @Test func workersAndMembersAreShown() throws {
    let worker = try stage.start("wormhole work jobs --exec 'sleep 100'")
    let member = try stage.start("wormhole receive --as watch")
    _ = try stage.run("wormhole send --queue jobs one")
    try eventually("the worker has the message, and the member has joined") {
      let rows = try rows()
      let queue = rows.first { $0[0] == "queue" }
      return queue?[2] == "0" && queue?[4] == "1" && queue?[7] == "1"
        && rows.contains { $0[0] == "member" && $0[1...2] == ["watch", "running"] }
    }
    for process in [worker, member] { try process.child.send(.kill) }
  }

  /// The age is since the lock was taken, and not since its file was made.
  @Test func locksHaveAHolderAndAnAge() throws {
    #expect(try rows("--locks").isEmpty)
    #expect(try stage.run("wormhole lock build -- true").status == .exited(0))
    #expect(try rows("--locks").isEmpty)
    let old = try stage.run("touch -d '1 hour ago' hole/system/lock.build/lock/1.d")
    #expect(old.status == .exited(0))
    let holder = try stage.start("wormhole lock build -- sleep 100")
    let name = "'wormhole' (process \(holder.child.process), running)"
    // A lock is held a moment before it has the mark of its holder.
    let lock = try eventually("the lock has its holder") {
      try rows("--locks").first { $0[2] == name }
    }
    #expect(lock[0] == "build")
    let age = try #require(Double(lock[1]))
    #expect(age < 3000)
    #expect(try rows().contains { $0 == ["lock", "build"] + $0.dropFirst(2) })
    try holder.child.send(.kill)
    _ = try holder.outcome()
    _ = try stage.run("pkill -KILL -P \(holder.child.process); true")
  }

  @Test func accessesAreShown() throws {
    let holder = try stage.start("wormhole coordinate write file -- sh -c 'echo in; sleep 100'")
    try eventually("the access runs") { try holder.output == "in\n" }
    // The object contains the accesses of the user's container, or of the stage's.
    let object = try stage.run("wormhole status --json").output
    #expect(object.contains(#""accesses":["#))
    try holder.child.send(.kill)
  }

  @Test func inAPipeItIsPrintedAgain() throws {
    let running = try stage.start("wormhole status --watch --interval 0.1")
    try eventually("it is printed again") {
      try running.output.split(separator: "\n").count { $0.hasPrefix("channels\t") } > 2
    }
    #expect(try running.output.contains("\n\ncontainer\t"))
    #expect(try !running.output.contains("\u{1B}"))
    try running.child.send(.interrupt)
    #expect(try running.outcome().status == .signalled(2))
    let refused = try stage.run("wormhole status --interval 1")
    #expect(refused.status == .exited(64))
  }

  /// Also while no lock is held, and no line is written.
  @Test(arguments: ["--locks --json", "--locks", "--json", ""])
  func itEndsWithItsReader(_ options: String) throws {
    let line = "timeout 30 wormhole status --watch --interval 0.1 \(options); echo $? >ended"
    #expect(try stage.run("{ \(line); } | true; cat ended").output == "141\n")
  }

  @Test(arguments: [nil, 2, 15] as [Int32?])
  func inATerminalItIsAPage(_ signal: Int32?) throws {
    _ = try stage.run("wormhole send --to watch one")
    let terminal = try TypedTerminal(stage, "wormhole status --watch --interval 0.2")
    try terminal.shows("MEMBER")
    #expect(terminal.text.contains("\u{1B}[?1049h"))
    #expect(terminal.mode != terminal.modeBefore)
    _ = try stage.run("wormhole send --to another two")
    try terminal.shows("another")
    if let signal {
      try terminal.child.send(number: signal)
      #expect(try terminal.wait() == .signalled(signal))
    } else {
      try terminal.type("q")
      #expect(try terminal.wait() == .exited(0))
    }
    #expect(terminal.mode == terminal.modeBefore)
    try terminal.shows("\u{1B}[?1049l")
  }

  /// The person has suspended the page, and continued it behind the shell, which has the terminal.
  ///
  /// The kernel stops a process that changes the settings there.
  @Test func aPageInTheBackgroundRestoresTheTerminal() throws {
    // The shell opens the terminal to get signals from it. Without SIGTTIN, the page's wait for
    // keys ends in the background.
    let script = """
      exec 3<"$(tty)"; set -m; trap "" TTIN
      wormhole status --watch; kill -TERM %1; bg %1
      wait %1; status=$?; [ $status = 143 ] || kill -KILL %1; exit $status
      """
    let terminal = try TypedTerminal(stage, "sh -c '\(script)'")
    try terminal.shows(" channels, ")
    #expect(terminal.mode != terminal.modeBefore)
    try terminal.type("\u{1A}")
    #expect(try terminal.wait() == .exited(128 + 15), "\(terminal.text)")
    #expect(terminal.mode == terminal.modeBefore)
  }

  @Test func inATerminalThereAreTablesWithColour() throws {
    _ = try stage.run("wormhole send --queue jobs one")
    let terminal = try TypedTerminal(stage, "wormhole status")
    #expect(try terminal.wait() == .exited(0))
    try terminal.shows("QUEUE")
    try terminal.shows("\u{1B}[1m")
    let plain = try TypedTerminal(stage, "wormhole status", environment: ["NO_COLOR=1"])
    #expect(try plain.wait() == .exited(0))
    try plain.shows("no problem")
    #expect(!plain.text.contains("\u{1B}"))
  }

  @Test func aSingleProblemIsCountedInTheSingular() throws {
    for (count, words) in [(1, "1 problem,"), (2, "2 problems,")] {
      let lock = "hole/channels/c\(count)/lock/1"
      let made = try stage.run("wormhole put c\(count) 1; rm -rf \(lock); mkfifo \(lock)")
      #expect(made.status == .exited(0), "\(made.errors)")
      let terminal = try TypedTerminal(stage, "wormhole status", environment: ["NO_COLOR=1"])
      #expect(try terminal.wait() == .exited(0))
      try terminal.shows("doctor: \(words)")
    }
  }

  /// Nothing is kept per message: the memory does not grow with the messages.
  @Test func theMemoryIsBounded() throws {
    let (channels, messages) = TestRun.isLong ? (10_000, 100_000) : (200, 3000)
    try fill(channels, messages)
    let base = try MemoryUse("wormhole --version", in: stage).kibibytes
    let used = try MemoryUse("wormhole status", in: stage).kibibytes
    #expect(used - base < 48 << 10, "\(used) KiB, \(base) KiB without a container")
    #expect(used < 64 << 10, "\(used) KiB")
    let rows = try rows()
    #expect(try row("channels", rows)[1] == "\(channels + 1)")
    #expect(try row("queue", rows)[2] == "\(messages)")
    guard TestRun.isLong else { return }
    let begin = Instant.now
    _ = try self.rows()
    print(
      "status over \(channels) channels and \(messages) messages: \(Instant.now - begin), "
        + "\(used) KiB")
  }

  /// Copies a channel and a message often: the library would take minutes.
  private func fill(_ channels: Int, _ messages: Int) throws {
    _ = try stage.run("wormhole send --queue jobs --id one value")
    let folder = try Descriptor.open(
      path: [stage.container, "queues", "jobs", "inbox"].joined(separator: "/"),
      [.readOnly, .directory])
    let name = try #require(try folder.names().first)
    let parts = name.split(separator: ",")
    var source = name
    for index in 1..<messages {
      let other =
        "\(parts[0]),\(parts[1]),\(parts[2]),m\(index),\(parts.count > 4 ? parts[4] : "")"
      // A file system limits the names of a file.
      if index.isMultiple(of: 10_000) {
        let inbox = "hole/queues/jobs/inbox"
        #expect(try stage.run("cp '\(inbox)/\(source)' '\(inbox)/\(other)'").status == .exited(0))
        source = other
      } else {
        try folder.link(source, to: folder, other)
      }
    }
    let all = try Descriptor.open(path: stage.container + "/channels", [.readOnly, .directory])
    let value = try all.open("speed", [.readOnly, .directory])
    for index in 0..<channels {
      try all.makeDirectory("c\(index)", mode: 0o700)
      let one = try all.open("c\(index)", [.readOnly, .directory])
      try one.makeDirectory("lock", mode: 0o700)
      try value.link("value.plist", to: one, "value.plist")
    }
  }
}
