import Syscalls
import TestSupport
import Testing
import Wormhole

/// What the README shows is what happens.
@Suite struct ReadmeTests {
  @Test func everyTranscriptIsTrueWordForWord() throws {
    let exchanges = try Readme().exchanges
    #expect(exchanges.count >= 2)
    for exchange in exchanges {
      // `swift run wormhole` builds it first; here it is built already.
      var words = exchange.command[...]
      if words.starts(with: ["swift", "run"]) { words = words.dropFirst(2) }
      let name = try #require(words.first)
      let outcome = try run(Programs.built(name), Array(words.dropFirst()))
      #expect(outcome.status == .exited(0))
      #expect(outcome.output == exchange.output, "\(exchange.command)")
    }
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

  @Test func theMapNamesEveryRoom() throws {
    let path = Programs.source + "/Sources"
    let rooms = try Descriptor.open(path: path, [.readOnly, .directory]).names()
    #expect(try Readme().rooms == Set(rooms))
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
