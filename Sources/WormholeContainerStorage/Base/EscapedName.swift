/// The mapping between names that users choose and file names.
///
/// Letters, digits, `-`, `_` and `.` are unchanged, except for a leading dot; every other byte of
/// the UTF-8 is written `%XX` with capital digits. Each name has exactly one escaped form, so two
/// names never share a file, and a file name in any other form is foreign.
package enum EscapedName {
  /// The longest escaped form.
  ///
  /// File names of queued messages contain an escaped name and 60 other bytes, and a file system
  /// permits 255.
  package static let limit = 180

  package enum Problem: Error, Equatable {
    case empty
    case tooLong(escaped: Int)
  }

  package static func escape(
    _ name: String, allowance: Int = 0
  ) throws(Problem) -> String {
    guard !name.isEmpty else { throw .empty }
    if isPlain(name) {
      let length = name.utf8.count - allowance
      guard length <= limit else { throw .tooLong(escaped: length) }
      return name
    }
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

  /// Returns the name for a file name; nil if no name has this escaped form.
  package static func unescape(_ file: String, allowance: Int = 0) -> String? {
    var bytes: [UInt8] = []
    var rest = file.utf8[...]
    guard !rest.isEmpty, rest.count <= limit + allowance else { return nil }
    if isPlain(file) { return file }
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

  /// Whether a name is its own escaped form, as nearly all names are.
  private static func isPlain(_ name: String) -> Bool {
    var name = name
    return name.withUTF8 { bytes in
      for index in 0..<bytes.count where !isPlain(bytes[index], first: index == 0) { return false }
      return true
    }
  }

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
