import WormholeContainerStorage
import WormholePropertyLists

/// A number of the command line or of a channel.
enum Number {
  case whole(Int64)
  /// A number that does not fit into `Int64`.
  case large(UInt64)
  case real(Double)

  init?(_ text: String) {
    if let whole = Int64(text) {
      self = .whole(whole)
    } else if let large = UInt64(text) {
      self = .large(large)
    } else if let real = Double(text), real.isFinite {
      self = .real(real)
    } else {
      return nil
    }
  }

  init(_ value: PropertyListValue?, of name: String) throws(WormholeError) {
    switch value {
    case nil: self = .whole(0)
    case .integer(let whole): self = .whole(whole)
    case .unsigned(let large): self = .large(large)
    case .real(let real): self = .real(real)
    case .string(let text):
      // A value that was put without a type is a text.
      guard let number = Number(text) else { throw Self.noNumber(in: name) }
      self = number
    default: throw Self.noNumber(in: name)
    }
  }

  private static func noNumber(in name: String) -> WormholeError {
    WormholeError(
      .typeMismatch, "add to channel", name, because: "its value is not a number",
      hint: "put numbers with '--number'")
  }

  var value: PropertyListValue {
    switch self {
    case .whole(let number): .integer(number)
    case .large(let number): .unsigned(number)
    case .real(let number): .real(number)
    }
  }

  func plus(_ step: Number, of name: String) throws(WormholeError) -> PropertyListValue {
    if let number = whole, let step = step.whole {
      let sum = number + step
      if let sum = Int64(exactly: sum) { return .integer(sum) }
      if let sum = UInt64(exactly: sum) { return .unsigned(sum) }
    } else {
      let sum = real + step.real
      // A number that is infinite already stays as it is.
      if sum.isFinite || !real.isFinite { return .real(sum) }
    }
    throw WormholeError(
      .invalidValue, "add to channel", name, because: "the sum does not fit into 64 bits")
  }

  private var whole: Int128? {
    switch self {
    case .whole(let number): Int128(number)
    case .large(let number): Int128(number)
    case .real: nil
    }
  }

  private var real: Double {
    switch self {
    case .whole(let number): Double(number)
    case .large(let number): Double(number)
    case .real(let number): number
    }
  }
}
