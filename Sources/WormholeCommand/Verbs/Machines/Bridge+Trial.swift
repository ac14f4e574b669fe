import WormholeCommandLine
import WormholeSyscalls

extension Option {
  static let messages = Option("messages", .any("N"), "number of messages of a trial")
  static let seed = Option("seed", .any("N"), "seed of a trial; random by default")
}

extension Invocation {
  /// The program that tries bridges: it starts servers, makes networks and kills processes, for
  /// which the command has no other use.
  private static let trialProgram = "WormholeTrial"

  /// Runs the program beside the command, with this process's output.
  func tryBridges() throws -> Int32 {
    var words = [try trialPath()]
    if let messages = try number(.messages, least: 60) { words += ["--messages", "\(messages)"] }
    if let seed = value(.seed) { words += ["--seed", seed] }
    if output.isQuiet { words.append("--quiet") }
    do {
      try Interruption.prepare()
      return try Programs.run(words, []).code
    } catch {
      throw Failure(neverRan: error)
    }
  }

  private func trialPath() throws(Failure) -> String {
    let process = "/proc/\(Processes.current)"
    let own = try? Descriptor.open(path: process, .readOnlyDirectory).readSymbolicLink("exe")
    let folder = (own ?? []).split(separator: UInt8(ascii: "/")).dropLast()
    let path = folder.map { "/" + String(decoding: $0, as: UTF8.self) }.joined()
    let program = "\(path)/\(Self.trialProgram)"
    guard (try? Processes.checkProgram(program)) != nil else {
      throw Failure(
        .noProgram, "bridge",
        "cannot try bridges between machines: the program '\(Self.trialProgram)' is not beside "
          + "this command; run 'swift build' in the package's directory, and the command that is "
          + "beside the program")
    }
    return program
  }
}
