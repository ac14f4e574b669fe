import FoundationEssentials
import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The fields of an output line of `watch`, `observe`, `receive`, `work` and `events`.
struct WrittenLine {
  var name = ""
  /// The text on a line without a format.
  var plain: () throws -> String = { "" }
  var value: PropertyListValue?
  var form: ObjectForm
  /// The fields of the object that `--json` writes.
  var object: () throws -> [String: PropertyListValue?]
  var id: String?
  var version: Int?
  var sender: String?
  var kind: String?
  var headers: [String: String]?
  var attempt: Int?
  var isRedelivered: Bool?
  var event: String?

  init(
    _ name: String, _ form: ObjectForm,
    _ object: @escaping () throws -> [String: PropertyListValue?]
  ) {
    (self.name, self.form, self.object) = (name, form, object)
  }

  /// Returns the bytes of a field; nil for a field that the line does not have.
  fileprivate func bytes(_ placeholder: LineFormat.Placeholder, _ now: Int64) throws -> [UInt8]? {
    let text: String? =
      switch placeholder {
      case .name: try name.inOneLine()
      case .value: try value?.inOneLine()
      case .hexadecimal: try content?.hexadecimal
      case .capitalHexadecimal: try content?.hexadecimal.uppercased()
      case .length: try content.map { "\($0.count)" }
      case .object: try form.line(object())
      case .time: DateText.format(Date(timeIntervalSince1970: (Double(now) / 1e6).rounded() / 1e3))
      case .unixTime: Self.seconds(now)
      case .id: try id?.inOneLine()
      case .version: version.map { "\($0)" }
      case .sender: try sender?.inOneLine()
      case .kind: try kind?.inOneLine()
      case .headers:
        try headers.map {
          try PropertyListValue.dictionary($0.mapValues { .string($0) }).inOneLine()
        }
      case .attempt: attempt.map { "\($0)" }
      case .redelivered: isRedelivered.map { $0 ? "1" : "0" }
      case .event: event
      }
    return text.map { Array($0.utf8) }
  }

  /// The bytes that `get --raw` prints.
  private var content: [UInt8]? { get throws { try value?.printed(raw: true) } }

  private static func seconds(_ nanoseconds: Int64) -> String {
    let rest = "\(nanoseconds % 1_000_000_000)"
    return "\(nanoseconds / 1_000_000_000)." + String(repeating: "0", count: 9 - rest.count) + rest
  }
}

/// How a verb writes its lines: bare, with the time, in a format, or as objects.
struct LineWriter: Sendable {
  let output: Output
  private let format: LineFormat?
  private let hasTimes: Bool
  /// Whether the command line chooses a form.
  var isChosen: Bool { format != nil || hasTimes }

  init(_ invocation: Invocation) throws(Failure) {
    output = invocation.output
    hasTimes = invocation.has(.timestamps)
    format =
      if let text = invocation.value(.format) { try LineFormat(text) } else { nil }
    let forms = [
      ("--json", output.isJSON), ("--format", format != nil), ("--timestamps", hasTimes),
      ("--raw", invocation.has(.raw) && isChosen && !invocation.has(.exec)),
    ].filter(\.1).map(\.0)
    guard forms.count < 2 || forms == ["--raw"] else {
      throw .usage(
        "cannot \(invocation.verb.action): \(forms[0]) and \(forms[1]) exclude each other; "
          + "give one of them")
    }
  }

  func write(_ line: WrittenLine) throws {
    if output.isJSON { return try output.write(line.form, line.object()) }
    let now = Clocks.sinceEpoch
    if let format {
      return try output.write(try format.bytes { try line.bytes($0, now) } + [UInt8(ascii: "\n")])
    }
    var text = try line.plain()
    if hasTimes {
      text = String(decoding: try line.bytes(.time, now) ?? [], as: UTF8.self) + "\t" + text
    }
    try output.write(line: text)
  }
}

extension [UInt8] {
  fileprivate var hexadecimal: String {
    map { byte in
      let digits = String(byte, radix: 16)
      return byte < 16 ? "0" + digits : digits
    }.joined()
  }
}
