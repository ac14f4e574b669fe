/// How names of people's choosing become names of files, and back.
///
/// Letters, digits, `-`, `_` and `.` stand for themselves, but a leading dot does not; every other
/// byte of the UTF-8 is written `%XX` with capital digits. Each name has exactly one escaped form,
/// so two names never share a file, and whatever is in no such form is not ours.
package enum EscapedName {
  /// The longest escaped form.
  ///
  /// Names of queued messages carry one of these beside 60 other bytes,
  /// and a file system takes 255.
  package static let limit = 180

  /// What stands before a name of the user's, which may be as long behind it, in `system/`.
  private static let prefixes = [Slot.suitePrefix, "lock.", "wake."]

  /// How much longer than the limit the name of a slot may be.
  static func allowance(for name: String, in folder: Container.Folder) -> Int {
    guard folder == .system else { return 0 }
    return prefixes.first { name.utf8.starts(with: $0.utf8) }?.utf8.count ?? 0
  }

  package enum Problem: Error, Equatable {
    case empty
    case tooLong(escaped: Int)
  }

  package static func escape(
    _ name: String, allowance: Int = 0
  ) throws(Problem) -> String {
    guard !name.isEmpty else { throw .empty }
    var escaped: [UInt8] = []
    for byte in name.utf8 {
      if isPlain(byte, first: escaped.isEmpty) {
        escaped.append(byte)
      } else {
        escaped += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    let length = escaped.count - allowance
    guard length <= limit else { throw .tooLong(escaped: length) }
    return String(decoding: escaped, as: UTF8.self)
  }

  /// The name a file's name stands for; nil for one that no name has.
  package static func unescape(_ file: String, allowance: Int = 0) -> String? {
    var bytes: [UInt8] = []
    var rest = file.utf8[...]
    guard !rest.isEmpty, rest.count <= limit + allowance else { return nil }
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "%") {
        guard let high = rest.popFirst().flatMap(digits.firstIndex(of:)),
          let low = rest.popFirst().flatMap(digits.firstIndex(of:))
        else { return nil }
        let value = UInt8(high << 4 | low)
        guard !isPlain(value, first: bytes.isEmpty) else { return nil }
        bytes.append(value)
      } else {
        guard isPlain(byte, first: bytes.isEmpty) else { return nil }
        bytes.append(byte)
      }
    }
    return String(validating: bytes, as: UTF8.self)
  }

  private static let digits = Array("0123456789ABCDEF".utf8)

  private static func isPlain(_ byte: UInt8, first: Bool) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
      true
    case UInt8(ascii: "."):
      !first
    default:
      false
    }
  }
}
