/// An option of the command line: what the parser takes, and what all texts say of it.
struct Option: Sendable {
  /// What comes after an option's name.
  enum Argument: Sendable {
    /// What the texts call it, as in `S`.
    case any(String)
    case oneOf(String, [String])
    case file(String)
    case member(String)

    var name: String {
      switch self {
      case .any(let name), .oneOf(let name, _), .file(let name), .member(let name): name
      }
    }
  }

  /// Without the two dashes.
  let name: String
  let argument: Argument?
  /// One line, without a full stop.
  let help: String
  /// Whether the verb makes no sense without it.
  let isRequired: Bool
  /// Whether it may be given several times.
  let isRepeated: Bool

  init(
    _ name: String, _ argument: Argument? = nil, _ help: String, isRequired: Bool = false,
    isRepeated: Bool = false
  ) {
    self.isRepeated = isRepeated
    self.name = name
    self.argument = argument
    self.help = help
    self.isRequired = isRequired
  }

  /// As in `--timeout S`.
  var usage: String { "--\(name)" + (argument.map { " \($0.name)" } ?? "") }
}

/// What a verb takes beside options.
struct Operand: Sendable {
  enum Kind: Sendable { case one, optional, many, optionalMany, command }

  /// What can stand there, for completions.
  enum Values: Sendable {
    case any
    case channels
    case members
    case words([String])
    case verbs
  }

  let name: String
  let kind: Kind
  let values: Values

  init(_ name: String, _ kind: Kind = .one, _ values: Values = .any) {
    self.name = name
    self.kind = kind
    self.values = values
  }

  /// As in `[VALUE]`.
  var usage: String {
    switch kind {
    case .one: name
    case .optional: "[\(name)]"
    case .many: "\(name)..."
    case .optionalMany: "[\(name)...]"
    case .command: "-- \(name)..."
    }
  }

  var least: Int {
    switch kind {
    case .one, .many, .command: 1
    case .optional, .optionalMany: 0
    }
  }

  var most: Int {
    switch kind {
    case .one, .optional: 1
    case .many, .optionalMany, .command: .max
    }
  }
}

/// A verb of the command: `wormhole put` and its like.
///
/// A class, since copies of it would cost each start of the command time.
final class Verb: Sendable {
  struct Example: Sendable {
    let line: String
    let words: String

    init(_ line: String, _ words: String) {
      self.line = line
      self.words = words
    }
  }

  let name: String
  /// One line, without a full stop.
  let summary: String
  let operands: [Operand]
  let options: [Option]
  /// Paragraphs.
  let details: [String]
  let examples: [Example]
  /// Answers the exit status.
  let run: @Sendable (Invocation) throws -> Int32

  init(
    _ name: String, _ summary: String, _ operands: [Operand] = [], _ options: [Option] = [],
    _ details: [String], _ examples: [Example],
    run: @escaping @Sendable (Invocation) throws -> Int32
  ) {
    self.name = name
    self.summary = summary
    self.operands = operands
    self.options = options
    self.details = details
    self.examples = examples
    self.run = run
  }

  /// As in `wormhole get CHANNEL [--json] [--timeout S]`.
  var usage: String {
    let operands = operands.filter { $0.kind != .command }.map(\.usage)
    let command = operands.count == self.operands.count ? [] : [self.operands.last!.usage]
    let required = options.filter(\.isRequired).map(\.usage)
    let optional = options.filter { !$0.isRequired }.map { "[\($0.usage)]" }
    let words = required + operands + optional + command
    return (["wormhole \(name)"] + words).joined(separator: " ")
  }
}
