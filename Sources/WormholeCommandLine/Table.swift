internal import WormholeSyscalls

/// A command as one table: the single source of its parser, help, manual page and completions.
package final class Table: Sendable {
  /// An entry of two columns: the text to type or set, and its purpose.
  package typealias Entry = (name: String, help: String)

  /// The name of the command.
  package let name: String
  package let version: String
  /// One line, without a full stop.
  package let summary: String
  /// The arguments before the verb, as in `[--container DIR | --group ID]`.
  package let synopsis: String
  /// One sentence for the help.
  package let purpose: String
  /// Sentences for the manual page.
  package let details: [String]
  /// The options of every verb.
  package let options: [Option]
  /// The environment variables.
  package let variables: [Entry]
  package let statuses: [Entry]
  /// The objects that `--json` writes.
  package let forms: @Sendable () -> [ObjectForm]
  /// The placeholders in the argument of `--format`, for the verbs that take this option.
  package let placeholders: @Sendable () -> [Entry]
  /// The words that other tools use for verbs, with the verbs or options to use here.
  package let synonyms: [(word: String, uses: [String])]
  /// The verbs by name, in closures, so that a start sets up only the texts of its own verb.
  private let entries: [(name: String, verb: @Sendable () -> Verb)]

  package init(
    _ name: String, _ version: String, _ summary: String, synopsis: String, purpose: String,
    details: [String], options: [Option], variables: [Entry], statuses: [Entry],
    forms: @escaping @Sendable () -> [ObjectForm] = { [] },
    placeholders: @escaping @Sendable () -> [Entry] = { [] },
    synonyms: [(word: String, uses: [String])] = [],
    verbs: [(name: String, verb: @Sendable () -> Verb)]
  ) {
    self.name = name
    self.version = version
    self.summary = summary
    self.synopsis = synopsis
    self.purpose = purpose
    self.details = details
    self.options = options
    self.variables = variables
    self.statuses = statuses
    self.forms = forms
    self.placeholders = placeholders
    self.synonyms = synonyms
    entries = verbs
  }

  package var verbs: [Verb] { entries.map { $0.verb() } }

  package var names: [String] { entries.map(\.name) }

  package func verb(_ name: String) -> Verb? { entries.first { $0.name == name }?.verb() }

  /// Returns the next step after a verb that does not exist.
  package func advice(instead name: String) -> String {
    // A synonym of which this program has no verb is not worth a mention.
    let uses = synonyms.first { $0.word == name }?.uses.filter { use in
      use.begins(with: "-") || names.contains(use.parts(between: " ")[0])
    }
    if let uses, !uses.isEmpty {
      return "use " + uses.map { "'\($0)'" }.joined(separator: " or ")
    }
    let guess = Spelling.guess(name, among: names)
    return guess.map { "did you mean '\($0)'?" } ?? "try '\(self.name) --help'"
  }

  /// Returns a usage line, as in `wormhole get CHANNEL [--json] [--timeout D]`.
  package func usage(of verb: Verb) -> String { name + " " + verb.usage }

  /// The arguments that replace a verb, or replace the action of a verb.
  package static let answers: [Entry] = [
    ("-h", "print a short help of the command or of the verb"),
    ("--help", "print the full help, with examples"),
    ("--version", "print the version"),
  ]
}

/// The options common to both commands.
extension Option {
  package static let json = Option("json", nil, "write one JSON object per line, errors included")
  package static let quiet = Option(
    "quiet", nil, "print no notes, and no error if there is no result")
  package static let verbose = Option("verbose", nil, "print additional notes on standard error")
}
