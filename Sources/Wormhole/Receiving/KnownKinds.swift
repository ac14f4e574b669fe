/// The kinds of messages that were read and left in the inbox: a number for each message.
struct KnownKinds: Hashable {
  private var numbers: [Int: Int] = [:]
  private var numberOfKind: [MessageLabel: Int] = [:]
  private var names: [MessageLabel] = []

  var isEmpty: Bool { numbers.isEmpty }
  var count: Int { numbers.count }

  func kind(of name: MessageName) -> MessageLabel? {
    guard !isEmpty else { return nil }
    return numbers[name.digest].map { names[$0] }
  }

  mutating func note(_ kind: MessageLabel, of name: MessageName) {
    let number = numberOfKind[kind] ?? names.count
    if number == names.count {
      numberOfKind[kind] = number
      names.append(kind)
    }
    numbers[name.digest] = number
  }

  mutating func forget(_ name: MessageName) {
    if !isEmpty { numbers[name.digest] = nil }
  }

  /// Returns the messages that a listing may leave out: messages of unwanted kinds, and messages of
  /// some senders.
  func skipping(
    but isWanted: (MessageLabel) -> Bool, senders: Set<String>
  ) -> InboxListing.Exclusions {
    let unwanted = names.indices.filter { !isWanted(names[$0]) }
    return InboxListing.Exclusions(
      kinds: unwanted.isEmpty ? [:] : numbers, unwanted: Set(unwanted), senders: senders)
  }
}
