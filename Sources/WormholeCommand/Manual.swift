/// The manual page, in the macros of man(7).
enum Manual {
  static var page: String {
    let verbs = Table.verbs.map(section).joined()
    return """
      .TH WORMHOLE 1 "" "wormhole \(Command.version)" "User Commands"
      .SH NAME
      wormhole \\- pass values and messages between processes through a directory
      .SH SYNOPSIS
      .B wormhole
      .RB [ \\-\\-container
      .IR DIR " | "
      .B \\-\\-group
      .IR ID ]
      .I VERB
      \\&...
      .SH DESCRIPTION
      Processes of one machine that share a directory pass values and messages through it.
      None can block, corrupt or lose another's work, whatever happens to it.
      Data goes to standard output and words to standard error.
      A dash stands for standard input, and two dashes end the options.
      .SH VERBS
      \(verbs).SH OPTIONS
      These go with every verb.
      \(entries(Table.options.map { ($0.usage, $0.help) } + Table.answers)).SH ENVIRONMENT
      \(entries(Table.variables)).SH EXIT STATUS
      \(entries(ExitCode.allCases.map { ("\($0.rawValue)", $0.meaning) }))
      """
  }

  private static func section(_ verb: Verb) -> String {
    var text = ".SS \(escaped(verb.usage, quoted: true))\n"
    text += verb.details.map { paragraph($0) }.joined(separator: ".PP\n")
    text += entries(verb.options.map { ($0.usage, $0.help) })
    text += entries(verb.examples.map { ($0.line, $0.words) })
    return text
  }

  private static func entries(_ entries: [(String, String)]) -> String {
    entries.map { ".TP\n\\fB\(escaped($0))\\fR\n" + paragraph(sentence($1)) }.joined()
  }

  /// Begins large and ends with a full stop.
  private static func sentence(_ words: String) -> String {
    words.prefix(1).uppercased() + words.dropFirst() + "."
  }

  /// Each sentence on a line of its own, as the formatter likes it.
  private static func paragraph(_ text: String) -> String {
    var lines = ""
    for word in text.split(separator: " ") {
      let escaped = escaped(String(word))
      let startsLine = lines.isEmpty || lines.last == "\n"
      // At the beginning of a line these would be commands.
      let guarded =
        startsLine && (word.first == "." || word.first == "'") ? "\\&" + escaped : escaped
      lines += guarded + (word.last == "." ? "\n" : " ")
    }
    while lines.last == " " || lines.last == "\n" { lines.removeLast() }
    return lines + "\n"
  }

  private static func escaped(_ text: String, quoted: Bool = false) -> String {
    var escaped = ""
    for character in text {
      switch character {
      case "\\": escaped += "\\e"
      case "-": escaped += "\\-"
      case "'": escaped += "\\(aq"
      case "\"": escaped += "\\(dq"
      default: escaped.append(character)
      }
    }
    return quoted ? "\"\(escaped)\"" : escaped
  }
}

extension Verb {
  static let manual = Verb(
    "manual", "print the manual page", [], [],
    ["The page is for man(1), which shows it and can be given it as a file."],
    [
      Example("wormhole manual | man -l -", "read it"),
      Example("wormhole manual >wormhole.1", "keep it where man looks"),
    ]
  ) { invocation in
    try invocation.output.write(Array(Manual.page.utf8))
    return 0
  }
}
