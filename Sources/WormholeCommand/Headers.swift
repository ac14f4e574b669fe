import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The headers of messages and requests, as options and for programs that the command runs.
extension Invocation {
  /// Returns the fields of an option `K=V` that may be repeated.
  func fields(_ option: Option) throws(Failure) -> [String: String] {
    var fields: [String: String] = [:]
    for text in values(option) {
      let parts = text.parts(between: "=", most: 1, keepingEmpty: true)
      guard parts.count == 2, !parts[0].isEmpty else {
        throw .usage("cannot use '--\(option.name) \(text)': the form is K=V")
      }
      guard fields.updateValue(parts[1], forKey: parts[0]) == nil else {
        throw .usage("cannot use '--\(option.name) \(text)': '\(parts[0])' is given twice")
      }
    }
    return fields
  }
}

extension Programs {
  /// The beginning of the names of variables with one header each.
  static let headerPrefix = "WORMHOLE_HEADER_"

  /// Returns the settings for a program with the headers of a message: all as JSON, and each in a
  /// variable of its own.
  ///
  /// The sender chooses the keys, so the prefix keeps it from setting any other variable. Several
  /// keys may become the same name; the first key in order is used.
  static func settings(of headers: [String: String]) throws -> [String] {
    let fields = headers.mapValues { PropertyListValue.string($0) }
    var settings = ["WORMHOLE_HEADERS=\(try PropertyListValue.dictionary(fields).inOneLine())"]
    var names: Set<String> = []
    for (key, value) in headers.sorted(by: { $0.key < $1.key }) {
      let name = String(decoding: key.utf8.map(variableByte), as: UTF8.self)
      if names.insert(name).inserted { settings.append("\(headerPrefix)\(name)=\(value)") }
    }
    return settings
  }

  private static func variableByte(_ byte: UInt8) -> UInt8 {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"): byte & ~0x20
    case UInt8(ascii: "-"), UInt8(ascii: "."): UInt8(ascii: "_")
    default: byte
    }
  }
}

extension Output {
  /// Returns the headers for an object; nil without headers.
  func value(of headers: [String: String]) -> PropertyListValue? {
    headers.isEmpty ? nil : .dictionary(headers.mapValues { .string($0) })
  }
}

extension Option {
  static let header = Option(
    "header", .any("K=V"), "header of the message or request; may be repeated", isRepeatable: true)
}
