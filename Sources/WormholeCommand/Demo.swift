import CommandLine
import SharedContainer
import Syscalls
import Wormhole

/// What the package is for, shown with real processes: each a `wormhole` of its own.
///
/// It tells nothing that changes from run to run, so that a test can compare it word for word.
final class Demo: Sendable {
  private let path: String
  private let output: Output
  private let children = Monitor<[Child]>([])
  private let isClean = Monitor(false)

  init(_ output: Output) {
    let parent = Processes.environment("TMPDIR") ?? "/tmp"
    path = parent + "/wormhole-demo-\(Processes.current)-\(Clocks.sinceBoot)"
    self.output = output
  }

  func run() throws {
    try Interruption.prepare { self.cleanUp() }
    defer { cleanUp() }
    try prepare()
    // The first to come waits, and would say that there was no container.
    _ = try Wormhole(directory: path + "/container")
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
    try attempt { () throws(Errno) in
      try sleeper.send(.stop)
      _ = try sleeper.waitUntilStopped()
    }
    try tell("  it stands still, with the lock in its hands")
    try show("update tickets --add 1")
    try attempt { () throws(Errno) in
      try directory().makeDirectory("go-on", mode: 0o700)
      try sleeper.send(.go)
    }
    try expect(.exited(0), of: sleeper)
    try tell("  it went on, saw that others had been faster, and added to what they had left")
    try show("get tickets")
  }

  // MARK: The stage

  /// The second time it runs, nothing holds it up.
  ///
  /// Once the stage is removed it ends: whoever
  /// started it may have been killed.
  private static let slowly = """
    #!/bin/sh
    mkdir "$STAGE/inside" 2>/dev/null
    until [ -e "$STAGE/go-on" ]; do [ -d "$STAGE/inside" ] || exit 1; sleep 0.02; done
    echo $(($(cat) + $1))

    """

  private func prepare() throws {
    try attempt { () throws(Errno) in
      try Descriptor.makeDirectory(path: path, mode: 0o700)
      let stage = try directory()
      try stage.makeDirectory("bin", mode: 0o700)
      let programs = try stage.open("bin", [.readOnly, .directory])
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

  private func directory() throws(Errno) -> Descriptor {
    try Descriptor.open(path: path, [.readOnly, .directory])
  }

  private func waitFor(_ name: String) throws {
    let pause = Monitor(())
    let deadline = Instant.now + .seconds(9)
    while Instant.now < deadline {
      if (try? directory().status(of: name)) != nil { return }
      let _: Void? = pause.wait(until: .now + .milliseconds(5)) { _ in nil }
    }
    throw Failure(.software, "system", "cannot show the demonstration: '\(name)' did not come")
  }

  /// Once, and to its end, whether a signal or the last act is the reason, or both at a time.
  private func cleanUp() {
    isClean.withLock { isClean in
      if !isClean { removeAll() }
      isClean = true
    }
  }

  private func removeAll() {
    let left = children.withLock { $0 }
    // One that has ended needs no more; a directory that was never made need not be removed.
    for child in left where (try? child.poll()) == .some(nil) {
      try? child.send(.kill)
      _ = try? child.wait()
    }
    guard let slash = path.lastIndex(of: "/"),
      let parent = try? Descriptor.open(path: String(path[..<slash]) + "/.", [.path, .directory])
    else { return }
    let name = String(path[path.index(after: slash)...])
    // What a process that was killed had started may still be writing for a moment.
    for _ in 0..<100 {
      let failure = Errno.of { () throws(Errno) in try removeTree(name, in: parent, depth: 9) }
      if failure == nil { return }
    }
  }

  // MARK: Processes

  /// Shows a command, runs it, and shows what it wrote.
  private func show(_ words: String, _ more: [String] = []) throws {
    try announce(words, more)
    let conduit = try attempt { () throws(Errno) in try SharedPipe() }
    let child = try spawn(words, more, output: conduit.writing)
    conduit.closeWriting()
    let text = try attempt { () throws(Errno) in
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
      "WORMHOLE_CONTAINER=\(self.path)/container", "STAGE=\(self.path)",
      "PATH=\(self.path)/bin:\(path)",
    ]
    let child = try attempt { () throws(Errno) in
      try Child.spawn(
        self.path + "/bin/wormhole", words.split(separator: " ").map(String.init) + more,
        environment: Processes.environment(setting: settings, without: ["WORMHOLE_GROUP"]),
        output: output)
    }
    children.withLock { $0.append(child) }
    return child
  }

  private func expect(_ status: ExitStatus, of child: Child) throws {
    let ended = try attempt { () throws(Errno) in try child.wait() }
    children.withLock { $0.removeAll { $0.process == child.process } }
    guard ended == status else {
      throw Failure(
        .software, "system", "cannot show the demonstration: a process ended with \(ended.code)")
    }
  }

  private func tell(_ words: String) throws { try output.write(line: words) }

  private func attempt<Result>(_ body: () throws(Errno) -> Result) throws -> Result {
    do throws(Errno) {
      return try body()
    } catch {
      throw WormholeError(error, "show the demonstration in", path)
    }
  }
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
