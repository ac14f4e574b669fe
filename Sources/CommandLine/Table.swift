/// A command as one table: its parser, help, manual page and completions read it, and nothing else.
package final class Table: Sendable {
  /// An entry of two columns: what is typed or set, and what it is for.
  package typealias Entry = (name: String, help: String)

  /// What the command is called.
  package let name: String
  package let version: String
  /// One line, without a full stop.
  package let summary: String
  /// What comes before the verb, as in `[--container DIR | --group ID]`.
  package let synopsis: String
  /// One sentence for the help.
  package let purpose: String
  /// Sentences for the manual page.
  package let details: [String]
  /// What goes with every verb.
  package let options: [Option]
  /// The environment.
  package let variables: [Entry]
  package let statuses: [Entry]
  /// What `--json` writes.
  package let forms: @Sendable () -> [ObjectForm]
  /// By name, so that a verb's own texts are all that its start has to set up.
  private let entries: [(name: String, verb: @Sendable () -> Verb)]

  package init(
    _ name: String, _ version: String, _ summary: String, synopsis: String, purpose: String,
    details: [String], options: [Option], variables: [Entry], statuses: [Entry],
    forms: @escaping @Sendable () -> [ObjectForm] = { [] },
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
    entries = verbs
  }

  package var verbs: [Verb] { entries.map { $0.verb() } }

  package var names: [String] { entries.map(\.name) }

  package func verb(_ name: String) -> Verb? { entries.first { $0.name == name }?.verb() }

  /// As in `wormhole get CHANNEL [--json] [--timeout S]`.
  package func usage(of verb: Verb) -> String { name + " " + verb.usage }

  /// What stands in place of a verb, or of what a verb would do.
  package static let answers: [Entry] = [
    ("-h", "say briefly what there is, or what the verb takes"),
    ("--help", "say it at length, with examples"),
    ("--version", "say the version"),
  ]
}

/// What both commands have.
extension Option {
  package static let json = Option("json", nil, "write one object a line, errors too")
  package static let quiet = Option(
    "quiet", nil, "print no message where the exit status 1 says it all")
  package static let verbose = Option("verbose", nil, "say more of what happens")
}
