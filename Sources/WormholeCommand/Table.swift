import WormholeCommandLine

extension Table {
  /// All verbs and options of `wormhole`.
  static let wormhole = Table(
    "wormhole", "0.1.0", "pass values and messages between processes through a directory",
    synopsis: "[--container DIR | --group ID]",
    purpose:
      "Passes values and messages between processes of one machine that share a directory.",
    details: [
      "Processes of one machine that share a directory pass values and messages through it.",
      "A process that is killed or suspended cannot block, corrupt or lose the work of another.",
    ],
    options: [.container, .group, .groupShared, .json, .quiet, .verbose],
    variables: [
      ("WORMHOLE_CONTAINER", "the container's directory, if no option names a container"),
      ("WORMHOLE_GROUP", "the group, if no option names a container"),
      ("WORMHOLE_ROOT", "the directory that contains the containers of all groups"),
    ],
    statuses: ExitCode.allCases.map { ("\($0.rawValue)", $0.meaning) },
    forms: { ObjectForm.all },
    verbs: [
      ("put", { .put }), ("get", { .get }), ("watch", { .watch }), ("update", { .update }),
      ("clear", { .clear }), ("remove", { .remove }), ("list", { .list }), ("send", { .send }),
      ("receive", { .receive }),
      ("work", { .work }), ("queue", { .queue }), ("request", { .request }), ("reply", { .reply }),
      ("members", { .members }), ("wake", { .wake }), ("lock", { .lock }),
      ("coordinate", { .coordinate }), ("post", { .post }), ("observe", { .observe }),
      ("defaults", { .defaults }),
      ("watchconnectivity", { .watchConnectivity }), ("bridge", { .bridge }),
      ("status", { .status }), ("doctor", { .doctor }),
      ("new", { .new }), ("demo", { .demo }),
      ("completions", { .completions(of: "wormhole", completed) }),
      ("manual", { .manual(of: "wormhole") }),
      ("help", { .help(of: "wormhole", example: "watch") }),
    ])

  private static let completed =
    "Verbs, options and their arguments are completed, and, if a container is named, the names of "
    + "its channels, members, notices, locks, suites and keys. A name is never executed, whatever "
    + "characters it contains."
}

extension Option {
  static let container = Option(
    "container", .directory("DIR"),
    "directory of the container, created by the first write or wait")
  static let group = Option("group", .any("ID"), "group whose container is used")
  static let groupShared = Option(
    "group-shared", nil, "share the container with all users of the directory's group")
}
