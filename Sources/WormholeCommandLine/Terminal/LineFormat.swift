/// A user's format of an output line, with placeholders as in `mosquitto_sub -F`.
package struct LineFormat: Sendable {
  /// The fields of a line.
  package enum Placeholder: Character, CaseIterable, Sendable {
    case name = "t"
    case value = "p"
    case hexadecimal = "x"
    case capitalHexadecimal = "X"
    case length = "l"
    case object = "j"
    case time = "I"
    case unixTime = "U"
    case id = "m"
    case version = "v"
    case sender = "f"
    case kind = "k"
    case headers = "P"
    case attempt = "a"
    case redelivered = "r"
    case event = "e"

    fileprivate var help: String {
      switch self {
      case .name: "name: of the channel, the notice, the receiver, the queue or the subject"
      case .value: "value, as on a line without a format"
      case .hexadecimal: "bytes of the value as hexadecimal digits"
      case .capitalHexadecimal: "the same with capital digits"
      case .length: "number of bytes of the value"
      case .object: "object that --json writes"
      case .time: "time of writing the line, as in 2026-01-31T09:30:00.123Z"
      case .unixTime: "the same in seconds since 1970, with nine decimals"
      case .id: "ID of the message"
      case .version: "version of the channel"
      case .sender: "sender of the message, or writer of the value"
      case .kind: "kind of the message or of the event"
      case .headers: "headers of the message, as JSON"
      case .attempt: "number of the attempt"
      case .redelivered: "1 if the message may have been handled before, otherwise 0"
      case .event: "what has happened, as a word"
      }
    }
  }

  private enum Piece: Sendable {
    case text([UInt8])
    case field(Placeholder)
  }

  /// The table of placeholders and escapes, for the help, the manual page and the article.
  package static var entries: [Table.Entry] {
    Placeholder.allCases.map { ("%\($0.rawValue)", $0.help) } + [
      ("%%", "percent sign"),
      ("\\n \\t \\r \\0 \\e \\\\", "line feed, tab, carriage return, zero, escape, backslash"),
    ]
  }

  private let pieces: [Piece]

  /// - Parameter text: the format; an unknown placeholder is refused.
  package init(_ text: String) throws(Failure) {
    var pieces: [Piece] = []
    var literal: [UInt8] = []
    var rest = Array(text)[...]
    while let character = rest.popFirst() {
      guard character == "%" || character == "\\" else {
        literal += Array(String(character).utf8)
        continue
      }
      guard let next = rest.popFirst() else {
        throw .usage("cannot use --format '\(text)': it ends after '\(character)'")
      }
      if character == "\\" || next == "%" {
        literal += try Self.escaped(next, character, in: text)
      } else if let field = Placeholder(rawValue: next) {
        if !literal.isEmpty { pieces.append(.text(literal)) }
        literal = []
        pieces.append(.field(field))
      } else {
        throw .usage(
          "cannot use --format '\(text)': there is no placeholder '%\(next)'; "
            + "the help of the verb lists all")
      }
    }
    self.pieces = pieces + (literal.isEmpty ? [] : [.text(literal)])
  }

  private static func escaped(
    _ next: Character, _ first: Character, in text: String
  ) throws(Failure) -> [UInt8] {
    if first == "%" { return [UInt8(ascii: "%")] }
    switch next {
    case "n": return [10]
    case "t": return [9]
    case "r": return [13]
    case "0": return [0]
    case "e": return [27]
    case "\\": return [UInt8(ascii: "\\")]
    default:
      throw .usage("cannot use --format '\(text)': there is no escape '\\\(next)'")
    }
  }

  /// Returns the bytes of a line, without a line feed at the end.
  ///
  /// - Parameter field: returns the bytes of a field; nil for a field that the line does not have,
  ///   which is then empty.
  package func bytes(_ field: (Placeholder) throws -> [UInt8]?) rethrows -> [UInt8] {
    var bytes: [UInt8] = []
    for piece in pieces {
      switch piece {
      case .text(let text): bytes += text
      case .field(let placeholder): bytes += try field(placeholder) ?? []
      }
    }
    return bytes
  }
}

extension Option {
  package static let format = Option(
    "format", .any("F"), "form of a line, with placeholders as in '%I %t %p'")
  package static let timestamps = Option(
    "timestamps", nil, "write the time before each line, and a tab")
}
