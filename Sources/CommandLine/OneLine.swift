import PropertyLists

extension PropertyListValue {
  /// On one line: a string as it is unless it would take more than one, or none; else as JSON.
  package func inOneLine() throws -> String {
    if case .string(let text) = self, Self.fits(text) { return text }
    return try JSONPropertyList.encode(self, limits: .output)
  }

  private static func fits(_ text: String) -> Bool {
    !text.isEmpty && !text.unicodeScalars.contains(where: \.isControl)
  }
}

extension String {
  /// A name on one line of a list: as it is, or as JSON where it holds control characters.
  package func inOneLine() throws -> String { try PropertyListValue.string(self).inOneLine() }
}
