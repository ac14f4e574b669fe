internal import WormholeSyscalls

extension String {
  /// The text as one word of a shell's command line, for commands in hints: unchanged, or in single
  /// quotes.
  ///
  /// A word that begins with a dash stays an option.
  package var shellWord: String {
    let isPlain =
      !isEmpty
      && utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
          UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...:
          true
        default: "-_.,:/@%+".utf8.contains(byte)
        }
      }
    if isPlain { return self }
    return "'" + parts(between: "'", keepingEmpty: true).joined(separator: "'\\''") + "'"
  }
}
