internal import WormholeContainerStorage
internal import WormholeSyscalls

/// IDs chosen by senders: under the same ID, a sender can send a member only one message at a time.
///
/// Each such message has a second name in the receiver's `files/`, `id,<id>,<from>`, until it is
/// settled; see ``MemberDirectory/place(_:as:in:durability:unique:isOver:)``.
extension MessageName {
  static let uniquePrefix = "id,"

  var unique: String { "\(Self.uniquePrefix)\(escapedIdentifier),\(escapedSender)" }

  /// Whether a sender may have chosen the ID.
  ///
  /// A generated ID has 16 digits and needs no second name.
  var mayBeChosen: Bool {
    var digits = 0
    for byte in text.utf8.dropFirst(27) {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"):
        digits += 1
      case UInt8(ascii: ","), UInt8(ascii: "~"): return digits != 16
      default: return true
      }
    }
    return true
  }
}

extension MemberDirectory {
  /// Whether no message has the second name.
  func isOver(_ unique: String) throws(Errno) -> Bool {
    var isThere = false
    try forEachMessage { if $0.name.unique == unique { isThere = true } }
    return !isThere
  }

  /// Settles a message, and removes its second name, if any.
  ///
  /// - Parameters:
  ///   - home: the directory that has the file, if another one: that of a worker.
  ///   - end: settles the message; returns whether it was settled.
  func ending(
    _ name: MessageName, _ file: String, in part: Part, of home: MemberDirectory? = nil,
    _ end: () throws(Errno) -> Bool
  ) throws(Errno) -> Bool {
    guard name.mayBeChosen else { return try end() }
    let status = try? (home ?? self).status(of: file, in: part)
    guard try end() else { return false }
    if let status { release(name.unique, of: status) }
    return true
  }
}
