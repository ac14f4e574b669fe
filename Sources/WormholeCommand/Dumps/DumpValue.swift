import FoundationEssentials
import WormholeCommandLine
import WormholePropertyLists

/// Values in a dump: JSON, with the type beside the value where JSON has no such type.
///
/// A date, data, and a real that is not finite are written as `{"type": ..., "value": ...}`. A
/// dictionary with exactly these two keys is written as the value of such an object of the type
/// `dictionary`.
enum DumpValue {
  /// Returns the value in the form of a dump.
  static func written(_ value: PropertyListValue) -> PropertyListValue {
    switch value {
    case .data(let data): typed("data", .string(data.base64EncodedString()))
    case .date(let date): typed("date", written(date))
    case .real(let number) where !number.isFinite: typed("real", .string("\(number)"))
    case .array(let values): .array(values.map(written))
    case .dictionary(let values):
      isTyped(values)
        ? typed("dictionary", .dictionary(values.mapValues(written)))
        : .dictionary(values.mapValues(written))
    case .string, .integer, .unsigned, .real, .boolean: value
    }
  }

  private static func written(_ date: Date) -> PropertyListValue {
    // A time that no calendar text states exactly is written in seconds since 2001.
    DateText.format(date).map { .string($0) } ?? .string("\(date.timeIntervalSinceReferenceDate)")
  }

  private static func typed(_ type: String, _ value: PropertyListValue) -> PropertyListValue {
    .dictionary(["type": .string(type), "value": value])
  }

  private static func isTyped(_ values: [String: PropertyListValue]) -> Bool {
    values.count == 2 && values["type"] != nil && values["value"] != nil
  }

  /// Returns the value of a dump's form.
  static func read(_ value: PropertyListValue) throws(DumpProblem) -> PropertyListValue {
    switch value {
    case .array(let values):
      var read: [PropertyListValue] = []
      for value in values { read.append(try self.read(value)) }
      return .array(read)
    case .dictionary(let values):
      guard isTyped(values) else { return .dictionary(try read(values)) }
      guard let type = values["type"]?.stringValue, let content = values["value"] else {
        throw DumpProblem("the 'type' of a value is not a text")
      }
      return try read(content, as: type)
    case .string, .integer, .unsigned, .real, .boolean, .data, .date: return value
    }
  }

  static func read(
    _ values: [String: PropertyListValue]
  ) throws(DumpProblem) -> [String: PropertyListValue] {
    var read: [String: PropertyListValue] = [:]
    for (key, value) in values { read[key] = try self.read(value) }
    return read
  }

  private static func read(
    _ content: PropertyListValue, as type: String
  ) throws(DumpProblem) -> PropertyListValue {
    switch (type, content) {
    case ("data", .string(let text)):
      guard let data = Data(base64Encoded: text) else { throw DumpProblem("data is not in base64") }
      return .data(data)
    case ("date", .string(let text)):
      guard let date = date(text) else { throw DumpProblem("'\(text)' is not a date") }
      return .date(date)
    case ("real", .string(let text)):
      guard let number = Double(text) else { throw DumpProblem("'\(text)' is not a number") }
      return .real(number)
    case ("dictionary", .dictionary(let values)): return .dictionary(try read(values))
    default: throw DumpProblem("there is no value of the type '\(type)'")
    }
  }

  static func date(_ text: String) -> Date? {
    DateText.parse(text) ?? Double(text).map { Date(timeIntervalSinceReferenceDate: $0) }
  }
}

/// Why a line of a dump cannot be used.
struct DumpProblem: Error {
  let reason: String
  init(_ reason: String) { self.reason = reason }
}
