/// What the command says of itself.
enum Help {
  static var short: String {
    let verbs = Table.verbs.map { ($0.name, $0.summary) }
    return """
      usage: wormhole [--container DIR | --group ID] VERB ...

      \(list(verbs))
      'wormhole help VERB' says more of one, 'wormhole --help' of all.

      """
  }

  static func short(_ verb: Verb) -> String {
    "usage: \(verb.usage)\n\n" + list(verb.options.map { ($0.usage, $0.help) })
  }

  static var long: String {
    let examples = Table.verbs.compactMap(\.examples.first)
    return """
      usage: wormhole [--container DIR | --group ID] VERB ...

      Passes values and messages between the processes of this machine that share a directory.

      Verbs:
      \(list(Table.verbs.map { ($0.name, $0.summary) }))
      Options of all verbs:
      \(list(Table.options.map { ($0.usage, $0.help) } + Table.answers))
      Environment:
      \(list(Table.variables))
      Exit status:
      \(list(ExitCode.allCases.map { ("\($0.rawValue)", $0.meaning) }))
      Examples:
      \(list(examples))
      """
  }

  static func long(_ verb: Verb) -> String {
    let options =
      verb.options.isEmpty
      ? ""
      : "\nOptions, beside those of all verbs:\n" + list(verb.options.map { ($0.usage, $0.help) })
    return """
      usage: \(verb.usage)

      \(verb.summary.prefix(1).uppercased())\(verb.summary.dropFirst()).

      \(verb.details.map { wrapped($0, to: 80) + "\n" }.joined(separator: "\n"))\(options)
      Examples:
      \(list(verb.examples))
      """
  }

  private static func list(_ examples: [Verb.Example]) -> String {
    examples.map { "  \($0.line)\n      \($0.words)\n" }.joined()
  }

  /// Two columns.
  private static func list(_ entries: [(String, String)]) -> String {
    let width = (entries.map(\.0.count).max() ?? 0) + 2
    return entries.map { left, right in
      "  \(left)\(String(repeating: " ", count: width - left.count))\(right)\n"
    }.joined()
  }

  static func wrapped(_ text: String, to width: Int) -> String {
    var lines = [""]
    for word in text.split(separator: " ") {
      let last = lines[lines.count - 1]
      if last.isEmpty {
        lines[lines.count - 1] = String(word)
      } else if last.count + 1 + word.count <= width {
        lines[lines.count - 1] += " " + word
      } else {
        lines.append(String(word))
      }
    }
    return lines.joined(separator: "\n")
  }
}

extension Verb {
  static let help = Verb(
    "help", "say what a verb does and takes", [Operand("VERB", .optional, .verbs)], [],
    ["Without VERB, says it of the whole command."],
    [Example("wormhole help watch", "one verb"), Example("wormhole help", "all of them")]
  ) { invocation in
    guard let name = invocation.operands.first else {
      try invocation.output.write(Array(Help.long.utf8))
      return 0
    }
    guard let verb = Table.verb(name) else {
      throw Failure.usage(
        "cannot help with '\(name)': there is no such verb; try 'wormhole --help'")
    }
    try invocation.output.write(Array(Help.long(verb).utf8))
    return 0
  }
}
