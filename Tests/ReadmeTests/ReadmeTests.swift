import CommandLine
import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

@testable import WormholeCommand

/// What the README shows is what happens.
@Suite(.blocking) struct ReadmeTests {
  /// One shell runs them all, one after the other, as a person would.
  @Test func everyTranscriptIsTrueWordForWord() throws {
    let exchanges = try Readme().session.exchanges
    #expect(exchanges.count >= 10)
    let home = try TemporaryDirectory()
    let mark = "\u{1E}"
    let script = exchanges.map { $0.command + "\nprintf '\(mark)'\n" }.joined()
    let path = Processes.environment("PATH") ?? "/usr/bin:/bin"
    let outcome = try run(
      "sh", ["-c", script],
      environment: [
        "HOME=\(home.path)", "PATH=\(Programs.built):\(path)", "LC_ALL=C.UTF-8", "WORMHOLE_GROUP=",
      ])
    #expect(outcome.errors == "")
    let outputs = outcome.output.split(separator: mark, omittingEmptySubsequences: false)
    #expect(outputs.count == exchanges.count + 1)
    for (exchange, output) in zip(exchanges, outputs) {
      #expect(output == exchange.expected, "\(exchange)")
    }
  }

  @Test func theTableOfCommandsIsTheCommandsOwn() throws {
    let rows = Table.wormhole.verbs.map { "| `wormhole \($0.usage)` | \($0.summary) |" }
    #expect(try Readme().commands == rows)
  }

  @Test func everySwiftExampleIsAFileThatCompiles() throws {
    let examples = try Readme().blocks.filter { $0.language == "swift" }
    #expect(!examples.isEmpty)
    for example in examples {
      let file = try Descriptor.open(path: Programs.source + "/" + example.mark, [.readOnly])
      let text = String(decoding: try file.contents(), as: UTF8.self)
      #expect(text == example.lines.joined(separator: "\n") + "\n", "\(example.mark)")
    }
  }

  @Test func theMapNamesEveryRoomWithItsFolders() throws {
    let path = Programs.source + "/Sources"
    let sources = try Descriptor.open(path: path, [.readOnly, .directory])
    var rooms: [String: Set<String>] = [:]
    for name in try sources.names() {
      let room = try sources.open(name, [.readOnly, .directory])
      // A catalogue, and what C has beside its sources, are no folders of the room.
      let folders = try room.names().filter { !$0.contains(".") && $0 != "include" }
      rooms[name] = Set(folders)
    }
    #expect(try Readme().rooms == rooms)
  }

  @Test func theExampleDrives() throws {
    let folder = try TemporaryDirectory()
    let watching = try drive(in: folder.path + "/container")
    let hole = try Wormhole(directory: folder.path + "/container")
    #expect(try hole.channel("speed", of: Double.self).value == 88)
    watching.stop()
  }

  @Test func theExampleSaysWhatItPromises() {
    let full = WormholeError(.full, "put value into channel", "speed", because: "no space left")
    #expect(advice(on: full).sentence == "cannot put value into channel 'speed': no space left")
    #expect(advice(on: full).tryAgain)
    let refused = WormholeError(.refused, "open container", "here", because: "it is a link")
    #expect(!advice(on: refused).tryAgain)
  }
}
