import WormholeSyscalls

/// A text that shows commands and their output, and a directory in which the commands are run.
///
///     $ a command
///     what it writes to standard output
///     ! what it writes to standard error
///     [its status, unless that is 0]
///
/// Parts that differ from run to run are written as TIME, N and DIR.
package struct Session: Sendable {
  package struct Exchange: Sendable, CustomStringConvertible {
    package let command: String
    package var expected: String
    package var description: String { "$ " + command }
  }

  package let exchanges: [Exchange]

  package init(_ lines: [String]) {
    var exchanges: [Exchange] = []
    for line in lines where !line.hasPrefix("#") {
      if line.hasPrefix("$ ") {
        exchanges.append(Exchange(command: String(line.dropFirst(2)), expected: ""))
      } else if !exchanges.isEmpty, !line.isEmpty {
        exchanges[exchanges.count - 1].expected += line + "\n"
      }
    }
    self.exchanges = exchanges
  }

  /// A session stored below `Fixtures`.
  package init(fixture path: String) throws {
    let text = try Fixture.text(path)
    self.init(text.split(separator: "\n").map(String.init))
  }
}

/// A directory of its own in which shell commands are run, with this package's programs in the
/// path.
package final class Stage: Sendable {
  package let directory: TemporaryDirectory
  package var container: String { directory.path + "/hole" }

  package init() throws { directory = try TemporaryDirectory() }

  /// How the environment names the container, and the built programs.
  package var environment: [String] {
    let path = Processes.environment("PATH") ?? "/usr/bin:/bin"
    return [
      "PATH=\(Programs.built):\(path)", "WORMHOLE_CONTAINER=\(container)", "WORMHOLE_GROUP=",
      "STAGE=\(directory.path)", "LC_ALL=C.UTF-8",
    ]
  }

  package func run(_ command: String, environment more: [String] = []) throws -> ProcessOutcome {
    try TestSupport.run(
      "sh", ["-c", "cd \"$STAGE\" && " + command], environment: environment + more)
  }

  package func start(_ command: String, environment more: [String] = []) throws -> Running {
    try Running("sh", ["-c", "cd \"$STAGE\" && exec " + command], environment: environment + more)
  }

  /// The output of a command, in the form of a session.
  package func transcript(_ command: String) throws -> String {
    let outcome = try run(command)
    var text = outcome.output
    if !text.isEmpty, text.last != "\n" { text += "\n" }
    for line in outcome.errors.split(separator: "\n") { text += "! \(line)\n" }
    if outcome.status.code != 0 { text += "[\(outcome.status.code)]\n" }
    return normal(text)
  }

  package func normal(_ text: String) -> String {
    text.replacing(container, with: "DIR")
      .replacing(directory.path, with: "STAGE")
      .replacing(/process [0-9]+/, with: "process N")
      .replacing(/"(from|writer)":"[^"]*"/) { "\"\($0.output.1)\":\"wormhole (N)\"" }
      .replacing(/[0-9-]+T[0-9:]+(\.[0-9]+)?Z/, with: "TIME")
      .replacing(/-CONT [0-9]+/, with: "-CONT N")
  }

  /// All files of the container with their checksums, except locks, which only record the last
  /// holder, and the stored size of an inbox, which is an estimate.
  package func state() throws -> String {
    let list =
      "find . -type f ! -path '*/lock/*' ! -name room | sort "
      + "| while read -r f; do cksum \"$f\"; done"
    return try run("[ ! -d \"$WORMHOLE_CONTAINER\" ] || (cd \"$WORMHOLE_CONTAINER\" && \(list))")
      .output
  }
}
