/// A breach of a house rule.
struct Finding: Equatable, CustomStringConvertible {
  let path: String
  let line: Int
  let message: String

  var description: String { "\(path):\(line): \(message)" }
}

/// A house rule, which returns its findings for one file.
struct Rule: Sendable {
  let name: String
  let check: @Sendable (SourceFile) -> [(line: Int, message: String)]

  init(_ name: String, check: @escaping @Sendable (SourceFile) -> [(line: Int, message: String)]) {
    self.name = name
    self.check = check
  }

  /// A rule that checks each line alone.
  init(
    _ name: String, in lines: @escaping @Sendable (SourceFile) -> [String],
    eachLine: @escaping @Sendable (String, SourceFile) -> String?
  ) {
    self.init(name) { file in
      lines(file).enumerated().compactMap { index, line in
        eachLine(line, file).map { (index + 1, $0) }
      }
    }
  }

  /// A rule that checks each word of a line of code, and reports one word at most.
  init(
    _ name: String, eachWord: @escaping @Sendable (Word, SourceFile) -> String?
  ) {
    self.init(name) { file in
      file.words.enumerated().compactMap { index, words in
        words.lazy.compactMap { eachWord($0, file) }.first.map { (index + 1, $0) }
      }
    }
  }

  func findings(in file: SourceFile) -> [Finding] {
    check(file).map { Finding(path: file.path, line: $0.line, message: $0.message) }
  }
}

extension Rule {
  static let all = [
    imports, testing, calls, fileCalls, timers, sleeps, blocking, expectations, lineLength,
    whitespace, fileLength, debris, printing, bytes, deadCode, documentation, reasons, monitors,
    fileNames, machinePaths, hosts, clocks,
  ]
}

/// A word of a line of code, with its surroundings.
struct Word {
  let text: Substring
  /// The word before the dot before it, "" for a dot after something else, nil without a dot.
  let owner: Substring?
  let previous: Substring?
  let isCalled: Bool
  /// Whether the first argument of the call has a label, as no C function's has.
  let hasLabel: Bool

  // On bytes, as a file has many lines: a byte beyond ASCII counts as a letter.
  static func words(of line: String) -> [Word] {
    var words: [Word] = []
    let bytes = line.utf8
    var rest = line[...].utf8
    var previous: Substring?
    var before: UInt8?
    while let first = rest.first {
      guard isLetter(first) else {
        if first != UInt8(ascii: " ") { before = first }
        rest.removeFirst()
        continue
      }
      let text = Substring(rest.prefix(while: isInWord))
      rest = rest[text.endIndex...]
      let isCalled = rest.first == UInt8(ascii: "(")
      let argument = rest.dropFirst().prefix(while: isInWord)
      let hasLabel =
        isCalled && !argument.isEmpty && argument.endIndex < bytes.endIndex
        && bytes[argument.endIndex] == UInt8(ascii: ":")
      words.append(
        Word(
          text: text, owner: before == UInt8(ascii: ".") ? (previous ?? "") : nil,
          previous: previous, isCalled: isCalled, hasLabel: hasLabel))
      previous = text
      before = nil
    }
    return words
  }

  /// The word at the start of the text; nil if the text begins with another character.
  static func prefix(of text: Substring.UTF8View) -> Substring? {
    guard let first = text.first, isLetter(first) else { return nil }
    return Substring(text.prefix(while: isInWord))
  }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (byte | 0x20) &- UInt8(ascii: "a") < 26 || byte == UInt8(ascii: "_") || byte >= 0x80
  }

  private static func isInWord(_ byte: UInt8) -> Bool {
    isLetter(byte) || byte &- UInt8(ascii: "0") < 10
  }
}
