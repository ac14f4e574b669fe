internal import SharedContainer
internal import Syscalls

/// Ids that senders have chosen: a member can be sent only one message at a time under one, by one
/// sender.
///
/// Each has a second name in the receiver's `files/`, `id,<id>,<from>`, for as long as it is on its
/// way; see ``MemberDirectory/place(_:as:in:durability:unique:isOver:)``.
extension MessageName {
  static let uniquePrefix = "id,"

  var unique: String { "\(Self.uniquePrefix)\(escapedIdentifier),\(escapedSender)" }

  /// Whether somebody may have chosen the id; those that nobody has chosen are 16 digits, and need
  /// no second name.
  var mayBeChosen: Bool {
    var digits = 0
    for byte in text.utf8.dropFirst(27) {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "a")...UInt8(ascii: "f"):
        digits += 1
      case UInt8(ascii: ","): return digits != 16
      default: return true
      }
    }
    return true
  }
}

extension MemberDirectory {
  /// Whether no message has this second name.
  func isOver(_ unique: String) throws(Errno) -> Bool {
    var isThere = false
    try forEachMessage { if $0.name.unique == unique { isThere = true } }
    return !isThere
  }

  /// Ends a message, and gives its second name back if it has one.
  ///
  /// - Parameter end: answers whether it has ended.
  func ending(
    _ name: MessageName, _ file: String, in part: Part, _ end: () throws(Errno) -> Bool
  ) throws(Errno) -> Bool {
    guard name.mayBeChosen else { return try end() }
    let status = try? status(of: file, in: part)
    guard try end() else { return false }
    if let status { release(name.unique, of: status) }
    return true
  }
}

extension Wormhole {
  /// Gives back what the dead have left of ids to a member.
  func sweepIdentifiers(of home: MemberDirectory) {
    do throws(Errno) {
      try home.sweepUnique {
        $0.begins(with: MessageName.uniquePrefix)
      } isOver: { (name) throws(Errno) in
        try home.isOver(name)
      }
    } catch {
      log(
        .notice, "could not sweep the ids of messages to '\(home.name)': \(error)",
        about: LogSubject(member: home.name), because: error)
    }
  }
}
