import WormholeLibC

/// Texts in the kernel's form: paths, names and variables are bytes.
///
/// To Swift a slash and a combining accent after it are one character, which is not a slash, and
/// two spellings of a character are equal. A search in a kernel text therefore compares bytes.
extension StringProtocol {
  // Inlinable, or a command would look for the conformances of an unspecialized call as it starts.
  @inlinable
  package func begins(with start: String) -> Bool { utf8.starts(with: start.utf8) }

  package func ends(with end: String) -> Bool {
    utf8.suffix(end.utf8.count).elementsEqual(end.utf8)
  }

  /// Returns the parts of the text between the separators.
  ///
  /// - Parameters:
  ///   - most: the number of separators after which the rest is a single part.
  ///   - keepingEmpty: whether an empty text between two separators is a part, too.
  package func parts(
    between separator: Unicode.Scalar, most: Int = .max, keepingEmpty: Bool = false
  ) -> [String] {
    utf8.split(
      separator: UInt8(ascii: separator), maxSplits: most, omittingEmptySubsequences: !keepingEmpty
    ).map { String(decoding: $0, as: UTF8.self) }
  }
}

extension UnsafePointer<CChar> {
  /// The number of bytes before the zero that ends the text.
  package var length: Int { strlen(self) }

  /// Compares the bytes of two texts; returns a negative number if this text is the lesser one, and
  /// 0 for equal texts.
  package func order(to other: UnsafePointer<CChar>) -> CInt { strcmp(self, other) }

  /// The text from the last byte of this value on; nil without this byte.
  package func last(of byte: UInt8) -> UnsafePointer<CChar>? {
    strrchr(self, CInt(byte)).map { UnsafePointer($0) }
  }
}

extension String {
  /// Calls the body with the bytes of a file name, and a zero after them, on the stack.
  ///
  /// For a name that several calls take: each conversion of a string to a pointer allocates memory.
  /// Inlinable, and public for that reason alone: see ``Monitor``.
  @inlinable public func withCName<Result, Failure: Error>(
    _ body: (UnsafePointer<CChar>) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let count = utf8.count
    return try withUnsafeTemporaryAllocation(of: CChar.self, capacity: count + 1) {
      buffer throws(Failure) in
      // In one piece: an iteration checks the form of the string at each byte.
      let copied: Void? = utf8.withContiguousStorageIfAvailable { bytes in
        UnsafeMutableRawBufferPointer(buffer).copyMemory(from: UnsafeRawBufferPointer(bytes))
      }
      if copied == nil {
        var place = 0
        for byte in utf8 {
          buffer[place] = CChar(bitPattern: byte)
          place += 1
        }
      }
      buffer[count] = 0
      return try body(UnsafePointer(buffer.baseAddress.unsafelyUnwrapped))
    }
  }
}
