internal import PropertyLists
internal import Syscalls
public import Wormhole

/// Where the drop-in modules tell of what their originals' calls have no way to report.
///
/// A call that is declared without `throws` can only do nothing when something is wrong. So that
/// nobody has to guess, each such failure is one line here: on standard error, unless the program
/// has its own place for it.
public enum DropInLog {
  private static let hook = Monitor(Hook(tell: standard))

  /// A closure that is looked at under a lock, which has to stand in something: see ``Monitor``.
  private struct Hook: Sendable { let tell: LogHook }

  /// Tells a closure instead of standard error; nil goes back to that.
  ///
  /// It is called on whatever thread meets the failure, and must not wait.
  public static func redirect(to hook: LogHook?) {
    let hook = Hook(tell: hook ?? standard)
    Self.hook.withLock { $0 = hook }
  }

  package static func tell(_ entry: LogEntry) { hook.withLock { $0 }.tell(entry) }

  package static func tell(_ level: LogLevel, _ text: String) { tell(LogEntry(level, text)) }

  /// Tells of an error that nobody else is told of.
  package static func tell(_ level: LogLevel, _ error: any Error) {
    var entry = LogEntry(level, "\(error)")
    entry.take(error)
    tell(entry)
  }

  private static let standard: LogHook = { entry in
    guard entry.level == .error || entry.level == .warning else { return }
    // Nobody can be told that there is nobody to tell.
    try? StandardStream.error.write("wormhole: \("\(entry)".withoutControls)\n")
  }
}
