import Syscalls

/// The `wormhole` command.
@main enum Command {
  static let version = "0.1.0"

  static func main() {
    #if FAULT_POINTS
      FaultPoints.arm()
    #endif
    do {
      try run(Array(CommandLine.arguments.dropFirst()))
    } catch {
      complain(error.sentence)
      Processes.exit(error.exit.rawValue)
    }
  }

  private static func run(_ arguments: [String]) throws(Failure) {
    switch arguments.first {
    case nil: throw Failure(.usage, "cannot guess what to do: no verb given; try 'wormhole --help'")
    case "--version": try say("wormhole \(version)\n")
    case "-h": try say(Help.short)
    case "--help": try say(Help.long)
    case "demo": try Demo.run()
    case let verb?:
      throw Failure(.usage, "cannot run '\(verb)': there is no such verb; try 'wormhole --help'")
    }
  }

  /// Data goes to standard output.
  static func say(_ text: String) throws(Failure) {
    do throws(Errno) {
      try StandardStream.output.write(text)
    } catch {
      throw Failure(.inputOutput, "cannot write to standard output: \(error)")
    }
  }

  /// Words about it go to standard error.
  private static func complain(_ sentence: String) {
    // Where standard error cannot be written there is nobody left to tell; the exit code says it.
    try? StandardStream.error.write("wormhole: \(sentence)\n")
  }
}

/// Why the command ends without having done what it was asked to.
struct Failure: Error {
  let exit: ExitCode
  let sentence: String

  init(_ exit: ExitCode, _ sentence: String) {
    self.exit = exit
    self.sentence = sentence
  }
}

/// What the command tells the shell, by the numbers of sysexits(3).
enum ExitCode: Int32 {
  case usage = 64
  case software = 70
  case inputOutput = 74
}
