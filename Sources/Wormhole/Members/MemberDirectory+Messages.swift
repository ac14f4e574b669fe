internal import SharedContainer
internal import Syscalls

/// Messages that have not ended, looked for from outside.
extension MemberDirectory {
  /// Where a message is that has not ended.
  enum MessagePlace: Hashable {
    case waiting(MessageName)
    case inHand(ClaimedName)

    var name: MessageName {
      switch self {
      case .waiting(let name): name
      case .inHand(let claimed): claimed.name
      }
    }
  }

  /// Calls the body with each message that waits or is in hand; with one that moves meanwhile more
  /// than once, perhaps, at last with where it was found last.
  ///
  /// Looked for in the direction in which messages move. But one may also be put back, or come to
  /// its next attempt, and a listing may miss a name that changes: so, where a name has come or
  /// gone meanwhile, all is looked at again, three times at most.
  func forEachMessage(_ body: (MessagePlace) -> Void) throws(Errno) {
    for _ in 0..<3 {
      // Stamps are of the last tick of the system's clock.
      let begin = Clocks.sinceEpoch - 20_000_000
      try list(.inbox) { if let name = MessageName($0) { body(.waiting(name)) } }
      try list(.claimed) { file in
        if let claimed = ClaimedName(String(cString: file)) { body(.inHand(claimed)) }
      }
      let changes = try [lastChange(of: .inbox), lastChange(of: .claimed)]
      guard changes.contains(where: { $0 ?? .min >= begin }) else { return }
    }
  }
}
