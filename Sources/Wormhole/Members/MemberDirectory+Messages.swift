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
  func forEachMessage(_ body: (MessagePlace) -> Void) throws(Errno) {
    try look { () throws(Errno) in
      try list(.inbox) { if let name = MessageName($0) { body(.waiting(name)) } }
      try forEachInHand { body(.inHand($0)) }
      return false
    }
  }

  /// Where a message is; nil if it has ended.
  func place(of name: MessageName) throws(Errno) -> MessagePlace? {
    var place: MessagePlace?
    try look { () throws(Errno) in
      if try status(of: name.text, in: .inbox) != nil {
        place = .waiting(name)
      } else {
        try forEachInHand { if $0.name == name { place = .inHand($0) } }
      }
      return place != nil
    }
    return place
  }

  private func forEachInHand(_ body: (ClaimedName) -> Void) throws(Errno) {
    try list(.claimed) { file in
      if let claimed = ClaimedName(String(cString: file)) { body(claimed) }
    }
  }

  /// Looks at what waits and then at what is in hand, the direction in which messages move.
  ///
  /// But one may also be put back, or come to its next attempt, and a listing may miss a name that
  /// changes: so, where a name has come or gone meanwhile, all is looked at again, three times at
  /// most.
  ///
  /// - Parameter isEnough: looks, and answers whether that is enough whatever has changed.
  private func look(_ isEnough: () throws(Errno) -> Bool) throws(Errno) {
    for _ in 0..<3 {
      // Stamps are of the last tick of the system's clock.
      let begin = Clocks.sinceEpoch - 20_000_000
      if try isEnough() { return }
      let changes = try [lastChange(of: .inbox), lastChange(of: .claimed)]
      guard changes.contains(where: { $0 ?? .min >= begin }) else { return }
    }
  }
}
