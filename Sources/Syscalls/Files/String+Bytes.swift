/// Texts as the kernel has them: paths, names and variables are bytes.
///
/// To Swift a slash and an accent after it are one letter, which is no slash, and two spellings of
/// one letter are the same. So what is looked for in such a text is looked for in its bytes.
extension StringProtocol {
  package func begins(with start: String) -> Bool { utf8.starts(with: start.utf8) }

  package func ends(with end: String) -> Bool {
    utf8.suffix(end.utf8.count).elementsEqual(end.utf8)
  }

  /// What stands between the places where a separator is.
  ///
  /// - Parameters:
  ///   - most: after how many separators the rest is one part.
  ///   - keepingEmpty: whether nothing between two of them is a part, too.
  package func parts(
    between separator: Unicode.Scalar, most: Int = .max, keepingEmpty: Bool = false
  ) -> [String] {
    utf8.split(
      separator: UInt8(ascii: separator), maxSplits: most, omittingEmptySubsequences: !keepingEmpty
    ).map { String(decoding: $0, as: UTF8.self) }
  }
}
