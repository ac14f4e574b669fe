internal import WormholeSyscalls

/// A terminal that shows one page of lines, drawn anew for each change.
///
/// The terminal's earlier content, and its input settings, return when the page is closed: by the
/// end of the command, by a signal, or by the key `q`.
package final class FullScreen: Sendable {
  private struct State {
    var mode: Terminal.Mode?
    var isOpen = false
    var isAsked = false
  }

  private let state = Monitor(State())

  package init() {}

  /// Takes over the terminal.
  package func open() throws {
    try Interruption.prepare { self.close() }
    try state.withLock { state throws(Failure) in
      do throws(Errno) {
        if StandardStream.input.isTerminal { state.mode = try Terminal.takeKeys(of: .input) }
        state.isOpen = true
        try StandardStream.output.write("\u{1B}[?1049h\u{1B}[?25l")
      } catch {
        throw Failure(.software, "system", "cannot take over the terminal: \(error)")
      }
    }
    guard StandardStream.input.isTerminal else { return }
    // Without a thread, only signals end the page.
    try? Thread("keys") { self.readKeys() }.detach()
  }

  private func readKeys() {
    while let keys = try? StandardStream.input.read(), !keys.isEmpty {
      // The byte 3 is Ctrl-C, where the terminal sends no signal for it.
      guard keys.contains(where: { [UInt8(ascii: "q"), UInt8(ascii: "Q"), 3].contains($0) }) else {
        continue
      }
      return state.signal { $0.isAsked = true }
    }
  }

  /// Restores the terminal; a second call does nothing.
  package func close() {
    state.withLock { state in
      guard state.isOpen else { return }
      state.isOpen = false
      try? StandardStream.output.write("\u{1B}[?25h\u{1B}[?1049l")
      if let mode = state.mode { Terminal.restore(mode, of: .input) }
    }
  }

  /// The number of columns and rows.
  package var size: (columns: Int, rows: Int) { Terminal.size(of: .output) ?? (80, 24) }

  /// Draws the lines that fit.
  package func draw(_ lines: [String]) throws {
    let size = size
    var text = "\u{1B}[H"
    let shown = lines.prefix(size.rows).map { TerminalStyle.cut($0, to: size.columns) }
    text += shown.joined(separator: "\u{1B}[K\r\n") + "\u{1B}[K\u{1B}[J"
    try state.withLock { state in
      guard state.isOpen else { return }
      do throws(Errno) {
        try StandardStream.output.write(text)
      } catch {
        if error == .brokenPipe { throw ClosedPipe() }
        throw Failure(.software, "system", "cannot write to the terminal: \(error)")
      }
    }
  }

  /// Waits for the end of the time, or for a change of the terminal's size; false if the user wants
  /// to end.
  package func wait(_ time: Duration) -> Bool {
    let (end, before) = (Instant.now + time, size)
    while Instant.now < end {
      let step = min(end, .now + .milliseconds(200))
      if state.wait(until: step, { $0.isAsked ? true : nil }) == true { return false }
      if size != before { return true }
    }
    return !state.withLock { $0.isAsked }
  }
}
