import TestSupport

/// Rules for the text of every file.
extension Rule {
  static let lineLength = Rule("line length", in: \.lines) { line, file in
    // A table in Markdown cannot be broken.
    if file.path.hasSuffix(".md"), line.hasPrefix("|") { return nil }
    guard line.utf8.count > 100, line.count > 100 else { return nil }
    return "\(line.count) columns; 100 are the most"
  }

  static let whitespace = Rule("white space") { file in
    var found: [(line: Int, message: String)] = []
    for (index, line) in file.lines.enumerated() {
      if line.contains("\t") { found.append((index + 1, "a tab")) }
      if line.utf8.last == UInt8(ascii: " ") { found.append((index + 1, "a space at the end")) }
      if line.utf8.contains(UInt8(ascii: "\r")) { found.append((index + 1, "a carriage return")) }
    }
    if !file.endsInNewline { found.append((file.lines.count, "does not end in one line break")) }
    return found
  }

  static let fileLength = Rule("file length") { file in
    guard file.isSwift, file.lines.count > 450 else { return [] }
    return [(file.lines.count, "longer than 450 lines: which noun deserves a file of its own?")]
  }

  /// Nothing is left lying about for later.
  static let debris = Rule("debris", in: \.comments) { line, file in
    guard file.isSwift else { return nil }
    let words = ["TODO", "FIXME", "XXX", "HACK", "swiftlint:", "swift-format-ignore"]
    return words.first { line.contains($0) }.map { "'\($0)': do it, or let it be" }
  }

  /// Output goes through standard streams; the rest was for debugging.
  static let printing = Rule("printing") { word, file in
    guard word.isCalled, word.owner == nil, word.previous != "func", file.isSource,
      file.room != "WormholeBenchmarks", printers.contains(word.text)
    else { return nil }
    return "'\(word.text)': write to StandardStream"
  }

  private static let printers: Set<Substring> = ["print", "debugPrint", "dump", "NSLog"]

  /// Swift combines a slash and the accent after it to one character, which is not a slash.
  static let bytes = Rule("bytes") { word, file in
    let rest: Set = ["WormholePropertyLists", "WormholeBenchmarks", "WormholeStress"]
    guard file.isSource, !rest.contains(file.room), letters.contains(word.text) else { return nil }
    return "'\(word.text)' compares letters, and names and paths are bytes: take 'begins' or 'ends'"
  }

  private static let letters: Set<Substring> = ["hasPrefix", "hasSuffix"]

  /// Unused code is in the history; a comment is for words.
  static let deadCode = Rule("dead code", in: \.comments) { line, file in
    guard file.isSwift else { return nil }
    let text = line.drop { $0 == " " }
    // Documentation may show code.
    guard text.hasPrefix("//"), !text.hasPrefix("///") else { return nil }
    let words = text.drop { $0 == "/" || $0 == " " }
    let starts = ["let ", "var ", "func ", "return ", "if ", "guard ", "for ", "try ", "import "]
    let looksLikeCode =
      words == "}" || words.hasSuffix(" {") || words.hasSuffix(")") && words.contains(" = ")
      || starts.contains { words.hasPrefix($0) } && (words.contains(" = ") || words.contains("()"))
    return looksLikeCode ? "looks like code: '\(words)'" : nil
  }

  /// No path here depends on the arrangement of one machine.
  static let machinePaths = Rule("machine paths", in: \.lines) { line, _ in
    let known: Set<Substring> = [
      "tmp", "proc", "dev", "etc", "usr", "bin", "sys", "var", "run",
      "channels", "system", "staging", "damaged", "members", "notices", "lock", "live",
      "Sources", "Tests", "Fixtures",
    ]
    guard line.utf8.contains(UInt8(ascii: "/")) else { return nil }
    var before: Character = " "
    var rest = line[...]
    while let first = rest.first {
      if first == "/", "\"'`( =:<".contains(before) {
        let name = rest.dropFirst().prefix { $0.isLetter || $0.isNumber || "._-".contains($0) }
        let isPath = rest.dropFirst(1 + name.count).first == "/"
        if isPath, !name.isEmpty, !known.contains(name) {
          return "'/\(name)/…' is there on one machine only"
        }
      }
      before = first
      rest = rest.dropFirst()
    }
    return nil
  }

  /// The package is complete in itself; only the homes of its language are named.
  static let hosts = Rule("hosts", in: \.lines) { line, file in
    let known: Set<Substring> = [
      "swift.org", "www.swift.org", "docs.swift.org",
      // Names of the machine itself, and of hosts without an address.
      "127.0.0.1", "localhost", "hub.example", "s1.example", "s2.example", "s3.example", "ADDRESS",
    ]
    // Every property list in XML names the host in its second line; no program contacts it.
    let doctype = "www.apple.com"
    // Every picture in SVG names this host as its name space; no program contacts it either.
    let nameSpace = "www.w3.org"
    guard line.contains("://") else { return nil }
    for start in line.indices where line[start...].hasPrefix("://") {
      let host = line[start...].dropFirst(3).prefix {
        $0.isLetter || $0.isNumber || ".-".contains($0)
      }
      let isKnown = known.contains(host) || host == doctype || String(host) == Project.host
      let isPicture = host == nameSpace && file.path.hasSuffix(".svg")
      if !host.isEmpty, !isKnown, !isPicture { return "'\(host)' is outside" }
    }
    return nil
  }
}
