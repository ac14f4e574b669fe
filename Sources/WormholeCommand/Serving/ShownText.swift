import FoundationEssentials
import WormholeCommandLine
import WormholePropertyLists

/// Text of any origin as a page shows it: bounded, on one line, and without characters that hide or
/// move others.
///
/// The page inserts the text as text, never as markup. That does not suffice: a control character
/// that turns the direction of writing would make one value look like another.
struct ShownText {
  private(set) var text = ""
  private var left: Int
  /// Whether the text ends with the mark of a cut.
  private var isCut = false

  /// Cuts after so many characters of Unicode.
  static func of(_ text: String, most: Int = 120) -> String {
    var shown = ShownText(left: most)
    shown.add(text)
    return shown.text
  }

  /// Writes a value on one line: a string unchanged, anything else much as JSON.
  ///
  /// The time depends on the bound, and not on the size of the value.
  static func of(_ value: PropertyListValue, most: Int = 300) -> String {
    var shown = ShownText(left: most)
    if case .string(let text) = value { shown.add(text) } else { shown.add(value) }
    return shown.text
  }

  private init(left: Int) { self.left = left }

  private mutating func add(_ more: String) {
    guard !more.isEmpty, !isCut else { return }
    guard left > 0 else { return cut("…") }
    for scalar in more.unicodeScalars {
      guard left > 0 else { return cut("… (\(more.utf8.count) bytes)") }
      left -= 1
      switch scalar.properties.generalCategory {
      case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse,
        .unassigned:
        text += "⟨U+\(String(scalar.value, radix: 16, uppercase: true))⟩"
      default: text.unicodeScalars.append(scalar)
      }
    }
  }

  private mutating func cut(_ mark: String) {
    text += mark
    isCut = true
  }

  private mutating func add(_ value: PropertyListValue) {
    switch value {
    case .dictionary(let entries):
      // Keys are sorted only where few are: the order of a large dictionary is that of the machine.
      let keys = entries.count > 100 ? Array(entries.keys.prefix(100)) : entries.keys.sorted()
      add("{")
      for (index, key) in keys.enumerated() where left > 0 {
        add(index == 0 ? "" : ", ")
        add("\(key): ")
        add(entries[key]!)
      }
      add("}")
    case .array(let values):
      add("[")
      for (index, value) in values.prefix(left).enumerated() where left > 0 {
        add(index == 0 ? "" : ", ")
        add(value)
      }
      add("]")
    case .string(let text):
      add("\"")
      add(text)
      add("\"")
    case .data(let data): add("\(data.count) bytes of data")
    default: add((try? value.inOneLine()) ?? "?")
    }
  }
}
