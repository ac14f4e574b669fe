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

  package func number(_ option: Option, least: Int = 0) throws(Failure) -> Int? {
    guard let text = value(option) else { return nil }
    guard let number = Int(text), number >= least else {
      throw .usage(
        "cannot use \(option.usage): '\(text)' is not a whole number of at least \(least)")
    }
    return number
  }

  package func seconds(_ option: Option) throws(Failure) -> Duration? {
    guard let text = value(option) else { return nil }
    guard let seconds = Double(text), seconds >= 0, seconds <= 1e9 else {
      throw .usage("cannot use \(option.usage): '\(text)' is not a number of seconds")
    }
    return .seconds(seconds)
  }

  /// Returns the deadline of a wait.
  package func deadline(_ option: Option) throws(Failure) -> Instant? {
    try seconds(option).map { Instant.now + $0 }
  }
}
