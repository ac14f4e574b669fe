import FoundationEssentials

/// A writer of one value as JSON.
struct JSONWriter {
  let isPretty: Bool
  private var text = ""
  private var escapesNextKey = false

  init(isPretty: Bool) { self.isPretty = isPretty }

  mutating func write(
    _ value: PropertyListValue, limits: PropertyListLimits
  ) throws(PropertyListError) -> String {
    var walk = TreeWalk(value, limits: limits)
    while let item = try walk.next() {
      startItem(item)
      switch item.step {
      case .open(.dictionary(let dictionary), _):
        escapesNextKey = JSONPropertyList.isReserved(dictionary)
        text += "{"
      case .open: text += "["
      case .close(isDictionary: true): text += "}"
      case .close: text += "]"
      case .leaf(let value): writeLeaf(value)
      }
      guard text.utf8.count <= limits.bytes else { throw .limit(.bytes, limits) }
    }
    if isPretty { text += "\n" }
    guard text.utf8.count <= limits.bytes else { throw .limit(.bytes, limits) }
    return text
  }

  private mutating func startItem(_ item: TreeWalk.Item) {
    if case .close = item.step {
      if isPretty, !item.isFirst { newLine(item.depth) }
      return
    }
    if item.depth > 0 {
      if !item.isFirst { text += "," }
      if isPretty { newLine(item.depth) }
    }
    if let key = item.key {
      Self.write(escapesNextKey ? "$" + key : key, to: &text)
      escapesNextKey = false
      text += isPretty ? ": " : ":"
    }
  }

  private mutating func newLine(_ depth: Int) {
    text += "\n"
    for _ in 0..<depth { text += "  " }
  }

  private mutating func writeLeaf(_ value: PropertyListValue) {
    switch value {
    case .string(BinaryWriter.null): text += "null"
    case .string(let value): Self.write(value, to: &text)
    case .integer(let value): text += String(value)
    case .unsigned(let value): text += String(value)
    case .boolean(let value): text += value ? "true" : "false"
    case .real(let value) where value.isFinite: text += "\(value)"
    case .real(let value): writeSpecial(JSONPropertyList.real, Self.name(value))
    case .data(let value): writeSpecial(JSONPropertyList.data, value.base64EncodedString())
    case .date(let value): writeDate(value)
    case .array, .dictionary: break
    }
  }

  private mutating func writeDate(_ date: Date) {
    let seconds = date.timeIntervalSinceReferenceDate
    // A text would lose the sign of the zero.
    if seconds != 0 || seconds.sign == .plus, let text = DateText.format(date) {
      writeSpecial(JSONPropertyList.date, text)
      return
    }
    if seconds.isFinite {
      text += "{\"\(JSONPropertyList.date)\":\(isPretty ? " " : "")\(seconds)}"
    } else {
      writeSpecial(JSONPropertyList.date, Self.name(seconds))
    }
  }

  private mutating func writeSpecial(_ key: String, _ value: String) {
    text += "{\"\(key)\":\(isPretty ? " " : "")\"\(value)\"}"
  }

  static func name(_ value: Double) -> String {
    value.isNaN ? "nan" : value < 0 ? "-inf" : "inf"
  }

  private static func write(_ string: String, to text: inout String) {
    text += "\""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "\"": text += "\\\""
      case "\\": text += "\\\\"
      case _ where scalar.isControl: text += scalar.escaped
      default: text.unicodeScalars.append(scalar)
      }
    }
    text += "\""
  }
}
