import Glibc

/// The terminal behind a standard stream.
package enum Terminal {
  /// How many columns and rows it has; nil if nobody can tell.
  package static func size(of stream: StandardStream) -> (columns: Int, rows: Int)? {
    var size = winsize()
    guard ioctl(stream.rawValue, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// How a terminal treats what is typed, to be put back as it was.
  package struct Mode: Sendable {
    fileprivate let settings: termios
  }

  /// Hands over each key when it is pressed, and shows none; keys that send signals still do.
  ///
  /// - Returns: what was so before.
  package static func takeKeys(of stream: StandardStream) throws(Errno) -> Mode {
    var settings = termios()
    guard tcgetattr(stream.rawValue, &settings) == 0 else { throw Errno.current }
    let before = Mode(settings: settings)
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
    guard tcsetattr(stream.rawValue, TCSADRAIN, &settings) == 0 else { throw Errno.current }
    return before
  }

  /// Puts back what was so before, without waiting for a terminal that takes nothing any more.
  package static func restore(_ mode: Mode, of stream: StandardStream) {
    var settings = mode.settings
    // A process in the background would be stopped for this.
    var signals = sigset_t()
    var before = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, SIGTTOU)
    pthread_sigmask(SIG_BLOCK, &signals, &before)
    tcsetattr(stream.rawValue, TCSANOW, &settings)
    pthread_sigmask(SIG_SETMASK, &before, nil)
  }
}
