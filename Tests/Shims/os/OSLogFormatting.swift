import Foundation

/// The form of an integer.
public struct OSLogIntegerFormatting: Sendable {
  private enum Base: Sendable { case decimal, hexadecimal, octal }

  private let base: Base
  private let isUppercase: Bool
  private let minimumDigits: Int

  /// The integer in base ten.
  public static var decimal: Self { decimal(minDigits: 0) }
  /// The integer in base sixteen.
  public static var hex: Self { hex() }
  /// The integer in base eight.
  public static var octal: Self { Self(base: .octal, isUppercase: false, minimumDigits: 0) }

  /// The integer in base ten, with leading zeros.
  public static func decimal(minDigits: Int) -> Self {
    Self(base: .decimal, isUppercase: false, minimumDigits: minDigits)
  }

  /// The integer in base sixteen.
  public static func hex(uppercase: Bool = false, minDigits: Int = 0) -> Self {
    Self(base: .hexadecimal, isUppercase: uppercase, minimumDigits: minDigits)
  }

  func text(of value: some BinaryInteger) -> String {
    let radix: Int
    switch base {
    case .decimal: radix = 10
    case .hexadecimal: radix = 16
    case .octal: radix = 8
    }
    let digits = String(value.magnitude, radix: radix, uppercase: isUppercase)
    let zeros = String(repeating: "0", count: max(0, minimumDigits - digits.count))
    return (value < 0 ? "-" : "") + zeros + digits
  }
}

/// The form of a number with a fraction.
public struct OSLogFloatFormatting: Sendable {
  private let format: String

  /// The number with six digits of its fraction.
  public static var fixed: Self { fixed(precision: 6) }
  /// The number with a power of ten.
  public static var exponential: Self { Self(format: "%e") }
  /// The number in the shorter of both forms.
  public static var hybrid: Self { Self(format: "%g") }

  /// The number with some digits of its fraction.
  public static func fixed(precision: Int) -> Self { Self(format: "%.\(max(0, precision))f") }

  func text(of value: Double) -> String { String(format: format, value) }
}
