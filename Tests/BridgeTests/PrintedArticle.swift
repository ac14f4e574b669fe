import TestSupport
import Testing
import WormholeSyscalls

/// The blocks of the article *Between machines*, by the mark in the comment before each, and a
/// directory in which they are files and commands.
///
/// Ports, hosts and directories are replaced by those of the test; the rest is as printed.
final class PrintedArticle {
  let folder: TemporaryDirectory
  /// The path of the program `nats-server`.
  let program: String
  private let blocks: [String: [String]]

  /// Nil, and a notice, where no server can be had, or no certificates.
  static func open(for what: String) throws -> PrintedArticle? {
    guard let program = try ServerProgram.path(for: what) else { return nil }
    guard Programs.installed("openssl") != nil else {
      skip(what, missing: "openssl")
      return nil
    }
    return try PrintedArticle(program)
  }

  private init(_ program: String) throws {
    self.program = program
    folder = try TemporaryDirectory()
    let path = Programs.source + "/Sources/Wormhole/Wormhole.docc/BetweenMachines.md"
    let text = String(
      decoding: try Descriptor.open(path: path, [.readOnly]).contents(), as: UTF8.self)
    blocks = Self.blocks(of: text)
  }

  private static func blocks(of text: String) -> [String: [String]] {
    var blocks: [String: [String]] = [:]
    var (mark, open): (String?, String?)
    for line in text.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
      if let name = open {
        if line == "```" { open = nil } else { blocks[name, default: []].append(line) }
      } else if line.hasPrefix("```") {
        open = mark ?? "no mark"
      }
      mark =
        line.hasPrefix("<!-- ") && line.hasSuffix(" -->")
        ? String(line.dropFirst(5).dropLast(4)) : nil
    }
    return blocks
  }

  struct Failed: Error, CustomStringConvertible { let description: String }

  /// The marks of all blocks.
  var marks: Set<String> { Set(blocks.keys) }

  /// A block, with replacements in their order.
  func text(_ mark: String, _ changes: [(String, String)] = []) throws -> String {
    guard let lines = blocks[mark] else {
      throw Failed(description: "the article has no block '\(mark)'")
    }
    return changes.reduce(lines.map { $0 + "\n" }.joined()) {
      $0.replacing($1.0, with: $1.1)
    }
  }

  /// Writes a block to a file.
  func write(
    _ mark: String, to name: String? = nil, _ changes: [(String, String)] = []
  ) throws {
    try folder.write(try text(mark, changes), to: name ?? mark)
  }

  /// The commands of a block: lines behind a dollar sign.
  ///
  /// - Parameter port: the port of the server or leaf in place of the usual one.
  func commands(
    _ mark: String, port: Int? = nil, _ changes: [(String, String)] = []
  ) throws -> [String] {
    var changes = changes + [("nats-server ", "'\(program)' ")]
    if let port {
      changes.append(("--token-file token", "--token-file token --nats nats://127.0.0.1:\(port)"))
    }
    return try text(mark, changes).split(separator: "\n").filter { $0.hasPrefix("$ ") }
      .map { String($0.dropFirst(2)) }
  }

  /// Runs commands in one shell, which ends at the first failure, and then ends what still runs.
  func run(_ commands: [String], root: String = "") throws -> ProcessOutcome {
    let started = commands.map { $0.hasSuffix(" &") ? $0 + "\npids=\"$pids $!\"" : $0 }
    let script =
      ["cd '\(folder.path)'", "pids=", "trap 'kill $pids 2>&- || :; wait' EXIT", "set -e"]
      + started
    return try TestSupport.run(
      "sh", ["-c", script.joined(separator: "\n")], environment: environment(root),
      within: .seconds(120))
  }

  /// Starts one command.
  func start(_ command: String, root: String = "") throws -> Running {
    try Running(
      "sh", ["-c", "cd '\(folder.path)' && exec " + command], environment: environment(root))
  }

  /// - Parameter root: the directory that stands for a machine.
  private func environment(_ root: String) -> [String] {
    let path = Processes.environment("PATH") ?? "/usr/bin:/bin"
    return [
      "PATH=\(Programs.built):\(path)", "LC_ALL=C.UTF-8", "WORMHOLE_GROUP=",
      "WORMHOLE_ROOT=\(folder.path)/\(root)",
    ]
  }
}
