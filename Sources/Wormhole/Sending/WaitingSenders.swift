/// How many files of each sender are claimed and wait: to be tried again, or to have their outcome
/// written.
struct WaitingSenders: Hashable {
  /// The limit for each sender.
  let limit: Int
  private var counts: [String: Int] = [:]
  /// Senders without further claims until fewer of their files wait.
  private(set) var heldBack: Set<String> = []

  init(limit: Int) { self.limit = limit }

  mutating func add(_ name: MessageName) {
    let sender = name.escapedSender
    let count = counts[sender, default: 0] + 1
    counts[sender] = count
    if count >= limit { heldBack.insert(sender) }
  }

  /// - Returns: whether the sender was held back, and is no longer.
  mutating func remove(_ name: MessageName) -> Bool {
    let sender = name.escapedSender
    let count = counts[sender, default: 0] - 1
    counts[sender] = count > 0 ? count : nil
    return count <= limit / 2 && heldBack.remove(sender) != nil
  }

  func isHeldBack(_ name: MessageName) -> Bool {
    !heldBack.isEmpty && heldBack.contains(name.escapedSender)
  }
}
