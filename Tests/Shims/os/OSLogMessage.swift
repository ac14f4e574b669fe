/// The text of a message, with the privacy of each value in it.
///
/// A value with `.private` or `.sensitive` is written as `<private>`. All other values are written:
/// the reader of this log is the developer.
public struct OSLogMessage: ExpressibleByStringInterpolation, Sendable {
  let text: String

  /// Creates a message without values.
  public init(stringLiteral text: String) { self.text = text }
  /// Creates a message from its parts.
  public init(stringInterpolation: OSLogInterpolation) { text = stringInterpolation.text }
}

/// The parts of a message.
public struct OSLogInterpolation: StringInterpolationProtocol {
  var text = ""

  /// Starts a message.
  public init(literalCapacity: Int, interpolationCount: Int) {
    text.reserveCapacity(literalCapacity + 16 * interpolationCount)
  }

  /// Adds a part of the literal.
  public mutating func appendLiteral(_ literal: String) { text += literal }

  /// Adds a value.
  public mutating func appendInterpolation<Value>(
    _ value: @autoclosure () -> Value, align: OSLogStringAlignment = .none,
    privacy: OSLogPrivacy = .auto
  ) {
    append(privacy) { align.aligned("\(value())") }
  }

  /// Adds an integer in a form.
  public mutating func appendInterpolation<Value: BinaryInteger>(
    _ value: @autoclosure () -> Value, format: OSLogIntegerFormatting,
    align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
  ) {
    append(privacy) { align.aligned(format.text(of: value())) }
  }

  /// Adds a number in a form.
  public mutating func appendInterpolation<Value: BinaryFloatingPoint>(
    _ value: @autoclosure () -> Value, format: OSLogFloatFormatting,
    align: OSLogStringAlignment = .none, privacy: OSLogPrivacy = .auto
  ) {
    append(privacy) { align.aligned(format.text(of: Double(value()))) }
  }

  private mutating func append(_ privacy: OSLogPrivacy, _ value: () -> String) {
    text += privacy.isShown ? value() : "<private>"
  }
}

/// Whether a value is written to the log.
public struct OSLogPrivacy: Sendable {
  /// A way to replace a private value; no value is replaced differently here.
  public enum Mask: Sendable {
    /// The hash of the value.
    case hash
    /// Nothing.
    case none
  }

  let isShown: Bool

  /// The value is written.
  public static var auto: OSLogPrivacy { OSLogPrivacy(isShown: true) }
  /// The value is written.
  public static var `public`: OSLogPrivacy { OSLogPrivacy(isShown: true) }
  /// The value is not written.
  public static var `private`: OSLogPrivacy { OSLogPrivacy(isShown: false) }
  /// The value is not written.
  public static var sensitive: OSLogPrivacy { OSLogPrivacy(isShown: false) }
  /// The value is written.
  public static func auto(mask: Mask) -> OSLogPrivacy { .auto }
  /// The value is not written.
  public static func `private`(mask: Mask) -> OSLogPrivacy { .private }
  /// The value is not written.
  public static func sensitive(mask: Mask) -> OSLogPrivacy { .sensitive }
}

/// The column in which a value is written.
public struct OSLogStringAlignment: Sendable {
  private let columns: Int
  private let isRight: Bool

  /// The value is written as it is.
  public static var none: Self { Self(columns: 0, isRight: false) }
  /// The value is at the left of its column.
  public static func left(columns: Int) -> Self { Self(columns: columns, isRight: false) }
  /// The value is at the right of its column.
  public static func right(columns: Int) -> Self { Self(columns: columns, isRight: true) }

  func aligned(_ text: String) -> String {
    let space = String(repeating: " ", count: max(0, columns - text.count))
    return isRight ? space + text : text + space
  }
}
