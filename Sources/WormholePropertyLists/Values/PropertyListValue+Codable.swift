import FoundationEssentials

extension PropertyListValue: Codable {
  /// Writes the value with any encoder.
  ///
  /// Wormhole's own encoder takes the value as a whole and keeps every type. Another encoder
  /// receives the types of its format: JSON, for example, turns dates and data into its encoder's
  /// form.
  public func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    // Also if another type hands its encoder on to this value.
    if encoder is PlaceEncoder { return try container.encode(self) }
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
  /// Wormhole's own decoder returns the value as a whole. Other decoders are tried type by type,
  /// and a format without dates or data returns its replacements.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    // Also if another type hands its decoder on to this value.
    if decoder is ObjectDecoder {
      self = try container.decode(PropertyListValue.self)
      return
    }
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
        in: container, debugDescription: "a value that property lists do not support")
    }
  }
}
