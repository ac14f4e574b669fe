import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

/// A demonstration of the package with real processes: each is a `wormhole` of its own.
///
/// The output is the same in each run: a test compares every word.
struct Demo {
  private let stage = Demonstration("wormhole")
  private let output: Output

  init(_ output: Output) { self.output = output }

  func run() throws {
    try stage.run {
      try prepare()
      // The first command waits, and would report a missing container.
      _ = try SharedContainer(directory: stage.path + "/container")
    } _: {
      try play()
    }
  }

  private func play() throws {
    try tell(
      """
      Several processes share a directory, which is removed at the end.

      A process sets a value, and another process replies with a value.
      """)
    try ask()
    try tell("\nA process is killed during a change. No process waits, and no value is lost.")
    try kill()
    try tell("\nA process is killed while it handles a message. The message is redelivered.")
    try handle()
    try tell("\nA process is suspended during a change. After a second, others take over its lock.")
    try stop()
    try tell("\nSixty processes count at once. Some of them are killed, and some are suspended.")
    try storm()
    try tell("\nThe directory is removed.")
  }

  // MARK: The five acts

  private func ask() throws {
    let question = "watch question --now --count 1 --exec"
    let other = try start(question, ["wormhole put answer \"$(tr a-z A-Z)\""], beside: true)
    try show("put question", ["is anybody there?"])
    try show("get answer --wait --timeout 9")
    try expect(.exited(0), of: other)
  }

  private func kill() throws {
    try show("update tickets --add 10")
    let victim = try start("update tickets --exec", ["kill -KILL $PPID"])
    try expect(.signalled(9), of: victim)
    try tell("  the process was killed while it held the lock")
    try show("update tickets --add 1")
  }

  private func handle() throws {
    let sender = try start("send --to till --wait", ["two seats"], beside: true)
    let victim = try start("receive --as till --timeout 9 --exec", ["kill -KILL $PPID"])
    try expect(.signalled(9), of: victim)
    try tell("  the process was killed before it acknowledged the message")
    try show(
      "receive --as till --count 1 --timeout 9 --exec",
      ["echo \"$(cat), attempt $WORMHOLE_MESSAGE_ATTEMPT\""])
    try expect(.exited(0), of: sender)
    try tell("  the sender was notified of the delivery, and ended")
  }

  private func stop() throws {
    let sleeper = try start("update tickets --exec", ["add-slowly 100"], beside: true)
    try waitFor("inside")
    try stage.attempt { () throws(Errno) in
      try sleeper.send(.stop)
      _ = try sleeper.waitUntilStopped()
    }
    try tell("  the process is suspended while it holds the lock")
    try show("update tickets --add 1")
    try stage.attempt { () throws(Errno) in
      try stage.directory().makeDirectory("go-on", mode: 0o700)
      try sleeper.send(.go)
    }
    try expect(.exited(0), of: sleeper)
    try tell("  the process resumed, found a newer value, and ran its command again on it")
    try show("get tickets")
  }

  private func storm() throws {
    let count = 60
    let words = "update total --add 1"
    try announce(words, [], " &")
    try tell("  and again, until \(count) processes were started, four at a time")
    let ended = try Storm(stage, of: count, confirmed: "counted", output).run { _, output in
      try spawn(words, [], output: output)
    }
    let channel = try SharedContainer(directory: stage.path + "/container").channel(
      "total", of: Int.self)
    let total = try channel.value ?? 0
    let confirmed = ended.filter(\.isConfirmed)
    guard Set(confirmed.map(\.output)).count == confirmed.count,
      (confirmed.count...ended.count).contains(total)
    else {
      throw Failure(
        .software, "system",
        "cannot show the demonstration: \(confirmed.count) of \(ended.count) processes have "
          + "printed a total, and the total is \(total)")
    }
    try tell(
      """
        each process that printed a total is counted, and no total was printed twice
        each killed process is counted once, or not at all
      """)
  }

