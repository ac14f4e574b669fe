/// A verb of a command, for example the `put` of `wormhole put`.
///
/// A class, because copies of a verb would slow down each start of the command.
package final class Verb: Sendable {
  package struct Example: Sendable {
    package let line: String
    package let words: String

    package init(_ line: String, _ words: String) {
      self.line = line
      self.words = words
    }
  }

  /// One word for an option with its value.
  package struct Shorthand: Sendable {
    let option: Option
    let value: String
    /// Whether the last operand is a truth value.
    let isTruth: Bool

    package init(_ option: Option, _ value: String, isTruth: Bool = false) {
      self.option = option
      self.value = value
      self.isTruth = isTruth
    }
  }

  package let name: String
  /// One line, without a full stop.
  package let summary: String
  package let operands: [Operand]
  package let options: [Option]
  /// Paragraphs.
  package let details: [String]
  package let examples: [Example]
  /// Short words for an option with its value, as `-int`.
  package let shorthands: [String: Shorthand]
  /// The heading under which help lists the verb; nil for the list of all other verbs.
  package let heading: String?
  /// The words after "cannot" in an error about the command line, as the verb may be a noun.
  package let action: String
  /// Runs the verb, and returns the exit status.
  package let run: @Sendable (Invocation) throws -> Int32

  package init(
    _ name: String, _ summary: String, _ operands: [Operand] = [], _ options: [Option] = [],
    _ details: [String], _ examples: [Example], shorthands: [String: Shorthand] = [:],
    heading: String? = nil, action: String? = nil,
    run: @escaping @Sendable (Invocation) throws -> Int32
  ) {
    self.name = name
    self.summary = summary
    self.operands = operands
    self.options = options
    self.details = details
    self.examples = examples
    self.shorthands = shorthands
    self.heading = heading
    self.action = action ?? name
    self.run = run
  }

  /// The usage line, as in `get CHANNEL [--json] [--timeout D]`.
  package var usage: String {
    let operands = operands.filter { !$0.isCommand }.map(\.usage)
    let command = operands.count == self.operands.count ? [] : [self.operands.last!.usage]
    let required = options.filter(\.isRequired).map(\.usage)
    let optional = options.filter { !$0.isRequired }.map {
      "[\($0.usage)]" + ($0.isRepeatable ? "..." : "")
    }
    let words = required + operands + optional + command
    return ([name] + words).joined(separator: " ")
  }
}
