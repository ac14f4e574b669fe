/// The help texts of a command.
package struct Help {
  private let table: Table

  package init(_ table: Table) { self.table = table }

  package var short: String {
    return """
      usage: \(table.name) \(table.synopsis) VERB ...

      \(verbs)
      '\(table.name) help VERB' describes a verb, '\(table.name) --help' the whole command.

      """
  }

  /// The verbs, with those that have a heading of their own last.
  private var verbs: String {
    let all = table.verbs
    let width = all.map(\.name.count).max()
    func list(_ heading: String?) -> String {
      Self.list(all.filter { $0.heading == heading }.map { ($0.name, $0.summary) }, width)
    }
    var headings: [String] = []
    for case let heading? in all.map(\.heading) where !headings.contains(heading) {
      headings.append(heading)
    }
    return list(nil) + headings.map { "\n\($0):\n\(list($0))" }.joined()
  }

  package func short(_ verb: Verb) -> String {
    "usage: \(table.usage(of: verb))\n\n" + Self.list(verb.options.map { ($0.usage, $0.help) })
  }

  package var long: String {
    let examples = table.verbs.compactMap(\.examples.first)
    return """
      usage: \(table.name) \(table.synopsis) VERB ...

      \(table.purpose)

      Verbs:
      \(verbs)
      Options of all verbs:
      \(Self.list(table.options.map { ($0.usage, $0.help) } + Table.answers))
      Environment:
      \(Self.list(table.variables))
      Exit status:
      \(Self.list(table.statuses))
      Examples:
      \(Self.list(examples))
      """
  }

  package func long(_ verb: Verb) -> String {
    let options =
      verb.options.isEmpty
      ? ""
      : "\nOptions, besides the options of all verbs:\n"
        + Self.list(verb.options.map { ($0.usage, $0.help) }) + placeholders(verb)
    return """
      usage: \(table.usage(of: verb))

      \(verb.summary.prefix(1).uppercased())\(verb.summary.dropFirst()).

      \(verb.details.map { Self.wrapped($0, to: 80) + "\n" }.joined(separator: "\n"))\(options)
      Examples:
      \(Self.list(verb.examples))
      """
  }

  private func placeholders(_ verb: Verb) -> String {
    let entries = table.placeholders()
    guard verb.options.contains(where: { $0.name == "format" }), !entries.isEmpty else { return "" }
    return "\nPlaceholders in --format:\n" + Self.list(entries.map { ($0.name, $0.help) })
  }

  private static func list(_ examples: [Verb.Example]) -> String {
    examples.map { "  \($0.line)\n      \($0.words)\n" }.joined()
  }

  /// Formats the entries in two columns.
  ///
  /// - Parameter width: the width of the first column; nil for the width of the entries.
  private static func list(_ entries: [(String, String)], _ width: Int? = nil) -> String {
    let width = (width ?? entries.map(\.0.count).max() ?? 0) + 2
    return entries.map { left, right in
      "  \(left)\(String(repeating: " ", count: width - left.count))\(right)\n"
    }.joined()
  }

  /// Returns the text in lines of at most that many columns, if the words allow it.
  package static func wrapped(_ text: String, to width: Int) -> String {
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
  /// - Parameter example: a verb of the command.
  package static func help(of name: String, example: String) -> Verb {
    Verb(
      "help", "print the help of a verb", [Operand("VERB", .optional, .verbs)], [],
      ["Without VERB, prints the help of the whole command."],
      [
        Example("\(name) help \(example)", "print the help of one verb"),
        Example("\(name) help", "print the help of all verbs"),
      ],
      action: "print the help"
    ) { invocation in
      let table = invocation.table
      guard let name = invocation.operands.first else {
        try invocation.output.write(Array(Help(table).long.utf8))
        return 0
      }
      guard let verb = table.verb(name) else {
        throw Failure.usage(
          "cannot help with '\(name)': there is no such verb; \(table.advice(instead: name))")
      }
      try invocation.output.write(Array(Help(table).long(verb).utf8))
      return 0
    }
  }
}
