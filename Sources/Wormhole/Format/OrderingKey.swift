internal import WormholeContainerStorage

/// The ordering key of a message in a queue, as in the name of its file: 48 bits of a hash.
///
/// The messages of two keys with the same bits are handled as those of one key, which is slower and
/// nothing else.
package struct OrderingKey: Hashable, Sendable {
  let digits: UInt64

  /// How many hexadecimal digits a name contains.
  static let size = 12
  /// The largest size of a key in bytes.
  static let longest = 256

  init(digits: UInt64) { self.digits = digits }

  package init(of key: String) {
    let hash = FowlerHash.hash(key.utf8)
    digits = (hash ^ hash >> 48) & 0xffff_ffff_ffff
  }

  /// Checks the key of a message that is sent.
  static func check(
    _ key: String, _ operation: @autoclosure () -> String, _ peer: String
  ) throws(WormholeError) {
    let size = key.utf8.count
    guard !(1...longest).contains(size) else { return }
    throw WormholeError(
      .invalidName, operation(), peer,
      because: "the ordering key has \(size) bytes, and the limits are 1 and \(longest)",
      hint: "use a short text, as the customer's number")
  }
}
