import WormholePropertyLists

extension PropertyListValue {
  /// Returns the value on one line: a nonempty string of one line unchanged, anything else as JSON.
  package func inOneLine() throws -> String {
    if case .string(let text) = self, Self.fits(text) { return text }
    return try JSONPropertyList.encode(self, limits: .output)
  }

  private static func fits(_ text: String) -> Bool {
    !text.isEmpty && !text.unicodeScalars.contains(where: \.isControl)
  }
}

extension String {
  /// Returns a name on one line of a list: unchanged, or as JSON if it contains control characters.
  package func inOneLine() throws -> String {
    // Nearly all names: nothing has to be compared or escaped.
    if !isEmpty, isPrintable { return self }
    return try PropertyListValue.string(self).inOneLine()
  }

  /// Whether all characters are printable ones of ASCII.
  private var isPrintable: Bool {
    func arePrintable(_ bytes: some Collection<UInt8>) -> Bool {
      bytes.allSatisfy { $0 >= 0x20 && $0 < 0x7f }
    }
    return utf8.withContiguousStorageIfAvailable(arePrintable) ?? arePrintable(utf8)
  }
}
