import WormholeCommandLine

/// The options of several verbs; an option of one verb is beside that verb.
extension Option {
  static let namePrefix = Option("prefix", .any("P"), "beginning of the names to list")

  static let raw = Option("raw", nil, "do not add or remove a newline at the end")
  static let timeout = Option("timeout", .any("D"), "time limit, such as 5, 5s or 300ms")

  static let type = Option(
    "type", .oneOf("TYPE", ValueType.allCases.map(\.rawValue)),
    "type of the value: string, json, plist or data")
  static let power = Option(
    "power", nil, "sync to the disk, so that the change survives a power cut")

  static let exec = Option(
    "exec", .any("CMD"), "command to run in a shell, with the value as its input")

  static let now = Option("now", nil, "start with the current value")
  static let count = Option("count", .any("N"), "number of results after which to end")

  static let conflictStatus = Option(
    "conflict-exit-code", .any("N"), "exit status if the time limit passes; 75 by default")

  static let attempts = Option(
    "attempts", .any("N"), "number of attempts before a message becomes a dead letter")
  static let grace = Option(
    "grace", .any("D"), "time that CMD may run after a signal; 10s by default")
  static let joinAs = Option("as", .member("NAME"), "name to join under", isRequired: true)

  static let wake = Option("wake", nil, "start PEER if it is not running")

  static let from = Option("from", .member("NAME"), "name of the sender")
  static let kind = Option("kind", .any("KIND"), "kind of the message")
}

/// Checks of an operand in a list of words, and of options that exclude or require each other.
extension Invocation {
  /// Returns the first operand as one of a list of words; the refusal names the whole list.
  ///
  /// - Parameter refusal: the sentence between "cannot" and the list, for another operand.
  func word<Word: RawRepresentable<String> & CaseIterable>(
    separator: String = ", ", _ refusal: (String) -> String
  ) throws(Failure) -> Word {
    if let word = Word(rawValue: operands[0]) { return word }
    let words = Word.allCases.map(\.rawValue).joined(separator: separator)
    throw .usage("cannot \(refusal(operands[0])) \(words)")
  }

  /// Refuses an option beside any of the others.
  func exclude(_ option: Option, _ others: [Option]) throws(Failure) {
    guard has(option), let other = others.first(where: has) else { return }
    throw .usage(
      "cannot \(verb.action): --\(option.name) and --\(other.name) exclude each other; "
        + "give one of them")
  }

  /// Returns the only given option of the list; refuses two of them.
  func only(of options: [Option]) throws(Failure) -> Option? {
    let given = options.filter(has)
    if let first = given.first { try exclude(first, Array(given.dropFirst())) }
    return given.first
  }

  /// Refuses any of the others without one of the options.
  func require(_ options: Option..., for others: [Option]) throws(Failure) {
    guard !options.contains(where: has), let other = others.first(where: has) else { return }
    let required = options.map { "--\($0.name)" }.joined(separator: " or ")
    throw .usage("cannot \(verb.action): --\(other.name) requires \(required)")
  }
}
