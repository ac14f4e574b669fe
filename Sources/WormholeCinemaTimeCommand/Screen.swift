import WormholeCommandLine
import WormholePropertyLists
import WormholeSyscalls

/// A terminal on which only changed lines are drawn; without a terminal, a line of output for each
/// change.
///
/// Only the main queue draws; a signal's thread may close the screen.
final class Screen: Sendable {
  private let output: Output
  let isTerminal: Bool
  /// Whether the output is a feed for another program.
  let isFeed: Bool
  private let isPlain: Bool
  private let state = Monitor(State())

  private struct State {
    var mode: Terminal.Mode?
    var isOpen = false
    var prompt = ""
    /// The content of each line.
    var drawn: [String] = []
    var size = (columns: 80, rows: 24)
    /// The last line that was written without a terminal.
    var last = ""
    var fed: [String: PropertyListValue]?
  }

  init(_ output: Output, isFeed: Bool = false) {
    self.output = output
    self.isFeed = isFeed
    isTerminal =
      !isFeed && !output.isJSON && StandardStream.output.isTerminal
      && StandardStream.input.isTerminal
    isPlain = !(Processes.environment("NO_COLOR") ?? "").isEmpty
  }

  /// The text that is being typed.
  var prompt: String {
    get { state.withLock { $0.prompt } }
    set { state.withLock { $0.prompt = newValue } }
  }

  /// Takes over the terminal, whose content returns when the screen is closed.
  func open() throws {
    guard isTerminal else { return }
    try state.withLock { state in
      do throws(Errno) {
        state.mode = try Terminal.takeKeys(of: .input)
      } catch {
        throw Failure(.software, "system", "cannot read keys from the terminal: \(error)")
      }
      state.isOpen = true
      try output.write(Array("\u{1B}[?1049h".utf8))
    }
  }

  /// Restores the terminal; a second call does nothing.
  func close() {
    state.withLock { state in
      guard state.isOpen else { return }
      state.isOpen = false
      try? StandardStream.output.write("\u{1B}[?1049l")
      if let mode = state.mode { Terminal.restore(mode, of: .input) }
    }
  }

  func show(_ view: View) throws {
    try state.withLock { state in
      if isTerminal { try draw(view.lines, &state) } else { try write(view, &state) }
    }
  }

  /// Draws lines that are made for a width.
  func show(_ lines: (_ columns: Int) -> [[View.Piece]]) throws {
    try state.withLock { try draw(lines, &$0) }
  }

  private func write(_ view: View, _ state: inout State) throws {
    if isFeed {
      let feed = view.feed
      guard feed != state.fed else { return }
      state.fed = feed
      // The clock is the same for all processes, so a reader can compare the times of both sides.
      return try output.write(feed.merging(["at": .integer(Clocks.sinceBoot)]) { $1 })
    }
    guard view.line != state.last else { return }
    state.last = view.line
    try output.isJSON ? output.write(view.object) : output.write(line: view.line)
  }

  private func draw(
    _ content: (_ columns: Int) -> [[View.Piece]], _ state: inout State
  ) throws {
    guard state.isOpen else { return }
    let size = Terminal.size(of: .output) ?? (80, 24)
    // After a change of size the position of the text on the terminal is unknown.
    if size != state.size { state.drawn = [] }
    state.size = size
    var lines = content(size.columns).map { render($0, within: size.columns) }
    lines = Array(lines.prefix(max(0, size.rows - 1)))
    let room = max(0, size.columns - 3)
    let typed = String(state.prompt.suffix(room))
    lines.append("> " + typed)
    var text = ""
    for row in 0..<max(lines.count, state.drawn.count) {
      let line = row < lines.count ? lines[row] : ""
      guard row >= state.drawn.count || state.drawn[row] != line else { continue }
      text += "\u{1B}[\(row + 1);1H\(line)\u{1B}[K"
    }
    if state.drawn.isEmpty { text += "\u{1B}[J" }
    state.drawn = lines
    text += "\u{1B}[\(lines.count);\(3 + typed.count)H"
    try output.write(Array(text.utf8))
  }

  /// Returns a line with its styles, cut at the terminal's width.
  private func render(_ pieces: [View.Piece], within columns: Int) -> String {
    var left = columns
    var line = ""
    for piece in pieces {
      let text = piece.text.prefix(left)
      left -= text.count
      switch piece.style {
      case _ where isPlain || text.isEmpty: line += text
      case .plain: line += text
      case .bold: line += "\u{1B}[1m\(text)\u{1B}[0m"
      case .dim: line += "\u{1B}[2m\(text)\u{1B}[0m"
      // A code is light on dark, whatever the ground of the terminal.
      case .code: line += "\u{1B}[38;5;231;48;5;16m\(text)\u{1B}[0m"
      }
    }
    return line
  }
}
