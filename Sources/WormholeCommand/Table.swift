import CommandLine

extension Table {
  /// All verbs and options of `wormhole`.
  static let wormhole = Table(
    "wormhole", "0.1.0", "pass values and messages between processes through a directory",
    synopsis: "[--container DIR | --group ID]",
    purpose:
      "Passes values and messages between the processes of this machine that share a directory.",
    details: [
      "Processes of one machine that share a directory pass values and messages through it.",
      "None can block, corrupt or lose another's work, whatever happens to it.",
    ],
    options: [.container, .group, .groupShared, .json, .quiet, .verbose],
    variables: [
      ("WORMHOLE_CONTAINER", "the container, where no option names one"),
      ("WORMHOLE_GROUP", "the group, where no option names one"),
      ("WORMHOLE_ROOT", "the directory that holds those of all groups"),
    ],
    statuses: ExitCode.allCases.map { ("\($0.rawValue)", $0.meaning) },
    forms: { ObjectForm.all },
    verbs: [
      ("put", { .put }), ("get", { .get }), ("watch", { .watch }), ("update", { .update }),
      ("clear", { .clear }), ("remove", { .remove }), ("list", { .list }), ("send", { .send }),
      ("receive", { .receive }),
      ("queue", { .queue }), ("request", { .request }), ("reply", { .reply }),
      ("members", { .members }), ("wake", { .wake }), ("lock", { .lock }),
      ("coordinate", { .coordinate }), ("post", { .post }), ("observe", { .observe }),
      ("defaults", { .defaults }),
      ("watchconnectivity", { .watchConnectivity }), ("doctor", { .doctor }),
      ("demo", { .demo }), ("completions", { .completions(of: "wormhole", completed) }),
      ("manual", { .manual(of: "wormhole") }),
      ("help", { .help(of: "wormhole", example: "watch") }),
    ])

  private static let completed =
    "Verbs, options and what they take are completed, and, where a "
    + "container is named, the channels, members, notices, locks, suites and keys in it, "
    + "whatever stands in their names: nothing of it is run."
}

extension Option {
  static let container = Option(
    "container", .directory("DIR"),
    "use the container at DIR; whoever writes or waits first makes it")
  static let group = Option("group", .any("ID"), "use the container of that group")
  static let groupShared = Option(
    "group-shared", nil, "the container is for all users of the directory's group")
}
