import WormholeLibC
import Synchronization
internal import WormholeCLinux

/// A terminal that this process provides to a program.
///
/// Both ends are close-on-exec: a program has only the end that it is started with.
package final class PseudoTerminal: Sendable {
  /// The end of this process: it reads the output of the program, and writes the typed input.
  ///
  /// Once no process has the program's end open, reading fails with ``Errno/inputOutput``.
  package let own: Descriptor
  /// The number of the program's end, to pass to a child; valid only until the end is closed.
  package let programEnd: CInt
  private let program: Mutex<Descriptor?>

  /// Makes a terminal.
  ///
  /// - Parameter isForOutput: whether the terminal is raw, so that bytes arrive as the program has
  ///   written them, and reading at this process's end fails with ``Errno/wouldBlock`` instead of
  ///   waiting.
  package init(columns: Int = 80, rows: Int = 24, isForOutput: Bool = false) throws(Errno) {
    var ends: [CInt] = [-1, -1]
    _ = try perform(.open, "/dev/ptmx") {
      linux_pseudo_terminal(CInt(rows), CInt(columns), isForOutput ? 1 : 0, &ends)
    }
    own = Descriptor(adopting: ends[0])
    programEnd = ends[1]
    program = Mutex(Descriptor(adopting: ends[1]))
  }

  /// Closes the copy of the program's end, so that reading ends with the program.
  package func closeProgramEnd() { program.withLock { $0 = nil } }

  /// The present settings; nil if this process has closed the program's end.
  package var mode: Terminal.Mode? {
    program.withLock { program in
      var settings = termios()
      guard program != nil, tcgetattr(programEnd, &settings) == 0 else { return nil }
      return Terminal.Mode(settings: settings)
    }
  }
}
