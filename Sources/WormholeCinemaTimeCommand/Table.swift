import WormholeCinemaTime
import WormholeCommandLine

extension Table {
  /// All verbs and options of `cinematime`.
  static let cinematime = Table(
    "cinematime", "0.1.0", "sell and return tickets on two sides that never disagree",
    synopsis: "--as phone|watch [--container DIR]",
    purpose: "Sells and returns tickets for nine films, on a phone and on a watch at once.",
    details: [
      "Phone and watch are two programs that share a directory.",
      "Both sell and return tickets and never disagree, killed or suspended at any moment.",
      "cinematime is the example application of the package Wormhole.",
    ],
    options: [.role, .container, .customer, .json, .quiet, .verbose],
    variables: [
      ("WORMHOLE_CONTAINER", "the container's directory, if no option names a container"),
      ("NO_COLOR", "if set, no output is bold or dim"),
    ],
    statuses: ExitCode.allCases.filter { $0.rawValue < 100 }.map { code in
      (
        "\(code.rawValue)",
        code == .no ? "refused: sold out, already sold, or not found" : code.meaning
      )
    },
    verbs: [
      ("run", { .run }), ("list", { .list }), ("buy", { .buy }), ("return", { .giveBack }),
      ("tickets", { .tickets }), ("show", { .show }), ("history", { .history }),
      ("install", { .install }), ("both", { .both }), ("serve", { .serve }),
      ("demo", { .demo }),
      ("completions", { .completions(of: "cinematime", completed) }),
      ("manual", { .manual(of: "cinematime") }),
      ("help", { .help(of: "cinematime", example: "buy") }),
    ])

  private static let completed =
    "Verbs, options and their arguments are completed, and, if a container is named, the films "
    + "that can be bought or returned."
}

extension Option {
  static let role = Option(
    "as", .oneOf("ROLE", Role.allCases.map(\.rawValue)), "side of this process: phone or watch")
  static let container = Option(
    "container", .directory("DIR"),
    "directory that both sides share; the images are in DIR.phone and DIR.watch")
  static let customer = Option("for", .any("NAME"), "name of the customer; 'me' by default")
}
