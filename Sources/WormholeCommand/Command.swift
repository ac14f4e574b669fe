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
    let arguments = Array(CommandLine.arguments.dropFirst())
    let output = Parser.output(for: arguments)
    do {
      Processes.exit(try run(arguments, output))
    } catch is ClosedPipe {
      Processes.exit(ClosedPipe.status)
    } catch {
      let failure = Failure(error)
      output.tell(failure)
      Processes.exit(failure.status)
    }
  }

  private static func run(_ arguments: [String], _ output: Output) throws -> Int32 {
    try checkArguments()
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

  /// What is no UTF-8 has become something else already, silently.
  private static func checkArguments() throws(Failure) {
    for place in 0..<Int(CommandLine.argc) {
      guard let argument = CommandLine.unsafeArgv[place] else { return }
      guard String(validatingCString: argument) == nil else { continue }
      throw .usage(
        "cannot use argument \(place): it is not UTF-8; hand the value on standard input")
    }
  }
}
