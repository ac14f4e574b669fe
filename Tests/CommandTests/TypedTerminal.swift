import TestSupport
import WormholeContainerStorage
import WormholeSyscalls

/// A command in a pseudo-terminal of its own.
final class TypedTerminal: Sendable {
  let child: Child
  private let terminal: PseudoTerminal
  private let written = Monitor<[UInt8]>([])
  private let hasEnded = Monitor(false)
  private let reader: Thread
  let modeBefore: Terminal.Mode?

  init(
    _ stage: Stage, _ command: String, environment: [String] = [], columns: Int = 120
  ) throws {
    let terminal = try PseudoTerminal(columns: columns, rows: 24)
    self.terminal = terminal
    modeBefore = terminal.mode
    let settings = ["NO_COLOR=", "TERM=xterm"] + stage.environment + environment
    child = try Child.spawn(
      "sh", ["-c", "cd \"$STAGE\" && exec \(command)"],
      environment: Processes.environment(setting: settings),
      input: terminal.programEnd, output: terminal.programEnd, error: terminal.programEnd,
      ownSession: true)
    reader = try Thread("terminal") { [written] in
      var buffer = [UInt8](repeating: 0, count: 65_536)
      while let count = try? buffer.withUnsafeMutableBytes({ try terminal.own.read(into: $0) }),
        count > 0
      {
        let more = Array(buffer[..<count])
        written.signal { $0 += more }
      }
    }
  }

  deinit {
    hasEnded.withLock { hasEnded in
      guard !hasEnded else { return }
      try? child.send(.kill)
      _ = try? child.wait()
    }
    terminal.closeProgramEnd()
    reader.join()
  }

  /// All text that was written so far, with its codes.
  var text: String { String(decoding: written.withLock { $0 }, as: UTF8.self) }
  /// The settings of the terminal.
  var mode: Terminal.Mode? { terminal.mode }

  func type(_ text: String) throws {
    try terminal.own.writeFully(Array(text.utf8))
  }

  /// Waits until the text was written.
  func shows(_ text: String) throws {
    let found = written.wait(until: .now + patience) { bytes in
      String(decoding: bytes, as: UTF8.self).contains(text) ? true : nil
    }
    guard found != nil else { throw TooLate(description: "'\(text)' in '\(self.text)'") }
  }

  func wait() throws -> ChildStatus {
    try hasEnded.withLock { hasEnded in
      let status = try child.wait()
      hasEnded = true
      return status
    }
  }
}
