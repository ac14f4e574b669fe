import Foundation

/// Writes a message of the default level to a log.
///
/// The arguments replace the parts that begin with `%`, whatever their type; a part with `private`
/// in its braces is not written.
public func os_log(
  _ message: OSLogMessage, log: OSLog = .default, type: OSLogType = .default, _ arguments: Any...
) {
  write(message, to: log, type, arguments)
}

/// Writes a message of a level to a log.
public func os_log(
  _ type: OSLogType, log: OSLog = .default, _ message: OSLogMessage, _ arguments: Any...
) {
  write(message, to: log, type, arguments)
}

private func write(
  _ message: OSLogMessage, to log: OSLog, _ type: OSLogType, _ arguments: [Any]
) {
  guard log.isEnabled else { return }
  let text = arguments.isEmpty ? message.text : formatted(message.text, arguments)
  LogLine.write(log.label, type, text)
}

/// Replaces `%d`, `%{public}@`, `%.2f` and the like by arguments.
func formatted(_ format: String, _ arguments: [Any]) -> String {
  var (text, rest, arguments) = ("", format[...], arguments[...])
  while let percent = rest.firstIndex(of: "%") {
    text += rest[..<percent]
    rest = rest[percent...].dropFirst()
    if rest.first == "%" {
      text += "%"
      rest = rest.dropFirst()
      continue
    }
    var options: Substring = ""
    if rest.first == "{", let end = rest.firstIndex(of: "}") {
      options = rest[..<end]
      rest = rest[end...].dropFirst()
    }
    let flags = rest.prefix { !$0.isLetter && $0 != "@" }
    let conversion = rest.dropFirst(flags.count).drop { "lhqzLtj".contains($0) }
    rest = conversion.dropFirst()
    let argument = arguments.popFirst()
    if options.contains("private") || options.contains("sensitive") {
      text += "<private>"
    } else if let number = argument as? Double, "eEfFgG".contains(conversion.first ?? " ") {
      text += String(format: "%\(flags)\(conversion.first ?? "f")", number)
    } else if let argument {
      text += "\(argument)"
    }
  }
  return text + rest
}
