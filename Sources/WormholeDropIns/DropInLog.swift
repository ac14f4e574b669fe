public import Wormhole
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The log of the drop-in modules, for failures that the originals' calls cannot report.
///
/// A call that is declared without `throws` can only do nothing if it fails. Because users could
/// only guess otherwise, each failure of this kind adds a line to the log: on standard error,
/// unless the program sets a destination of its own.
public enum DropInLog {
  private static let hook = Monitor(Hook(tell: standard))

  /// A wrapper for a closure that is read under a lock: see ``Monitor`` for the reason.
  private struct Hook: Sendable { let tell: LogHook }

  /// Sends entries to a closure instead of standard error; nil restores standard error.
  ///
  /// The closure is called on the thread in which the failure occurs, and must not wait.
  public static func redirect(to hook: LogHook?) {
    let hook = Hook(tell: hook ?? standard)
    let gone = Self.hook.withLock { exchange(&$0, with: hook) }
    // Released without holding the lock, because its objects may use the log when they end.
    _ = gone
  }

  package static func tell(_ entry: LogEntry) { hook.withLock { $0 }.tell(entry) }

  package static func tell(_ level: LogLevel, _ text: String) { tell(LogEntry(level, text)) }

  /// Logs an error that no caller receives.
  package static func tell(_ level: LogLevel, _ error: any Error) {
    var entry = LogEntry(level, "\(error)")
    entry.take(error)
    tell(entry)
  }

  /// Returns the result of the body; nil if the body has failed, which the log reports.
  @discardableResult
  package static func attempt<Result>(_ body: () throws -> Result) -> Result? {
    do {
      return try body()
    } catch {
      tell(.error, error)
      return nil
    }
  }

  private static let standard: LogHook = { entry in
    guard entry.level == .error || entry.level == .warning else { return }
    // A failure to write to the log cannot be reported anywhere.
    try? StandardStream.error.write("wormhole: \("\(entry)".withoutControls)\n")
  }
}
