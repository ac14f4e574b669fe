import CommandLine
import SharedContainer
import Syscalls
import Wormhole

/// What the package is for, shown with real processes: each a `wormhole` of its own.
///
/// It tells nothing that changes from run to run, so that a test can compare it word for word.
struct Demo {
  private let stage = Demonstration("wormhole")
  private let output: Output

  init(_ output: Output) { self.output = output }

  func run() throws {
    try stage.run {
      try prepare()
      // The first to come waits, and would say that there was no container.
      _ = try Wormhole(directory: stage.path + "/container")
    } _: {
      try play()
    }
  }

  private func play() throws {
    try tell(
      """
      Several processes meet in a directory, which is removed at the end.

      A question goes to another process, and its answer comes back.
      """)
    try ask()
    try tell("\nA process is killed in the middle of a change. Nobody waits, nothing is lost.")
    try kill()
    try tell("\nA process is killed in the middle of a message. It comes again, and says so.")
    try handle()
    try tell("\nA process is stopped in the middle of a change. After a second the others go on.")
    try stop()
    try tell("\nThe directory is removed again.")
  }

  // MARK: The four acts

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
    try tell("  it was killed, with the lock in its hands")
    try show("update tickets --add 1")
  }

  private func handle() throws {
    let sender = try start("send --to till --wait", ["two seats"], beside: true)
    let victim = try start("receive --as till --exec", ["kill -KILL $PPID"])
    try expect(.signalled(9), of: victim)
    try tell("  it was killed, with the message in its hands")
    try show(
      "receive --as till --count 1 --exec",
      ["echo \"$(cat), attempt $WORMHOLE_MESSAGE_ATTEMPT\""])
    try expect(.exited(0), of: sender)
    try tell("  the sender was told that it is handled, and ended")
  }

  private func stop() throws {
    let sleeper = try start("update tickets --exec", ["add-slowly 100"], beside: true)
    try waitFor("inside")
    try stage.attempt { () throws(Errno) in
      try sleeper.send(.stop)
      _ = try sleeper.waitUntilStopped()
    }
    try tell("  it stands still, with the lock in its hands")
    try show("update tickets --add 1")
    try stage.attempt { () throws(Errno) in
      try stage.directory().makeDirectory("go-on", mode: 0o700)
      try sleeper.send(.go)
    }
    try expect(.exited(0), of: sleeper)
    try tell("  it went on, saw that others had been faster, and added to what they had left")
    try show("get tickets")
  }

  // MARK: The stage

  /// The second time it runs, nothing holds it up.
  ///
  /// Once the stage is removed it ends: whoever started it may have been killed.
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
      let programs = try directory.open("bin", [.readOnly, .directory])
      try programs.makeSymbolicLink("wormhole", to: try Processes.ownProgram())
      let script = try programs.open("add-slowly", [.writeOnly, .create, .exclusive], mode: 0o700)
      let text = Array(Self.slowly.utf8)
      if let failure = text.withUnsafeBytes({ bytes in
        Errno.of { () throws(Errno) in try script.writeFully(bytes) }
      }) {
        throw failure
      }
    }
  }

  private func waitFor(_ name: String) throws {
    let deadline = Instant.now + .seconds(9)
    while Instant.now < deadline {
      if (try? stage.directory().status(of: name)) != nil { return }
      stage.pause(.milliseconds(5))
    }
    throw Failure(.software, "system", "cannot show the demonstration: '\(name)' did not come")
  }

  // MARK: Processes

  /// Shows a command, runs it, and shows what it wrote.
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

  private func expect(_ status: ExitStatus, of child: Child) throws {
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
    "demo", "show what the package is for, with real processes", [], [],
    [
      "Works in a directory of its own below TMPDIR, which it removes. It takes two seconds: one "
        + "of them is the time after which others go on without a process that stands still."
    ],
    [Example("wormhole demo", "four short acts")]
  ) { invocation in
    try Demo(invocation.output).run()
    return 0
  }
}
