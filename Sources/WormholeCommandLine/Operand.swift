/// An argument of a verb besides options.
package struct Operand: Sendable {
  package enum Kind: Sendable { case one, optional, many, optionalMany, command, optionalCommand }

  /// The possible values, for completions.
  package enum Values: Sendable {
    case any
    case words([String])
    case verbs
    case files
    /// The values are searched for at the time of completion.
    case found(Found)
  }

  package let name: String
  package let kind: Kind
  package let values: Values

  package init(_ name: String, _ kind: Kind = .one, _ values: Values = .any) {
    self.name = name
    self.kind = kind
    self.values = values
  }

  /// The operand in a usage line, as in `[VALUE]`.
  package var usage: String {
    switch kind {
    case .one: name
    case .optional: "[\(name)]"
    case .many: "\(name)..."
    case .optionalMany: "[\(name)...]"
    case .command: "-- \(name)..."
    case .optionalCommand: "[-- \(name)...]"
    }
  }

  /// Whether the operand is the command after `--`.
  package var isCommand: Bool { kind == .command || kind == .optionalCommand }

  package var least: Int {
    switch kind {
    case .one, .many, .command: 1
    case .optional, .optionalMany, .optionalCommand: 0
    }
  }

  package var most: Int {
    switch kind {
    case .one, .optional: 1
    case .many, .optionalMany, .command, .optionalCommand: .max
    }
  }
}
