/// An option of the command line: what the parser takes, and what all texts say of it.
package struct Option: Sendable {
  /// What comes after an option's name.
  package enum Argument: Sendable {
    /// What the texts call it, as in `S`.
    case any(String)
    case oneOf(String, [String])
    case file(String)
    case directory(String)
    /// What is there is found when it is asked for.
    case found(String, Found)

    package var name: String {
      switch self {
      case .any(let name), .oneOf(let name, _), .file(let name), .directory(let name),
        .found(let name, _):
        name
      }
    }
  }

  /// Without the two dashes.
  package let name: String
  package let argument: Argument?
  /// One line, without a full stop.
  package let help: String
  /// Whether the verb makes no sense without it.
  package let isRequired: Bool
  /// Whether it may be given several times.
  package let isRepeatable: Bool

  package init(
    _ name: String, _ argument: Argument? = nil, _ help: String, isRequired: Bool = false,
    isRepeatable: Bool = false
  ) {
    self.name = name
    self.argument = argument
    self.help = help
    self.isRequired = isRequired
    self.isRepeatable = isRepeatable
  }

  /// As in `--timeout S`.
  package var usage: String { "--\(name)" + (argument.map { " \($0.name)" } ?? "") }
}

/// Finds what could stand in a place of the command line that is being typed.
///
/// The invocation holds what is given so far. What cannot be found is not told of: nobody asked.
package typealias Found = @Sendable (Invocation) -> [Proposal.Word]
