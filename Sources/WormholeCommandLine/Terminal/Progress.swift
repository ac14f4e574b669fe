internal import WormholeSyscalls

/// The progress of long work, on standard error, if that is a terminal.
///
/// One line is written again and again, ten times a second at most, and removed at the end.
package final class Progress: Sendable {
  private struct State {
    var isShown = false
    var last = Instant(nanoseconds: 0)
  }

  private let state = Monitor(State())
  private let isWanted: Bool
  private let output: Output

  package init(_ output: Output) {
    self.output = output
    isWanted = !output.isQuiet && !output.isJSON && StandardStream.error.isTerminal
  }

  /// Shows the present part of the work.
  ///
  /// - Parameter always: whether the words are shown however soon they follow others.
  package func show(_ words: @autoclosure () -> String, always: Bool = false) {
    guard isWanted else { return }
    state.withLock { state in
      guard always || Instant.now - state.last > .milliseconds(100) else { return }
      (state.isShown, state.last) = (true, .now)
      try? StandardStream.error.write("\r\u{1B}[K\(words())")
    }
  }

  /// Removes the line, before other output.
  package func clear() {
    guard isWanted else { return }
    state.withLock { state in
      if state.isShown { try? StandardStream.error.write("\r\u{1B}[K") }
      state.isShown = false
    }
  }

  /// Removes the line, and reports the result: in a terminal, otherwise only with `--verbose`.
  package func finish(_ words: String) {
    clear()
    isWanted ? output.tell(words) : output.explain(words)
  }
}
