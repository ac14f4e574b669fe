/// Identifies one join of a member: no two incarnations are equal, whatever their names.
public struct Incarnation: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// 16 hexadecimal digits, as in files.
  public let rawValue: String

  /// Makes an incarnation from its digits; nil unless the text has 16 hexadecimal digits.
  public init?(rawValue: String) {
    guard Randomness.isName(rawValue) else { return nil }
    self.rawValue = rawValue
  }

  /// Makes a new, unused incarnation.
  init(_ environment: Environment) { rawValue = environment.randomName() }

  private init() { rawValue = "" }

  /// The initial value of a form, before the reader finds the digits: no process has it.
  static let unread = Incarnation()

  /// The digits.
  public var description: String { rawValue }
}
