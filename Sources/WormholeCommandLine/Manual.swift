internal import WormholeSyscalls

/// The manual page, in the macros of man(7).
package struct Manual {
  private let table: Table

  package init(_ table: Table) { self.table = table }

  package var page: String {
    let verbs = table.verbs.map(section).joined()
    let forms = table.forms()
    return """
      .TH \(table.name.uppercased()) 1 "" "\(table.name) \(table.version)" "User Commands"
      .SH NAME
      \(table.name) \\- \(table.summary)
      .SH SYNOPSIS
      \(synopsis)
      .SH DESCRIPTION
      \(table.details.joined(separator: "\n"))
      Data goes to standard output, and messages go to standard error.
      A dash stands for standard input, and two dashes end the options.
      .SH VERBS
      \(verbs).SH OPTIONS
      All verbs take these options.
      \(Self.entries(table.options.map { ($0.usage, $0.help) } + Table.answers)).SH ENVIRONMENT
      \(Self.entries(table.variables)).SH EXIT STATUS
      \(Self.entries(table.statuses))\(placeholders)\(forms.isEmpty ? "" : objects(forms))
      """
  }

  /// The synopsis, with option names in bold and their arguments in italics.
  private var synopsis: String {
    let words = "\(table.name) \(table.synopsis) VERB ...".split(separator: " ").map { word in
      let text = word.drop { $0 == "[" }
      let name = text.prefix { $0 != "]" }
      let font =
        name.begins(with: "-") || name == table.name
        ? "B" : name.contains { $0.isLetter } && name.uppercased() == name ? "I" : "R"
      let styled =
        font == "R" ? Self.escaped(String(name)) : "\\f\(font)\(Self.escaped(String(name)))\\fR"
      return word.prefix(word.count - text.count) + styled + text.dropFirst(name.count)
    }
    return words.joined(separator: " ")
  }

  private func section(_ verb: Verb) -> String {
    var text = ".SS \(Self.escaped(table.usage(of: verb), quoted: true))\n"
    text += verb.details.map { Self.paragraph($0) }.joined(separator: ".PP\n")
    text += Self.entries(verb.options.map { ($0.usage, $0.help) })
    text += Self.entries(verb.examples.map { ($0.line, $0.words) })
    return text
  }

  private var placeholders: String {
    let entries = table.placeholders()
    guard !entries.isEmpty else { return "" }
    return ".SH FORMATS\nThe argument of \\-\\-format has these placeholders.\n"
      + Self.entries(entries.map { ($0.name, $0.help) })
  }

  private func objects(_ forms: [ObjectForm]) -> String {
    var text = ".SH OBJECTS\nWith \\-\\-json, each line is an object of one of these forms.\n"
    text += "Each object has all keys of its form, and null for absent values.\n"
    for form in forms {
      text += ".SS \(Self.escaped(form.name))\n" + Self.paragraph(Self.sentence(form.summary))
      text += Self.entries(form.keys)
    }
    return text
  }

  private static func entries(_ entries: [(String, String)]) -> String {
    entries.map { ".TP\n\\fB\(escaped($0))\\fR\n" + paragraph(sentence($1)) }.joined()
  }

  /// Returns the text with a capital letter at the start and a full stop at the end.
  private static func sentence(_ words: String) -> String {
    words.prefix(1).uppercased() + words.dropFirst() + "."
  }

  /// Returns the text with each sentence on a line of its own, as the formatter prefers.
  private static func paragraph(_ text: String) -> String {
    var lines = ""
    for word in text.split(separator: " ") {
      let escaped = escaped(String(word))
      let startsLine = lines.isEmpty || lines.last == "\n"
      // At the beginning of a line these characters would start a macro.
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
  package static func manual(of name: String) -> Verb {
    Verb(
      "manual", "print the manual page", [], [],
      ["The page is in the format of man(1), which reads a page from a pipe or a file."],
      [
        Example("\(name) manual | man -l -", "show the page"),
        Example("\(name) manual >\(name).1", "store the page in a file"),
      ],
      action: "print the manual page"
    ) { invocation in
      try invocation.output.write(Array(Manual(invocation.table).page.utf8))
      return 0
    }
  }
}
