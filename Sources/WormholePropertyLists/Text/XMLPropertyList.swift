import FoundationEssentials

/// Property lists as XML, for files that people write and read.
///
/// The reader never reads anything outside the text: it accepts the usual document type without
/// looking it up, and refuses a document type with entities of its own. The format stores whole
/// seconds, so a date loses its fraction. Characters that XML cannot carry are refused, as are
/// dates outside the years 1 to 9999.
package enum XMLPropertyList {
  /// Reads a whole text.
  package static func decode(
    _ text: [UInt8], limits: PropertyListLimits = .default
  ) throws(PropertyListError) -> PropertyListValue {
    var reader = XMLReader(cursor: try TextCursor(text, limits: limits))
    return try reader.read()
  }

  /// Writes a text, with sorted keys.
  package static func encode(
    _ value: PropertyListValue, limits: PropertyListLimits = .default
  ) throws(PropertyListError) -> String {
    do {
      return try write(value, limits)
    } catch {
      var error = error
      error.isWriting = true
      throw error
    }
  }

  private static let heading = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
    "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">

    """

  private static func write(
    _ value: PropertyListValue, _ limits: PropertyListLimits
  ) throws(PropertyListError) -> String {
    var text = heading
    var walk = TreeWalk(value, limits: limits)
    while let item = try walk.next() {
      if case .close(let isDictionary) = item.step {
        if item.isFirst { continue }
        indent(item.depth, &text)
        text += isDictionary ? "</dict>\n" : "</array>\n"
        continue
      }
      indent(item.depth, &text)
      if let key = item.key {
        text += "<key>\(try escaped(key))</key>\n"
        indent(item.depth, &text)
      }
      switch item.step {
      case .open(.dictionary, let isEmpty): text += isEmpty ? "<dict/>\n" : "<dict>\n"
      case .open(_, let isEmpty): text += isEmpty ? "<array/>\n" : "<array>\n"
      case .leaf(let value): text += try element(value) + "\n"
      case .close: break
      }
      guard text.utf8.count <= limits.bytes else { throw .limit(.bytes, limits) }
    }
    text += "</plist>\n"
    guard text.utf8.count <= limits.bytes else { throw .limit(.bytes, limits) }
    return text
  }

  private static func indent(_ depth: Int, _ text: inout String) {
    for _ in 0..<depth { text += "\t" }
  }

  private static func element(_ value: PropertyListValue) throws(PropertyListError) -> String {
    switch value {
    case .string(let value): return "<string>\(try escaped(value))</string>"
    case .integer(let value): return "<integer>\(value)</integer>"
    case .unsigned(let value): return "<integer>\(value)</integer>"
    case .boolean(let value): return value ? "<true/>" : "<false/>"
    case .real(let value): return "<real>\(real(value))</real>"
    case .data(let value): return "<data>\(value.base64EncodedString())</data>"
    case .date(let value):
      guard let text = DateText.format(value, fraction: false) else {
        throw PropertyListError(.invalidValue, "a date outside the years 1 to 9999")
      }
      return "<date>\(text)</date>"
    case .array, .dictionary: return ""
    }
  }

  private static func real(_ value: Double) -> String {
    value.isFinite ? "\(value)" : value.isNaN ? "nan" : value < 0 ? "-infinity" : "+infinity"
  }

  private static func escaped(_ string: String) throws(PropertyListError) -> String {
    var text = ""
    for scalar in string.unicodeScalars {
      switch scalar {
      case "&": text += "&amp;"
      case "<": text += "&lt;"
      case ">": text += "&gt;"
      case "\r": text += "&#13;"
      default:
        guard isAllowed(scalar) else {
          throw PropertyListError(.invalidValue, "a character that XML does not allow")
        }
        text.unicodeScalars.append(scalar)
      }
    }
    return text
  }

  static func isAllowed(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0x9, 0xA, 0xD: true
    case ..<0x20, 0xFFFE, 0xFFFF: false
    default: true
    }
  }
}
