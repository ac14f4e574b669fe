/// What declarations carry with them.
extension Rule {
  /// Every public symbol states its purpose.
  static let documentation = Rule("documentation") { file in
    guard file.isSwift, file.isSource else { return [] }
    return file.code.indices.compactMap { index in
      let words = file.words[index].map(\.text)
      let isPublic = words.prefix(4).contains { $0 == "public" || $0 == "open" }
      // Imports and extensions declare nothing, and `public private(set)` follows on a line.
      guard isPublic, startsDeclaration(file.code[index]),
        !words.contains("import"), !words.contains("extension")
      else { return nil }
      var above = index - 1
      while above >= 0, isAttribute(file.code[above]) { above -= 1 }
      let comment = above >= 0 ? file.comments[above].drop { $0 == " " } : ""
      return comment.hasPrefix("///") ? nil : (index + 1, "public and not documented")
    }
  }

  private static func startsDeclaration(_ code: String) -> Bool {
    let text = code.drop { $0 == " " }
    return text.hasPrefix("public ") || text.hasPrefix("open ") || text.hasPrefix("@")
      || ["final public", "static public", "@"].contains { text.hasPrefix($0) }
  }

  private static func isAttribute(_ code: String) -> Bool {
    let text = code.drop { $0 == " " }
    return text.hasPrefix("@") && !text.contains("public")
  }

  /// Where code asks the compiler to believe it, a comment gives the reason.
  static let reasons = Rule("reasons") { file in
    guard file.isSwift else { return [] }
    return file.code.indices.compactMap { index in
      let line = file.code[index]
      guard let word = ["@unchecked Sendable", "nonisolated(unsafe)"].first(where: line.contains)
      else { return nil }
      let hasReason = [index - 1, index, index + 1].contains { near in
        file.comments.indices.contains(near) && isPlainComment(file.comments[near])
      }
      return hasReason ? nil : (index + 1, "'\(word)' without a comment that says why it is safe")
    }
  }

  private static func isPlainComment(_ comment: String) -> Bool {
    let text = comment.drop { $0 == " " }
    return text.hasPrefix("// ")
  }

  /// A file of the rooms that hold everything up is named for its content: a type, or an extension
  /// and its topic, as in `Slot+Change`.
  static let fileNames = Rule("file names") { file in
    let rooms = [
      "WormholeSyscalls", "WormholePropertyLists", "WormholeContainerStorage", "Wormhole",
    ]
    guard file.isSwift, file.isSource, rooms.contains(file.room),
      let last = file.path.split(separator: "/").last, last != "Exports.swift"
    else { return [] }
    let name = last.dropLast(".swift".count)
    let kinds: Set<Substring> = ["class", "struct", "enum", "actor", "protocol", "extension"]
    // Helpers of a type, which are no part of the type, may be all the content of a file on its
    // topic.
    guard !last.contains("+") else { return [] }
    let holdsIt = file.words.contains { line in
      let words = line.map(\.text)
      guard let kind = words.firstIndex(where: kinds.contains) else { return false }
      return words[(kind + 1)...].prefix(3).contains(name)
    }
    return holdsIt ? [] : [(1, "holds no '\(name)'; name it for what it holds")]
  }

  /// What a monitor holds has a size, and is no closure: see there.
  ///
  /// A `Mutex` holds only the descriptors of WormholeSyscalls, which cannot be copied.
  static let monitors = Rule("monitors", in: \.code) { line, file in
    guard file.isSwift, file.isSource else { return nil }
    if line.contains("private let "), line.contains(" = Monitor(())") {
      return "a monitor of nothing; 'Monitor(0)' has a place of its own"
    }
    if file.room != "WormholeSyscalls", line.contains("Mutex(") || line.contains("Mutex<") {
      return "a mutex, in which the thread sanitizer finds false races; use a 'Monitor'"
    }
    let parts = line.split(separator: "Monitor<", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, "(@".contains(parts[1].first ?? " "), parts[1].contains("->") else {
      return nil
    }
    return "a closure in a monitor; put it into an 'Action'"
  }

  /// A test blocks or is asynchronous.
  ///
  /// A test that blocks a thread of the pool holds up all callers that wait for tasks. An
  /// asynchronous test would queue with the blocking tests, and again after each wait of its own.
  static let blocking = Rule("blocking tests") { file in
    guard file.isSwift, file.isTest, file.room != "ExamplePackage" else { return [] }
    var found: [(line: Int, message: String)] = []
    var isSuiteBlocking = false
    var test: (line: Int, isBlocking: Bool, isAsync: Bool)?
    for (index, line) in file.code.enumerated() {
      if line.contains("@Suite") { isSuiteBlocking = line.contains(".blocking") }
      if line.contains("@Test") { test = (index + 1, isSuiteBlocking, false) }
      guard var begun = test else { continue }
      begun.isBlocking = begun.isBlocking || line.contains(".blocking")
      begun.isAsync = begun.isAsync || line.contains(" async ")
      test = begun
      // The test's declaration continues to the beginning of its body.
      guard line.hasSuffix("{") || line.contains("func ") && line.contains("{") else { continue }
      test = nil
      if begun.isAsync == begun.isBlocking {
        found.append((begun.line, begun.isAsync ? "blocks and is asynchronous" : "may block"))
      }
    }
    return found
  }
}
