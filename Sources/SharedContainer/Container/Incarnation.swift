/// Which joining of a member it is: no two are the same, whatever their names.
public struct Incarnation: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  /// 16 hexadecimal digits, as files have them.
  public let rawValue: String

  /// The incarnation that has such digits; nil if there are others, more or fewer.
  public init?(rawValue: String) {
    guard Staging.isOurs(rawValue) else { return nil }
    self.rawValue = rawValue
  }

  /// One that nobody has had.
  init(_ environment: Environment) { rawValue = environment.randomName() }

  /// Its digits.
  public var description: String { rawValue }
}
