import FoundationEssentials

extension PropertyListValue: Codable {
  /// Writes the value with any encoder.
  ///
  /// Wormhole's own encoder takes it as a whole and keeps every type. Others get what they know:
  /// JSON, for one, turns dates and data into what its encoder makes of them.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .dictionary(let value): try container.encode(value)
    case .array(let value): try container.encode(value)
    case .string(let value): try container.encode(value)
    case .data(let value): try container.encode(value)
    case .integer(let value): try container.encode(value)
    case .unsigned(let value): try container.encode(value)
    case .real(let value): try container.encode(value)
    case .boolean(let value): try container.encode(value)
    case .date(let value): try container.encode(value)
    }
  }

  /// Reads the value with any decoder.
  ///
  /// Wormhole's own decoder hands it over as a whole. Others are asked type by type, and a format
  /// that has no dates or data gives what it has in their place.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let value = try? container.decode(Bool.self) {
      self = .boolean(value)
    } else if let value = try? container.decode(Int64.self) {
      self = .integer(value)
    } else if let value = try? container.decode(UInt64.self) {
      self = .unsigned(value)
    } else if let value = try? container.decode(Double.self) {
      self = .real(value)
    } else if let value = try? container.decode(String.self) {
      self = .string(value)
    } else if let value = try? container.decode([PropertyListValue].self) {
      self = .array(value)
    } else if let value = try? container.decode([String: PropertyListValue].self) {
      self = .dictionary(value)
    } else if let value = try? container.decode(Date.self) {
      self = .date(value)
    } else if let value = try? container.decode(Data.self) {
      self = .data(value)
    } else {
      throw DecodingError.dataCorruptedError(
        in: container, debugDescription: "no value that a property list can hold")
    }
  }
}
