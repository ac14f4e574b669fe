internal import WormholeContainerStorage

/// The identifier of a transfer: 16 hexadecimal digits, of which the first five are the version of
/// the pairing that the sender knew.
///
/// The identifiers look like those that the library chooses, and collide as rarely. Therefore a
/// transfer needs no second name in the directory that reserves its identifier.
enum TransferIdentifier {
  private static let versionBits = 20

  static func random(version: Int) -> String {
    let number = UInt64.random(in: .min ... .max) >> UInt64(versionBits)
    return (UInt64(truncatingIfNeeded: version) << UInt64(64 - versionBits) | number).digits
  }

  /// Returns whether the sender knew no later version than the given one.
  ///
  /// The digits wrap around; no process is half a million changes of the pairing behind.
  static func isKnown(_ id: String, at version: Int) -> Bool {
    guard version >= 0, id.utf8.count == 16, let number = UInt64(id, radix: 16) else {
      return false
    }
    let all = UInt64(1) << UInt64(versionBits)
    let ahead = (number >> UInt64(64 - versionBits) &- UInt64(version)) & (all - 1)
    return ahead == 0 || ahead > all / 2
  }
}
