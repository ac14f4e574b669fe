internal import WormholeSyscalls

/// The result of listing an inbox: the first names up to a limit, however many files exist.
///
/// A million names would take a hundred megabytes. The names after the limit are listed again when
/// the earlier ones are gone, so each name is read a few times at most.
struct InboxListing {
  /// The messages to skip: unwanted ones, and messages that no receiver may have now.
  struct Exclusions: Sendable {
    /// The number of each read message's kind, by the digest of the message's name.
    var kinds: [Int: Int] = [:]
    /// The numbers of kinds wanted by no receiver.
    var unwanted: Set<Int> = []
    /// Senders with too many waiting messages.
    var senders: Set<String> = []

    fileprivate func skips(_ name: MessageName) -> Bool {
      if !senders.isEmpty, senders.contains(name.escapedSender) { return true }
      guard !unwanted.isEmpty, let kind = kinds[name.digest] else { return false }
      return unwanted.contains(kind)
    }
  }

  private let window: Int
  private let skipping: Exclusions
  private var names: [MessageName] = []
  /// How many messages were shown, including skipped and dropped ones.
  private(set) var shown = 0
  /// The last kept name, if more exist; all names after it are unknown.
  private(set) var end: MessageName?

  init(window: Int, skipping: Exclusions = Exclusions()) {
    self.window = window
    self.skipping = skipping
  }

  /// Adds a name in the kernel's form.
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

  /// Returns the names in order.
  mutating func finish() -> [MessageName] {
    cut()
    return names
  }
}
