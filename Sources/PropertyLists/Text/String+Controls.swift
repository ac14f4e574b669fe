/// Names that others have chosen, where people read them.
extension Unicode.Scalar {
  /// Whether a terminal does something for it but show it, or some program takes it for the end of
  /// a line.
  package var isControl: Bool {
    switch value {
    case 0..<0x20, 0x7F...0x9F, 0x2028, 0x2029: true
    default: false
    }
  }

  /// As it is written in JSON where it is a control character.
  var escaped: String {
    switch self {
    case "\n": return "\\n"
    case "\r": return "\\r"
    case "\t": return "\\t"
    default:
      let digits = String(value, radix: 16)
      return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    }
  }
}

extension String {
  /// With such characters written as JSON writes them.
  package var withoutControls: String {
    guard unicodeScalars.contains(where: \.isControl) else { return self }
    var text = ""
    for scalar in unicodeScalars {
      if scalar.isControl { text += scalar.escaped } else { text.unicodeScalars.append(scalar) }
    }
    return text
  }
}
