import Syscalls

/// The `wormhole` command.
@main enum Command {
  static let version = "0.1.0"

  static func main() {
    #if FAULT_POINTS
      FaultPoints.arm()
    #endif
    // A pipe that nobody reads any more is an error like others, and told as none.
    Signals.ignoreBrokenPipes()
    let (arguments, damaged) = arguments()
    let output = Parser.output(for: arguments)
    do {
      if let damaged {
        throw Failure.usage(
          "cannot use argument \(damaged): it is not UTF-8; hand the value on standard input")
      }
      Processes.exitAtOnce(try run(arguments, output))
    } catch is ClosedPipe {
      Processes.exitAtOnce(ClosedPipe.status)
    } catch {
      Interruption.settle()
      let failure = Failure(error)
      output.tell(failure)
      Processes.exitAtOnce(failure.status)
    }
  }

  private static func run(_ arguments: [String], _ output: Output) throws -> Int32 {
    let text: String
    switch try Parser.parse(arguments) {
    case .verb(let invocation): return try invocation.verb.run(invocation)
    case .shortHelp(let verb): text = verb.map(Help.short) ?? Help.short
    case .longHelp(let verb): text = verb.map(Help.long) ?? Help.long
    case .version: text = "wormhole \(version)\n"
    }
    try output.write(Array(text.utf8))
    return 0
  }

  /// The words of the command line, and the place of the first that is no UTF-8: as a string it
  /// would silently be another.
  private static func arguments() -> (words: [String], damaged: Int?) {
    var words: [String] = []
    for place in 1..<max(1, Int(CommandLine.argc)) {
      guard let argument = CommandLine.unsafeArgv[place] else { break }
      guard let word = String(validatingCString: argument) else { return (words, place) }
      words.append(word)
    }
    return (words, nil)
  }
}
