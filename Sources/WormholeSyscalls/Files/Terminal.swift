import WormholeLibC

/// The terminal behind a standard stream.
package enum Terminal {
  /// Returns the terminal's number of columns and rows; nil if the size is unknown.
  package static func size(of stream: StandardStream) -> (columns: Int, rows: Int)? {
    var size = winsize()
    guard ioctl(stream.rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// The input settings of a terminal, saved for a later restore.
  package struct Mode: Sendable, Equatable {
    let settings: termios

    /// Whether both settings treat input and output alike.
    package static func == (left: Mode, right: Mode) -> Bool {
      let (left, right) = (left.settings, right.settings)
      return left.c_iflag == right.c_iflag && left.c_oflag == right.c_oflag
        && left.c_lflag == right.c_lflag
    }
  }

  /// Makes the terminal deliver each key when it is pressed, and echo none; keys for signals still
  /// send signals.
  ///
  /// - Returns: the previous settings.
  package static func takeKeys(of stream: StandardStream) throws(Errno) -> Mode {
    var settings = termios()
    guard tcgetattr(stream.rawValue, &settings) == 0 else { throw Errno.current }
    let before = Mode(settings: settings)
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
    guard tcsetattr(stream.rawValue, TCSADRAIN, &settings) == 0 else { throw Errno.current }
    return before
  }

  /// Restores the previous settings, without waiting for a terminal that no longer takes output.
  package static func restore(_ mode: Mode, of stream: StandardStream) {
    var settings = mode.settings
    // The kernel would suspend a background process for this call.
    var signals = sigset_t()
    var before = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTTOU)
    pthread_sigmask(SIG_BLOCK, &signals, &before)
    tcsetattr(stream.rawValue, TCSANOW, &settings)
    pthread_sigmask(SIG_SETMASK, &before, nil)
  }
}
