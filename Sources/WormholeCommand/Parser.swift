/// Reads a command line by the table.
struct Parser {
  private var verb: Verb?
  private var options: [Invocation.Given] = []
  private var operands: [String] = []
  private var command: [String] = []

  /// What a command line asks for.
  enum Request {
    case verb(Invocation)
    case shortHelp(Verb?)
    case longHelp(Verb?)
    case version
  }

  /// How the rest is to be written, as far as it is known before anything can go wrong.
  static func output(for arguments: [String]) -> Output {
    let own = arguments.prefix { $0 != "--" }
    return Output(
      isJSON: own.contains("--json"), isQuiet: own.contains("--quiet"),
      isVerbose: own.contains("--verbose"))
  }

  static func parse(_ arguments: [String]) throws(Failure) -> Request {
    var parser = Parser()
    return try parser.read(arguments)
  }

  private mutating func read(_ arguments: [String]) throws(Failure) -> Request {
    var rest = arguments[...]
    while let word = rest.popFirst() {
      switch word {
      case "--":
        try readAfterDashes(rest)
        rest = []
      case "-h": return .shortHelp(verb)
      case "--help": return .longHelp(verb)
      case "--version": return .version
      case _ where Self.isOption(word): try readOption(word, &rest)
      case _ where verb == nil: verb = try find(word)
      default: operands.append(word)
      }
    }
    return .verb(try finish(Self.output(for: arguments)))
  }

  /// A dash alone is standard input, and a negative number a value.
  private static func isOption(_ word: String) -> Bool {
    guard word.utf8.count > 1, word.hasPrefix("-") else { return false }
    return word.hasPrefix("--")
      || !(word.dropFirst().first.map { $0.isNumber || $0 == "." } ?? true)
  }

  private func find(_ name: String) throws(Failure) -> Verb {
    guard let verb = Table.verb(name) else {
      throw .usage("cannot run '\(name)': there is no such verb; try 'wormhole --help'")
    }
    return verb
  }

  private mutating func readAfterDashes(_ rest: ArraySlice<String>) throws(Failure) {
    guard let verb else {
      guard let first = rest.first else { return }
      self.verb = try find(first)
      operands += rest.dropFirst()
      return
    }
    if verb.operands.last?.kind == .command {
      command = Array(rest)
    } else {
      operands += rest
    }
  }

  private mutating func readOption(
    _ word: String, _ rest: inout ArraySlice<String>
  ) throws(Failure) {
    let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
    let known = Table.options + (verb?.options ?? [])
    guard let option = known.first(where: { "--" + $0.name == parts[0] }) else {
      let help = verb.map { "wormhole help \($0.name)" } ?? "wormhole --help"
      throw .usage("cannot use '\(parts[0])': there is no such option; try '\(help)'")
    }
    guard option.isRepeated || !options.contains(where: { $0.name == option.name }) else {
      throw .usage("cannot use '--\(option.name)': it is given twice")
    }
    guard let argument = option.argument else {
      guard parts.count == 1 else {
        throw .usage("cannot use '\(word)': '--\(option.name)' takes nothing")
      }
      options.append(Invocation.Given(name: option.name, value: ""))
      return
    }
    guard let value = parts.count == 2 ? String(parts[1]) : rest.popFirst() else {
      throw .usage("cannot use '--\(option.name)': its \(argument.name) is missing")
    }
    if case .oneOf(_, let words) = argument, !words.contains(value) {
      let choice = words.joined(separator: ", ")
      throw .usage("cannot use '--\(option.name) \(value)': it is none of \(choice)")
    }
    options.append(Invocation.Given(name: option.name, value: value))
  }

  private func finish(_ output: Output) throws(Failure) -> Invocation {
    guard let verb else {
      throw .usage("cannot guess what to do: no verb given; try 'wormhole --help'")
    }
    let missing = verb.options.first { option in
      option.isRequired && !options.contains { $0.name == option.name }
    }
    if let missing {
      throw .usage(
        "cannot \(verb.name): --\(missing.name) is missing; try 'wormhole help \(verb.name)'")
    }
    let places = verb.operands.filter { $0.kind != .command }
    let least = places.reduce(0) { $0 + $1.least }
    let most = places.contains { $0.most == .max } ? Int.max : places.count
    if operands.count < least {
      // Those that may be left out come last.
      throw .usage(
        "cannot \(verb.name): \(places[operands.count].name) is missing; "
          + "try 'wormhole help \(verb.name)'")
    }
    if operands.count > most {
      throw .usage(
        "cannot \(verb.name): '\(operands[most])' is one word too many; "
          + "try 'wormhole help \(verb.name)'")
    }
    if verb.operands.last?.kind == .command, command.isEmpty {
      throw .usage("cannot \(verb.name): no command after '--'; try 'wormhole help \(verb.name)'")
    }
    return Invocation(verb, operands, command, output, options)
  }
}
