internal import Syscalls

/// What a listing of an inbox shows: the first so many, however many there are.
///
/// A million names would take a hundred megabytes. What comes after those that are kept is listed
/// again when they are gone, so each name is read a few times at most.
struct InboxListing {
  /// What is known of the messages that nobody wants, or may have now.
  struct Skipping: Sendable {
    /// The kind of each message that was looked at, by the number that it has there.
    var kinds: [Int: Int] = [:]
    /// The kinds that nobody wants.
    var unwanted: Set<Int> = []
    /// Those of whom too much waits already.
    var senders: Set<String> = []

    fileprivate func skips(_ name: MessageName) -> Bool {
      if !senders.isEmpty, senders.contains(name.escapedSender) { return true }
      guard !unwanted.isEmpty, let kind = kinds[name.digest] else { return false }
      return unwanted.contains(kind)
    }
  }

  private let window: Int
  private let skipping: Skipping
  private var names: [MessageName] = []
  /// How many messages it has shown, with those that were skipped or are not kept.
  private(set) var shown = 0
  /// The last of those that are kept, if there are more; of what comes after it nothing is known.
  private(set) var end: MessageName?

  init(window: Int, skipping: Skipping = Skipping()) {
    self.window = window
    self.skipping = skipping
  }

  /// Takes note of a name as the kernel has it.
  mutating func add(_ text: UnsafePointer<CChar>) {
    if let end, end.precedes(text) { return shown += 1 }
    guard let name = MessageName(text) else { return }
    shown += 1
    guard !skipping.skips(name) else { return }
    names.append(name)
    if names.count >= 2 * window { cut() }
  }

  private mutating func cut() {
    names.sort()
    guard names.count > window else { return }
    names.removeLast(names.count - window)
    end = names.last
  }

  /// The names, in order.
  mutating func finish() -> [MessageName] {
    cut()
    return names
  }
}
