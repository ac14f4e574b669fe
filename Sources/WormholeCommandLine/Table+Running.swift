import WormholeSyscalls

extension Table {
  /// Runs the request of this process's command line, and ends the process.
  ///
  /// - Parameters:
  ///   - verb: the verb if the first word is an option, or no word is given.
  ///   - finish: runs after the verb, and before the process ends.
  package func main(
    defaulting verb: String? = nil, finish: () -> Void = {}
  ) -> Never {
    #if FAULT_POINTS
      FaultPoints.arm()
    #endif
    // A pipe that nobody reads any more is an error like others, and told as none; so is a file
    // that would be larger than the shell allows.
    Signals.failRefusedWrites()
    Signals.quitQuietly()
    StandardStream.keepNumbers()
    var (arguments, damaged) = Self.arguments()
    if let verb, arguments.first?.begins(with: "-") != false,
      !Self.answers.contains(where: { $0.name == arguments.first })
    {
      arguments.insert(verb, at: 0)
    }
    let output = Parser.output(of: self, for: arguments)
    do {
      if let damaged {
        throw Failure.usage(
          "cannot use argument \(damaged): not UTF-8; pass the value on standard input")
      }
      let status = try run(arguments, output)
      finish()
      Processes.exitAtOnce(status)
    } catch is ClosedPipe {
      finish()
      Processes.exitAtOnce(ClosedPipe.status)
    } catch {
      Interruption.settle()
      let failure = Failure(error)
      output.tell(failure)
      finish()
      Processes.exitAtOnce(failure.status)
    }
  }

  private func run(_ arguments: [String], _ output: Output) throws -> Int32 {
    let help = Help(self)
    let text: String
    switch try Parser.parse(arguments, by: self) {
    case .verb(let invocation): return try invocation.verb.run(invocation)
    case .shortHelp(let verb): text = verb.map(help.short) ?? help.short
    case .longHelp(let verb): text = verb.map(help.long) ?? help.long
    case .version: text = "\(name) \(version)\n"
    }
    try output.write(Array(text.utf8))
    return 0
  }

  /// Returns the command-line arguments, and the position of the first argument that is not UTF-8:
  /// as a string, the argument would silently have another value.
  private static func arguments() -> (words: [String], damaged: Int?) {
    var words: [String] = []
    for argument in Processes.arguments {
      guard let word = String(validatingCString: argument) else { return (words, words.count + 1) }
      words.append(word)
    }
    return (words, nil)
  }
}
