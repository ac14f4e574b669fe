internal import WormholeSyscalls

/// A parser of command lines by the table.
package struct Parser {
  private let table: Table
  private var verb: Verb?
  private var options: [Invocation.Given] = []
  private var operands: [String] = []
  private var command: [String] = []
  /// Whether the last operand is a truth value, if all operands are given.
  private var hasTruth = false
  private var hasDashes = false

  /// Returns the form of the output, as far as it is known before anything can fail.
  package static func output(of table: Table, for arguments: [String]) -> Output {
    let own = arguments.prefix { $0 != "--" }
    return Output(
      table.name, isJSON: own.contains("--json"), isQuiet: own.contains("--quiet"),
      isVerbose: own.contains("--verbose"))
  }

  package static func parse(
    _ arguments: [String], by table: Table
  ) throws(Failure) -> CommandRequest {
    var parser = Parser(table)
    return try parser.read(arguments)
  }

  private init(_ table: Table) { self.table = table }

  private mutating func read(_ arguments: [String]) throws(Failure) -> CommandRequest {
    var rest = arguments[...]
    while let word = rest.popFirst() {
      switch word {
      case "--":
        hasDashes = true
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
    return .verb(try finish(Self.output(of: table, for: arguments)))
  }

  /// A single dash is standard input, and a negative number is a value.
  private static func isOption(_ word: String) -> Bool {
    guard word.utf8.count > 1, word.begins(with: "-") else { return false }
    return word.begins(with: "--")
      || !(word.dropFirst().first.map { $0.isNumber || $0 == "." } ?? true)
  }

  private func find(_ name: String) throws(Failure) -> Verb {
    guard let verb = table.verb(name) else {
      throw .usage("cannot run '\(name)': there is no such verb; \(table.advice(instead: name))")
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
    if verb.operands.last?.isCommand == true {
      command = Array(rest)
    } else {
      operands += rest
    }
  }

  private mutating func readShorthand(_ word: String) throws(Failure) -> Bool {
    guard let shorthand = verb?.shorthands[word] else { return false }
    let name = shorthand.option.name
    guard !options.contains(where: { $0.name == name }) else {
      throw .usage("cannot use '\(word)': '--\(name)' is given already")
    }
    options.append(Invocation.Given(name: name, value: shorthand.value))
    hasTruth = hasTruth || shorthand.isTruth
    return true
  }

  private mutating func readOption(
    _ word: String, _ rest: inout ArraySlice<String>
  ) throws(Failure) {
    let parts = word.parts(between: "=", most: 1, keepingEmpty: true)
    let known = table.options + (verb?.options ?? [])
    guard let option = known.first(where: { "--" + $0.name == parts[0] }) else {
      if try readShorthand(word) { return }
      if let failure = misplacedCommand { throw failure }
      let help = verb.map { "\(table.name) help \($0.name)" } ?? "\(table.name) --help"
      let guess = Spelling.guess(parts[0], among: known.map { "--" + $0.name })
      throw .usage(
        "cannot use '\(parts[0])': there is no such option; "
          + (guess.map { "did you mean '\($0)'?" } ?? "try '\(help)'"))
    }
    guard option.isRepeatable || !options.contains(where: { $0.name == option.name }) else {
      throw .usage("cannot use '--\(option.name)': it is given twice")
    }
    guard let argument = option.argument else {
      guard parts.count == 1 else {
        throw .usage("cannot use '\(word)': '--\(option.name)' takes no argument")
      }
      options.append(Invocation.Given(name: option.name, value: ""))
      return
    }
    guard let value = parts.count == 2 ? parts[1] : rest.popFirst() else {
      throw .usage("cannot use '--\(option.name)': its \(argument.name) is missing")
    }
    if case .oneOf(_, let words) = argument, !words.contains(value) {
      let choice = words.joined(separator: ", ")
      throw .usage("cannot use '--\(option.name) \(value)': the choices are \(choice)")
    }
    options.append(Invocation.Given(name: option.name, value: value))
  }

  /// The error of a command line with a command that has no `--` before it.
  private var misplacedCommand: Failure? {
    guard let verb, let last = verb.operands.last, last.isCommand, last.name == "CMD", !hasDashes
    else { return nil }
    let most = verb.operands.dropLast().reduce(0) { $1.most == .max ? .max : $0 + $1.most }
    guard operands.count > most else { return nil }
    return .usage(
      "cannot \(verb.action): unexpected argument '\(operands[most])'; "
        + "put '--' before the command")
  }

  private mutating func finish(_ output: Output) throws(Failure) -> Invocation {
    guard let verb else {
      throw .usage("cannot run: no verb is given; try '\(table.name) --help'")
    }
    let missing = verb.options.first { option in
      option.isRequired && !options.contains { $0.name == option.name }
    }
    if let missing {
      throw .usage(
        "cannot \(verb.action): --\(missing.name) is missing; "
          + "try '\(table.name) help \(verb.name)'")
    }
    let places = verb.operands.filter { !$0.isCommand }
    let least = places.reduce(0) { $0 + $1.least }
    let most = places.contains { $0.most == .max } ? Int.max : places.count
    if operands.count < least {
      let required = places.filter { $0.least > 0 }
      throw .usage(
        "cannot \(verb.action): \(required[operands.count].name) is missing; "
          + "try '\(table.name) help \(verb.name)'")
    }
    if let misplacedCommand { throw misplacedCommand }
    if operands.count > most {
      throw .usage(
        "cannot \(verb.action): unexpected argument '\(operands[most])'; "
          + "try '\(table.name) help \(verb.name)'")
    }
    if verb.operands.last?.kind == .command, command.isEmpty {
      throw .usage(
        hasDashes
          ? "cannot \(verb.action): no command after '--'; try '\(table.name) help \(verb.name)'"
          : "cannot \(verb.action): no command is given; put '--' before the command")
    }
    // Without a value on the command line, the last operand is a name.
    if hasTruth, operands.count == places.count, let last = operands.indices.last {
      switch operands[last].lowercased() {
      case "yes", "true", "1": operands[last] = "true"
      case "no", "false", "0": operands[last] = "false"
      default: throw .usage("cannot use '-bool': '\(operands[last])' is neither yes nor no")
      }
    }
    return Invocation(table, verb, operands, command, output, options)
  }
}

/// The request of a command line.
package enum CommandRequest {
  case verb(Invocation)
  case shortHelp(Verb?)
  case longHelp(Verb?)
  case version
}
