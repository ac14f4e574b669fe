/// All verbs and options: the parser, the help, the manual and the completions read them here.
enum Table {
  static let verbs = entries.map { $0.verb() }

  static func verb(_ name: String) -> Verb? { entries.first { $0.name == name }?.verb() }

  /// By name, so that a verb's own texts are all that its start has to set up.
  private static let entries: [(name: String, verb: @Sendable () -> Verb)] = [
    ("put", { .put }), ("get", { .get }), ("watch", { .watch }), ("update", { .update }),
    ("clear", { .clear }), ("list", { .list }), ("send", { .send }), ("receive", { .receive }),
    ("queue", { .queue }), ("members", { .members }), ("lock", { .lock }), ("post", { .post }),
    ("observe", { .observe }), ("defaults", { .defaults }), ("doctor", { .doctor }),
    ("demo", { .demo }), ("completions", { .completions }), ("manual", { .manual }),
    ("help", { .help }),
  ]

  /// What goes with every verb.
  static let options: [Option] = [
    .container, .group, .json, .quiet, .verbose,
  ]

  /// What stands in place of a verb, or of what a verb would do.
  static let answers: [(name: String, help: String)] = [
    ("-h", "say briefly what there is, or what the verb takes"),
    ("--help", "say it at length, with examples"),
    ("--version", "say the version"),
  ]

  static let variables: [(name: String, help: String)] = [
    ("WORMHOLE_CONTAINER", "the container, where no option names one"),
    ("WORMHOLE_GROUP", "the group, where no option names one"),
    ("WORMHOLE_ROOT", "the directory that holds those of all groups"),
  ]
}

extension Option {
  static let container = Option(
    "container", .file("DIR"), "use the container at DIR; it is made by the first to write")
  static let group = Option("group", .any("ID"), "use the container of that group")
  static let json = Option("json", nil, "write one object a line, errors too")
  static let quiet = Option("quiet", nil, "say nothing of a 'no'; the exit status says it")
  static let verbose = Option("verbose", nil, "say more of what happens")
}