  // MARK: The stage

  /// A script that waits in its first run, and runs without a delay the second time.
  ///
  /// Once the stage is removed, the script ends: its parent process may have been killed.
  private static let slowly = """
    #!/bin/sh
    mkdir "$STAGE/inside" 2>/dev/null
    until [ -e "$STAGE/go-on" ]; do [ -d "$STAGE/inside" ] || exit 1; sleep 0.02; done
    echo $(($(cat) + $1))

    """

  private func prepare() throws {
    try stage.attempt { () throws(Errno) in
      let directory = try stage.directory()
      try directory.makeDirectory("bin", mode: 0o700)
      let programs = try directory.open("bin", .readOnlyDirectory)
      try programs.makeSymbolicLink("wormhole", to: try Processes.ownProgram())
      let script = try programs.open("add-slowly", .writeOnlyNew, mode: 0o700)
      try script.writeFully(Array(Self.slowly.utf8))
    }
  }

  private func waitFor(_ name: String) throws {
    let deadline = Instant.now + .seconds(9)
    while Instant.now < deadline {
      if (try? stage.directory().status(of: name)) != nil { return }
      stage.pause(.milliseconds(5))
    }
    throw Failure(.software, "system", "cannot show the demonstration: '\(name)' did not appear")
  }

  // MARK: Processes

  /// Shows a command, runs it, and shows its output.
  private func show(_ words: String, _ more: [String] = []) throws {
    try announce(words, more)
    let conduit = try stage.attempt { () throws(Errno) in try SharedPipe() }
    let child = try spawn(words, more, output: conduit.writing)
    conduit.closeWriting()
    let text = try stage.attempt { () throws(Errno) in
      String(decoding: try conduit.collect(limit: 1 << 16), as: UTF8.self)
    }
    try expect(.exited(0), of: child)
    for line in text.split(separator: "\n") { try tell("  \(line)") }
  }

  /// Shows a command and starts it.
  private func start(_ words: String, _ more: [String], beside: Bool = false) throws -> Child {
    try announce(words, more, beside ? " &" : "")
    return try spawn(words, more, output: 1)
  }

  private func announce(_ words: String, _ more: [String], _ end: String = "") throws {
    try tell("  $ wormhole \(words)" + more.map { " '\($0)'" }.joined() + end)
  }

  private func spawn(_ words: String, _ more: [String], output: CInt) throws -> Child {
    let path = Processes.environment("PATH") ?? "/usr/bin:/bin"
    let settings = [
      "WORMHOLE_CONTAINER=\(stage.path)/container", "STAGE=\(stage.path)",
      "PATH=\(stage.path)/bin:\(path)",
    ]
    return try stage.start { () throws(Errno) in
      try Child.spawn(
        stage.path + "/bin/wormhole", words.split(separator: " ").map(String.init) + more,
        environment: Processes.environment(setting: settings, without: ["WORMHOLE_GROUP"]),
        output: output)
    }
  }

  private func expect(_ status: ChildStatus, of child: Child) throws {
    let ended = try stage.end(child)
    guard ended == status else {
      throw Failure(
        .software, "system", "cannot show the demonstration: a process ended with \(ended.code)")
    }
  }

  private func tell(_ words: String) throws { try output.write(line: words) }
}

extension Verb {
  static let demo = Verb(
    "demo", "run a short demonstration with real processes", [], [],
    [
      "Works in a directory of its own below TMPDIR, and removes the directory. Takes some "
        + "seconds; one second is the time until other processes take over from a suspended "
        + "process. On a terminal, shows the storm of the last scene while it lasts: a bar, and "
        + "the numbers of processes counted, killed and suspended."
    ],
    [Example("wormhole demo", "watch five short scenes")],
    action: "show the demonstration"
  ) { invocation in
    try Demo(invocation.output).run()
    return 0
  }
}
