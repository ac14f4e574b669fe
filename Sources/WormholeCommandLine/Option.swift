/// An option of the command line, for the parser and for all texts about it.
package struct Option: Sendable {
  /// The argument after an option's name.
  package enum Argument: Sendable {
    /// The name of the argument in the texts, as in `S`.
    case any(String)
    case oneOf(String, [String])
    case file(String)
    case directory(String)
    /// The values are searched for at the time of completion.
    case found(String, Found)

    package var name: String {
      switch self {
      case .any(let name), .oneOf(let name, _), .file(let name), .directory(let name),
        .found(let name, _):
        name
      }
    }
  }

  /// The name without the two dashes.
  package let name: String
  package let argument: Argument?
  /// One line, without a full stop.
  package let help: String
  /// Whether the verb requires the option.
  package let isRequired: Bool
  /// Whether the option may be given several times.
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

  /// The option in a usage line, as in `--timeout D`.
  package var usage: String { "--\(name)" + (argument.map { " \($0.name)" } ?? "") }
}

/// Finds the possible values at a position of an incomplete command line.
///
/// The invocation contains the arguments so far. An error in the search is not reported, because
/// the user did not request the search.
package typealias Found = @Sendable (Invocation) -> [Proposal.Word]
