/// What a transfer is called: 16 hexadecimal digits, of which the first five are those of the
/// version of what is paired that its sender knew.
///
/// They look like those that nobody has chosen, and come as seldom twice: so they cost no second
/// name that keeps others away.
enum TransferIdentifier {
  private static let versionBits = 20

  static func random(version: Int) -> String {
    let number = UInt64.random(in: .min ... .max) >> UInt64(versionBits)
    let digits = String(
      UInt64(truncatingIfNeeded: version) << UInt64(64 - versionBits) | number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Whether its sender knew no later version than this one.
  ///
  /// The digits go round; nobody is half a million changes of what is paired behind.
  static func isKnown(_ id: String, at version: Int) -> Bool {
    guard version >= 0, id.utf8.count == 16, let number = UInt64(id, radix: 16) else {
      return false
    }
    let all = UInt64(1) << UInt64(versionBits)
    let ahead = (number >> UInt64(64 - versionBits) &- UInt64(version)) & (all - 1)
    return ahead == 0 || ahead > all / 2
  }
}
