import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// What a service manager hears of the verbs that wait.
@Suite(.blocking, .notSanitized("about what a command states")) struct ServiceVerbTests {
  private let stage: Stage

  init() throws { stage = try Stage() }

  /// Stands in for the manager: prints what the command states, and runs steps in between.
  private static let manager = """
    import os, signal, socket, subprocess, sys
    manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    manager.bind("notify")
    manager.settimeout(60)
    settings = dict(os.environ, NOTIFY_SOCKET=os.getcwd() + "/notify")
    if sys.argv[1] != "0":
        settings["WATCHDOG_USEC"] = sys.argv[1]
    command = subprocess.Popen(["wormhole"] + sys.argv[3:], env=settings)
    def hear():
        return manager.recv(100).decode()
    print(hear(), flush=True)
    if sys.argv[1] != "0":
        print(hear(), hear(), hear(), flush=True)
        command.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, command.pid, os.WSTOPPED)
        manager.setblocking(False)
        try:
            while True: hear()
        except BlockingIOError: pass
        manager.settimeout(1)
        try: print("stopped and heard", hear(), flush=True)
        except TimeoutError: print("stopped and silent", flush=True)
        manager.settimeout(60)
        command.send_signal(signal.SIGCONT)
        print(hear(), flush=True)
    subprocess.run(["sh", "-c", sys.argv[2]], check=True)
    heard = hear()
    while heard == "WATCHDOG=1": heard = hear()
    print(heard, command.wait(), flush=True)
    """

  private func hear(_ words: String, watchdog: Int = 0, then step: String) throws -> String? {
    guard Programs.installed("python3") != nil else {
      skip("a service manager", missing: "python3")
      return nil
    }
    let outcome = try stage.run(
      "python3 -c \"$MANAGER\" \(watchdog) \"$STEP\" \(words) 2>errors; cat errors >&2",
      environment: ["MANAGER=\(Self.manager)", "STEP=\(step)"])
    #expect(outcome.errors == "")
    return outcome.output
  }

  @Test(arguments: [
    ("receive --as printer --count 1", "wormhole send --to printer page", "page\n"),
    ("work jobs --exec cat --count 1", "wormhole send --queue jobs page", "page\n"),
    (
      "reply --as till --exec cat --count 1", "wormhole request --to till page >reply", ""
    ),
  ])
  func readinessAndTheEndAreNotified(_ words: String, _ step: String, _ output: String) throws {
    guard let heard = try hear(words, then: step) else { return }
    let lines = heard.split(separator: "\n").map(String.init)
    #expect(lines.first == "READY=1")
    #expect(lines.last == "STOPPING=1 0", "\(heard)")
    #expect(heard.contains(output))
  }

  /// A third of the manager's limit passes between two statements.
  @Test func theWatchdogHearsOfALivingCommandOnly() throws {
    let heard = try hear(
      "receive --as printer --exec 'sleep 0' --count 1", watchdog: 600_000,
      then: "wormhole send --to printer page")
    guard let heard else { return }
    #expect(
      heard == "READY=1\nWATCHDOG=1 WATCHDOG=1 WATCHDOG=1\nstopped and silent\nWATCHDOG=1\n"
        + "STOPPING=1 0\n")
  }

  /// Neither a command without a manager nor a child of the service states anything.
  @Test func anotherProcessStatesNothing() throws {
    let plain = try stage.run("NOTIFY_SOCKET= wormhole receive --as a --timeout 0 --quiet")
    #expect(plain.errors == "")
    let child = try stage.run(
      "WATCHDOG_USEC=1000 WATCHDOG_PID=1 NOTIFY_SOCKET=\"$STAGE/none\" "
        + "wormhole receive --as a --timeout 0 --quiet")
    #expect(child.status == .exited(1) && child.errors == "")
  }

  /// The children of a service inherit the variables of its watchdog.
  @Test func theWatchdogOfAnotherProcessHearsNothing() throws {
    guard Programs.installed("python3") != nil else {
      return skip("a service manager", missing: "python3")
    }
    let manager = """
      import os, socket, subprocess
      manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
      manager.bind("notify")
      manager.settimeout(60)
      settings = dict(os.environ, NOTIFY_SOCKET=os.getcwd() + "/notify")
      settings.update(WATCHDOG_USEC="1000", WATCHDOG_PID="1")
      command = ["wormhole", "receive", "--as", "a", "--timeout", "1", "--quiet"]
      status = subprocess.run(command, env=settings).returncode
      print(status, manager.recv(100).decode(), manager.recv(100).decode())
      """
    let outcome = try stage.run("python3 -c \"$MANAGER\"", environment: ["MANAGER=\(manager)"])
    #expect(outcome.output == "1 READY=1 STOPPING=1\n", "\(outcome.errors)")
  }

  /// On a terminal only; in a pipe, and with `--json`, standard error stays empty.
  @Test func longWorkShowsProgressInATerminal() throws {
    guard Programs.installed("python3") != nil else {
      return skip("a terminal", missing: "python3")
    }
    let program = """
      import os, sys
      process, terminal = os.forkpty()
      if process == 0:
          os.execvp("sh", ["sh", "-c", os.environ["LINE"]])
      text = b""
      while True:
          try: more = os.read(terminal, 4096)
          except OSError: break
          if not more: break
          text += more
      print(text.decode().replace("\\r", "<").replace("\\x1b[K", ">"), end="")
      """
    func output(_ line: String) throws -> String {
      try stage.run(
        "python3 -c \"$PROGRAM\"", environment: ["PROGRAM=\(program)", "LINE=\(line)"]
      ).output
    }
    _ = try stage.run("wormhole put a 1")
    let shown = try output("wormhole doctor --repair >/dev/null")
    #expect(shown.contains("<>repairing the container"))
    #expect(shown.contains("<>checking messages"))
    #expect(shown.hasSuffix("<>"), "the line is removed: \(shown)")
    #expect(try output("wormhole doctor --repair --json >/dev/null") == "")
    #expect(try output("wormhole doctor --repair --quiet >/dev/null") == "")
    #expect(try stage.run("wormhole doctor --repair").errors == "")
  }
}
