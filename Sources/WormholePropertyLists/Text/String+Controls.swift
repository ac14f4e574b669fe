/// Names chosen by other programs, in texts for people.
extension Unicode.Scalar {
  /// Whether a terminal does something for it but show it, or some program takes it for the end of
  /// a line.
  ///
  /// A bidirectional control changes the order in which a terminal shows the text around it, so a
  /// name that holds one can look like another name, and can move the words of an error.
  package var isControl: Bool {
    switch value {
    case 0..<0x20, 0x7F...0x9F, 0x2028, 0x2029: true
    case 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x2069: true
    default: false
    }
  }

  /// The form in JSON if the scalar is a control character.
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
  /// The text, with control characters written as in JSON.
  package var withoutControls: String {
    guard unicodeScalars.contains(where: \.isControl) else { return self }
    var text = ""
    for scalar in unicodeScalars {
      if scalar.isControl { text += scalar.escaped } else { text.unicodeScalars.append(scalar) }
    }
    return text
  }
}
