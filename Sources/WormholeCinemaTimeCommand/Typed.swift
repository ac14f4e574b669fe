/// The typed input: key by key on a terminal, and otherwise line by line.
struct Typed {
  let isTerminal: Bool
  /// The bytes of a line that has no line feed yet.
  private(set) var bytes: [UInt8] = []
  private(set) var hasEnded = false

  init(isTerminal: Bool) { self.isTerminal = isTerminal }

  var prompt: String { String(decoding: bytes, as: UTF8.self) }

  /// Takes more bytes, and returns the lines that have become complete.
  mutating func lines(adding more: [UInt8]) -> [String] {
    var lines: [String] = []
    for byte in more {
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

  /// Removes all bytes of the last character.
  private mutating func eraseLast() {
    while let last = bytes.popLast(), last & 0xC0 == 0x80 {}
  }
}
