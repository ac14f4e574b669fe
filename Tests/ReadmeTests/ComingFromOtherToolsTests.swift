import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The lines of the article *Coming from other tools*, each of them run.
@Suite(.blocking, .notSanitized("it runs the command many times")) struct ComingFromOtherToolsTests
{
  private static let tools = ["nats", "redis-cli", "mosquitto", "kcat", "flock", "inotifywait"]

  /// Our lines, in the order of the page, each with the tool of its table.
  private static func rows() throws -> [(tool: String, line: String)] {
    var tool = ""
    var rows: [(tool: String, line: String)] = []
    for line in try Readme(Readme.catalogue + "/ComingFromOtherTools.md").text.split(
      separator: "\n")
    {
      if line.hasPrefix("### ") { tool = String(line.dropFirst(4)) }
      guard line.hasPrefix("| `") else { continue }
      // A bar inside of code is written with a backslash.
      let cells = line.replacing("\\|", with: "\u{1F}").split(
        separator: "|", omittingEmptySubsequences: false)
      let cell = cells[2].replacing("\u{1F}", with: "|")
      let code = try #require(cell.firstMatch(of: /^ `(.*)` $/), "\(line)")
      rows.append((tool, String(code.output.1)))
    }
    return rows
  }

  /// Whether the line waits until a person ends it.
  private static func waits(_ line: String) -> Bool {
    let verbs = ["watch", "observe", "receive", "work", "reply"]
    return verbs.contains { line.hasPrefix("wormhole \($0) ") }
      && !line.contains("--count") && !line.contains("--timeout")
  }

  @Test func everyToolHasItsLines() throws {
    let rows = try Self.rows()
    for tool in Self.tools { #expect(rows.count { $0.tool == tool } >= 4, "\(tool)") }
    #expect(Set(rows.map(\.tool)) == Set(Self.tools))
    for (_, line) in rows { #expect(line.contains("wormhole ")) }
  }

  @Test func everyLineOfOursDoesWhatItIsFor() throws {
    let stage = try Stage()
    let outcome = try stage.run(
      "mkdir incoming && printf 'one\\ntwo\\n' >jobs.txt && echo words >notes "
        + "&& wormhole put film before && wormhole put mode x && wormhole put seat.a 1")
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let root = ["WORMHOLE_ROOT=\(stage.directory.path)/groups"]
    var waiting: [(line: String, command: Running)] = []
    defer { for (_, command) in waiting { try? command.child.send(.kill) } }
    for (_, line) in try Self.rows() {
      if Self.waits(line) {
        // Another that waits under the same name, or for the same queue, would have its messages.
        let started = try stage.start("\(line) >>waiting", environment: root)
        if line.contains("reply") {
          // A member that has joined may not have its handler yet.
          try eventually("it replies") {
            try stage.run("wormhole request --to till ready").status == .exited(0)
          }
          waiting.append((line, started))
          continue
        }
        try eventually("it runs") {
          !(try stage.run("kill -0 \(started.child.process)").status.code != 0)
        }
        try started.child.send(.terminate)
        let ended = try started.outcome()
        #expect(ended.errors == "", "\(line)")
        continue
      }
      let outcome = try stage.run(line, environment: root)
      #expect(outcome.status == .exited(0), "\(line): \(outcome.errors)")
    }
    for (line, command) in waiting {
      #expect(try stage.run("kill -0 \(command.child.process)").status == .exited(0), "\(line)")
    }
  }

  /// The article recommends coordinated accesses in place of shared locks.
  @Test func readsShareAndAWriteExcludes() throws {
    let stage = try Stage()
    let root = ["WORMHOLE_ROOT=\(stage.directory.path)/groups"]
    _ = try stage.run("mkfifo pipe")
    let reader = try stage.start(
      "wormhole coordinate read absent -- sh -c 'echo in; read -r go <pipe'", environment: root)
    try eventually("a reader is in") { try reader.output == "in\n" }
    let shared = try stage.run(
      "wormhole coordinate read absent --timeout 20 -- echo too", environment: root)
    #expect(shared.output == "too\n", "\(shared.errors)")
    let excluded = try stage.run(
      "wormhole coordinate write absent --timeout 0.1 -- echo never", environment: root)
    #expect(excluded.status == .exited(75) && excluded.output == "")
    _ = try stage.run("echo go >pipe")
    _ = try reader.outcome()
  }
}
