import CinemaTime
import CommandLine

extension Table {
  /// All verbs and options of `cinematime`.
  static let cinematime = Table(
    "cinematime", "0.1.0", "sell and return tickets on two sides that never disagree",
    synopsis: "--as phone|watch [--container DIR]",
    purpose: "Sells and returns tickets for nine films, on a phone and on a watch at once.",
    details: [
      "Phone and watch are two programs that share a directory.",
      "Both sell and return tickets, at once, killed or stopped at any moment, and never disagree.",
      "It is what the package Wormhole is for, as an application.",
    ],
    options: [.role, .container, .customer, .json, .quiet, .verbose],
    variables: [
      ("WORMHOLE_CONTAINER", "the container, where no option names one"),
      ("NO_COLOR", "if it is set, nothing is bold or dim"),
    ],
    statuses: ExitCode.allCases.filter { $0.rawValue < 100 }.map { code in
      (
        "\(code.rawValue)",
        code == .no ? "it is refused: sold out, sold already, not there" : code.meaning
      )
    },
    verbs: [
      ("run", { .run }), ("list", { .list }), ("buy", { .buy }), ("return", { .giveBack }),
      ("tickets", { .tickets }), ("show", { .show }), ("history", { .history }),
      ("install", { .install }), ("demo", { .demo }),
      ("completions", { .completions(of: "cinematime", completed) }),
      ("manual", { .manual(of: "cinematime") }),
      ("help", { .help(of: "cinematime", example: "buy") }),
    ])

  private static let completed =
    "Verbs, options and what they take are completed, and, where a container is named, the films "
    + "that can be bought or returned."
}

extension Option {
  static let role = Option(
    "as", .oneOf("ROLE", Role.allCases.map(\.rawValue)), "the side that this is: phone or watch")
  static let container = Option(
    "container", .directory("DIR"),
    "what both sides share; each side's images lie beside it, in DIR.phone and DIR.watch")
  static let customer = Option("for", .any("NAME"), "whose tickets; 'me' if nobody is named")
}
