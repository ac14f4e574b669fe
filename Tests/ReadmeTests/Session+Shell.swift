import TestSupport
import Testing
import WormholeSyscalls

extension Session {
  /// Runs all commands in one shell, one after the other, and compares their standard output.
  ///
  /// - Parameters:
  ///   - home: the directory that is the home and the working directory.
  ///   - programs: the folder in which the shell looks for programs first.
  ///   - texts: replacements for parts of commands that differ on the user's machine.
  ///   - compares: false if only the exit statuses matter: the first failure ends the shell.
  ///   - time: how long the shell may take without progress.
  func run(
    in home: String, programs: String, replacing texts: [String: String] = [:],
    comparing compares: Bool = true, within time: Duration = patience
  ) throws -> ProcessOutcome {
    let mark = "\u{1E}"
    var script = compares ? "cd\n" : "set -e\ncd\n"
    for exchange in exchanges {
      let command = texts.reduce(exchange.command) { $0.replacing($1.key, with: $1.value) }
      script += command + "\nprintf '\(mark)'\n"
    }
    let path = Processes.environment("PATH") ?? "/usr/bin:/bin"
    let outcome = try TestSupport.run(
      "sh", ["-c", script],
      environment: [
        "HOME=\(home)", "PATH=\(programs):\(path)", "LC_ALL=C.UTF-8", "WORMHOLE_GROUP=",
      ], within: time)
    let outputs = outcome.output.split(separator: mark, omittingEmptySubsequences: false)
    #expect(outputs.count == exchanges.count + 1, "\(outcome.output)\(outcome.errors)")
    for (exchange, output) in zip(exchanges, outputs) where compares {
      #expect(output == exchange.expected, "\(exchange)")
    }
    return outcome
  }
}
