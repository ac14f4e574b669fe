/// The typed input: key by key on a terminal, and otherwise line by line.
struct TypedInput {
  let isTerminal: Bool
  /// The bytes of a line that has no line feed yet.
  private(set) var bytes: [UInt8] = []
  private(set) var hasEnded = false
  /// The bytes of an incomplete key of several bytes, as of an arrow.
  private var key: [UInt8] = []

  init(isTerminal: Bool) { self.isTerminal = isTerminal }

  var prompt: String { String(decoding: bytes, as: UTF8.self) }

  /// Takes more bytes, and returns the lines that have become complete.
  mutating func lines(adding more: [UInt8]) -> [String] {
    var lines: [String] = []
    for byte in more {
      if isTerminal, takeKey(byte, &lines) { continue }
      switch byte {
      case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
        lines.append(prompt)
        bytes = []
      case 0x08 where isTerminal, 0x7F where isTerminal: eraseLast()
      case 0x04 where isTerminal: hasEnded = hasEnded || bytes.isEmpty
      case 0x15 where isTerminal: bytes = []
      case ..<0x20 where isTerminal: break
      default: if bytes.count < 200 { bytes.append(byte) }
      }
    }
    return lines
  }

  /// Takes a byte of a key that begins with an escape; an arrow is a line with its name.
  private mutating func takeKey(_ byte: UInt8, _ lines: inout [String]) -> Bool {
    guard byte == 0x1B || !key.isEmpty else { return false }
    key.append(byte)
    switch key {
    case [0x1B], [0x1B, UInt8(ascii: "[")], [0x1B, UInt8(ascii: "O")]: return true
    default: break
    }
    // A longer key has digits before its last byte, and no meaning here.
    if key.count < 8, byte < 0x40 { return true }
    let arrows = Array("ABCD".utf8)
    if key.count == 3, let index = arrows.firstIndex(of: byte) {
      lines.append(["up", "down", "right", "left"][index])
    }
    key = []
    return true
  }

  /// Removes all bytes of the last character.
  private mutating func eraseLast() {
    while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
  }
}
