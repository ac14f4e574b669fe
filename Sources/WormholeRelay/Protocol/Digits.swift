/// Numbers as the protocol writes them: digits alone, without sign and blanks.
enum Digits {
  /// Returns the number; nil for anything else, and for numbers beyond 64 bits.
  static func number(_ bytes: some Collection<UInt8>) -> UInt64? {
    guard !bytes.isEmpty else { return nil }
    var value: UInt64 = 0
    for byte in bytes {
      guard (0x30...0x39).contains(byte) else { return nil }
      let (product, overflow) = value.multipliedReportingOverflow(by: 10)
      let (sum, carried) = product.addingReportingOverflow(UInt64(byte - 0x30))
      guard !overflow, !carried else { return nil }
      value = sum
    }
    return value
  }

  static func number(_ text: String) -> UInt64? { number(text.utf8) }

  /// Returns the number if `Int` can hold it.
  static func int(_ bytes: some Collection<UInt8>) -> Int? { number(bytes).flatMap(Int.init) }
}

extension Int {
  /// The number, if `Int` can hold it.
  fileprivate init?(_ number: UInt64) { self.init(exactly: number) }
}

/// The rules for subjects, as far as the protocol's lines depend on them.
enum SubjectRules {
  /// Whether the subject can be written into a line: no blanks and no control characters.
  static func accepts(_ subject: String) -> Bool {
    !subject.isEmpty && subject.utf8.count <= 3000
      && !subject.utf8.contains { $0 <= 0x20 || $0 == 0x7F }
  }

  /// Returns the text as one part of a subject: other characters become underscores.
  static func part(_ text: String) -> String {
    let bytes = text.utf8.prefix(100).map { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, UInt8(ascii: "-"), UInt8(ascii: "_"): byte
      default: UInt8(ascii: "_")
      }
    }
    return bytes.isEmpty ? "_" : String(decoding: bytes, as: UTF8.self)
  }
}
