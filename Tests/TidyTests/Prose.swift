/// How much of a text consists of pronouns and similar words in place of a subject.
///
/// A sentence that names its subjects can be understood alone. The measure counts, for each
/// sentence of six words and more, the share of the words in ``standIns``. Inline code counts as
/// one word; code blocks, tables and link targets do not count.
struct Prose: Equatable {
  /// The sum of the shares of all sentences.
  private var sum = 0.0
  private(set) var sentences = 0
  private(set) var words = 0
  /// The sentences with a share of a third or more.
  private(set) var worst: [String] = []

  static let standIns: Set<Substring> = [
    "it", "that", "what", "one", "who", "they", "those", "whoever", "them", "others", "which",
    "there", "then", "so", "this", "other", "such", "something", "somebody", "nobody", "anybody",
    "these",
  ]

  /// The mean share of all sentences, in percent.
  var mean: Double { sentences == 0 ? 0 : 100 * sum / Double(sentences) }

  private static let leastWords = 6

  /// - Parameter place: the file and the line, for sentences above the limit.
  mutating func add(_ paragraph: String, at place: String) {
    for sentence in Self.sentences(of: paragraph) {
      let words = Self.words(of: sentence)
      guard words.count >= Self.leastWords else { continue }
      let count = words.count { Self.standIns.contains($0) }
      sentences += 1
      self.words += words.count
      sum += Double(count) / Double(words.count)
      if count * 3 >= words.count { worst.append("\(place): \(sentence)") }
    }
  }

  /// A sentence ends at a punctuation mark before white space.
  static func sentences(of paragraph: String) -> [String] {
    var found: [String] = []
    var sentence = ""
    var previous: Character = " "
    for character in paragraph {
      if character == " ", ".!?;:".contains(previous) {
        found.append(sentence)
        sentence = ""
      } else {
        sentence.append(character)
      }
      previous = character
    }
    return found + [sentence]
  }

  static func words(of sentence: String) -> [Substring] {
    var plain = ""
    var isCode = false
    for character in withoutTargets(sentence) {
      if character == "`" {
        isCode.toggle()
        if isCode { plain += " code " }
      } else if !isCode {
        plain.append(character)
      }
    }
    return plain.lowercased().split { !($0 >= "a" && $0 <= "z" || $0 == "'") }
  }

  /// The sentence without the parts of links that a reader does not see.
  private static func withoutTargets(_ sentence: String) -> String {
    var plain = ""
    var rest = sentence[...]
    while let start = rest.firstRange(of: "](") {
      plain += rest[..<start.lowerBound]
      guard let end = rest[start.upperBound...].firstIndex(of: ")") else { break }
      rest = rest[rest.index(after: end)...]
    }
    return plain + rest
  }
}

/// The paragraphs of a file, each with the number of its first line.
extension SourceFile {
  typealias Paragraph = (line: Int, text: String)

  /// The paragraphs of comments that have lines of their own.
  var commentParagraphs: [Paragraph] {
    var lines = self.lines.map { line -> String? in
      let text = line.drop { $0 == " " }
      guard text.hasPrefix("//") else { return nil }
      return String(text.drop { $0 == "/" }.drop { $0 == " " })
    }
    if lines.first??.hasPrefix("swift-tools-version") == true { lines[0] = nil }
    return Self.paragraphs(lines)
  }

  /// Those of an article.
  var articleParagraphs: [Paragraph] {
    Self.paragraphs(
      lines.map { line in
        let text = line.drop { $0 == " " }
        let isIndentedCode = line.hasPrefix("    ")
        return isIndentedCode || text.hasPrefix("@") || text.hasPrefix("<!--") ? "" : String(text)
      })
  }

  /// The paragraphs of the texts that a program prints: the text in quotes.
  var textParagraphs: [Paragraph] {
    var found: [Paragraph] = []
    var isOpen = false
    for (index, line) in lines.enumerated() {
      var text = ""
      for (character, (code, comment)) in zip(
        line.utf8, zip(self.code[index].utf8, comments[index].utf8))
      {
        let isText =
          code == UInt8(ascii: " ") && comment == UInt8(ascii: " ")
          && character != UInt8(ascii: "\\")
        text.unicodeScalars.append(isText && character < 128 ? Unicode.Scalar(character) : " ")
      }
      let isWhole = !self.code[index].contains { $0 != " " }
      let words = text.split(separator: " ").joined(separator: " ")
      if words.isEmpty || !isWhole { isOpen = false }
      guard !words.isEmpty else { continue }
      if isOpen {
        found[found.count - 1].text += " " + words
      } else {
        found.append((index + 1, words))
      }
      isOpen = isWhole
    }
    return found
  }

  /// - Parameter lines: nil where no text is.
  private static func paragraphs(_ lines: [String?]) -> [Paragraph] {
    var found: [Paragraph] = []
    var (isOpen, isFenced) = (false, false)
    for (index, line) in lines.enumerated() {
      guard var text = line else {
        (isOpen, isFenced) = (false, false)
        continue
      }
      if text.hasPrefix("```") {
        isFenced.toggle()
        text = ""
      }
      guard !isFenced, !text.isEmpty, !text.hasPrefix("|"), !text.hasPrefix("swift-format-") else {
        isOpen = false
        continue
      }
      if let item = Self.item(text) {
        text = item
        isOpen = false
      }
      if isOpen {
        found[found.count - 1].text += " " + text
      } else {
        found.append((index + 1, text))
      }
      isOpen = true
    }
    return found
  }

  /// The text of an item of a list, or of a heading; nil if the line begins neither.
  private static func item(_ line: String) -> String? {
    let mark = line.prefix { "-*+#>".contains($0) }
    let number = line.prefix { $0.isNumber }
    let rest: Substring
    if !mark.isEmpty {
      rest = line.dropFirst(mark.count)
    } else if !number.isEmpty, let dot = line.dropFirst(number.count).first, ".)".contains(dot) {
      rest = line.dropFirst(number.count + 1)
    } else {
      return nil
    }
    guard rest.first == " " else { return nil }
    return String(rest.drop { $0 == " " })
  }
}
