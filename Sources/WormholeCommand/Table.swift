/// All verbs and options: the parser, the help, the manual and the completions read them here.
enum Table {
  static let verbs: [Verb] = [
    .put, .get, .watch, .update, .clear, .list, .lock, .demo, .completions, .manual, .help,
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
