package import WormholeSyscalls

/// A parsed command line: the verb, its options and its operands.
package struct Invocation: Sendable {
  package let table: Table
  package let verb: Verb
  package let operands: [String]
  /// The words after `--`, if the verb takes a command.
  package let command: [String]
  package let output: Output
  private let options: [Given]

  /// An option on the command line, with its value.
  package struct Given: Sendable {
    package let name: String
    package let value: String
  }

  package init(
    _ table: Table, _ verb: Verb, _ operands: [String], _ command: [String], _ output: Output,
    _ options: [Given]
  ) {
    self.table = table
    self.verb = verb
    self.operands = operands
    self.command = command
    self.output = output
    self.options = options
  }

  package func has(_ option: Option) -> Bool { value(option) != nil }

  package func value(_ option: Option) -> String? {
    options.first { $0.name == option.name }?.value
  }

  /// Returns all values of an option that may be given several times.
  package func values(_ option: Option) -> [String] {
    options.filter { $0.name == option.name }.map(\.value)
  }

  /// Returns a whole number: decimal digits, which may have a sign before them.
  ///
  /// A number is a quantity, of which `+5` is a usual form; a port is a name in digits, and has no
  /// sign.
  package func number(
    _ option: Option, least: Int = 0, most: Int = .max
  ) throws(Failure) -> Int? {
    guard let text = value(option) else { return nil }
    guard let number = Int(text), number >= least, number <= most else {
      let range = most == .max ? "of at least \(least)" : "from \(least) to \(most)"
      throw .usage("cannot use \(option.usage): '\(text)' is not a whole number \(range)")
    }
    return number
  }

  /// Returns a duration: a number of seconds, or a number with its unit.
  ///
  /// - Parameters:
  ///   - range: the words after "duration" in the refusal, as in " above 0".
  ///   - isInRange: whether the option may have the duration.
  package func seconds(
    _ option: Option, _ range: String = "", isInRange: (Duration) -> Bool = { _ in true }
  ) throws(Failure) -> Duration? {
    guard let text = value(option) else { return nil }
    guard let duration = Duration(text: text), isInRange(duration) else {
      throw .usage(
        "cannot use \(option.usage): '\(text)' is not a duration\(range); use a number of seconds, "
          + "or a unit as in 300ms, 5s, 2m, 1h or 1d")
    }
    return duration
  }

  /// Returns the deadline of a wait.
  package func deadline(_ option: Option) throws(Failure) -> Instant? {
    try seconds(option).map { Instant.now + $0 }
  }
}

extension Duration {
  /// The units of a duration on the command line, in seconds; `ms` is before `s`, whose end it has.
  private static let units: [(name: String, seconds: Double)] = [
    ("ms", 0.001), ("s", 1), ("m", 60), ("h", 3600), ("d", 86_400),
  ]

  /// Reads a duration such as `300ms`, `5s`, `2m`, `1.5h` or `1d`; nil for any other text.
  ///
  /// A number without a unit counts seconds. A duration is not negative, and not longer than a
  /// billion seconds.
  package init?(text: String) {
    var number = text
    var scale = 1.0
    if Double(text) == nil, let unit = Self.units.first(where: { text.ends(with: $0.name) }) {
      number = String(text.dropLast(unit.name.count))
      scale = unit.seconds
    }
    guard let count = Double(number), count * scale >= 0, count * scale <= 1e9 else { return nil }
    self = .seconds(count * scale)
  }
}
