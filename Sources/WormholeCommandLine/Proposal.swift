internal import WormholeSyscalls

/// The completions at the end of an incomplete command line.
package struct Proposal {
  package enum Kind: String {
    /// One of the listed words.
    case words
    case files, directories
    /// Another command with its arguments.
    case command
  }

  package struct Word {
    package let text: String
    package let help: String

    package init(_ text: String, _ help: String = "") {
      self.text = text
      self.help = help
    }
  }

  package private(set) var kind = Kind.words
  package private(set) var words: [Word] = []
  private let table: Table
  private var verb: Verb?
  private var operands: [String] = []
  private var given: [Invocation.Given] = []
  /// Whether options have ended.
  private var hasDashes = false

  /// - Parameter line: the words after the program's name; the last word is being typed.
  package init(_ table: Table, _ line: [String]) {
    self.table = table
    var before = line.dropLast()[...]
    let last = line.last ?? ""
    while let word = before.popFirst() {
      if word == "--", !hasDashes {
        hasDashes = true
        guard verb?.operands.last?.isCommand != true else {
          kind = .command
          return
        }
      } else if !hasDashes, word.begins(with: "-"), word != "-" {
        guard let option = option(word), option.argument != nil,
          !word.utf8.contains(UInt8(ascii: "="))
        else {
          note(word)
          continue
        }
        guard let value = before.popFirst() else {
          propose(option, last, after: "")
          return
        }
        given.append(Invocation.Given(name: option.name, value: value))
      } else if verb == nil {
        verb = table.verb(word)
        // After an unknown verb, nothing can be completed.
        guard verb != nil else { return }
      } else {
        operands.append(word)
      }
    }
    propose(last)
  }

  private func option(_ word: String) -> Option? {
    let name = word.parts(between: "=", most: 1, keepingEmpty: true)[0]
    return (table.options + (verb?.options ?? [])).first { "--" + $0.name == name }
  }

  private mutating func note(_ word: String) {
    guard let option = option(word) else { return }
    let parts = word.parts(between: "=", most: 1, keepingEmpty: true)
    given.append(Invocation.Given(name: option.name, value: parts.count == 2 ? parts[1] : ""))
  }

  // MARK: The word that is being typed

  private mutating func propose(_ last: String) {
    if !hasDashes, last.begins(with: "-") {
      let parts = last.parts(between: "=", most: 1, keepingEmpty: true)
      guard parts.count == 2, let option = option(last) else { return proposeOptions(last) }
      return propose(option, parts[1], after: parts[0] + "=")
    }
    guard let verb else {
      return offer(table.verbs.map { Word($0.name, $0.summary) }, last)
    }
    let places = verb.operands.filter { !$0.isCommand }
    guard let place = operands.count < places.count ? places[operands.count] : places.last,
      operands.count < places.count || place.most > 1
    else { return }
    switch place.values {
    case .any: break
    case .words(let words): offer(words.map { Word($0) }, last)
    case .files: kind = .files
    case .verbs: offer(table.verbs.map { Word($0.name, $0.summary) }, last)
    case .found(let find): offer(found(find), last)
    }
  }

  private mutating func proposeOptions(_ last: String) {
    let known = (verb?.options ?? []) + table.options
    let fitting = known.filter { option in
      option.isRepeatable || !given.contains { $0.name == option.name }
    }
    let answers = Table.answers.filter { verb == nil || $0.name != "--version" }
    offer(
      fitting.map { Word("--" + $0.name, $0.help) } + answers.map { Word($0.name, $0.help) }, last)
  }

  private mutating func propose(_ option: Option, _ last: String, after start: String) {
    switch option.argument {
    case .any, nil: break
    case .oneOf(_, let words): offer(words.map { Word(start + $0) }, start + last)
    case .file: kind = .files
    case .directory: kind = .directories
    case .found(_, let find):
      offer(found(find).map { Word(start + $0.text, $0.help) }, start + last)
    }
  }

  private mutating func offer(_ words: [Word], _ last: String) {
    self.words = words.filter { word in
      // While options are still accepted, a name that begins with a dash would be parsed as an
      // option.
      word.text.utf8.starts(with: last.utf8)
        && (hasDashes || !word.text.begins(with: "-") || last.begins(with: "-"))
    }
  }

  /// Returns the words found with the arguments so far.
  private func found(_ found: Found) -> [Word] {
    guard let verb else { return [] }
    let output = Output(table.name, isQuiet: true)
    return found(Invocation(table, verb, operands, [], output, given))
  }
}
