import TestSupport
import TestTraits
import Testing
import WormholeCommandLine
import WormholeSyscalls

@testable import WormholeCommand

/// The units and the image of the article *Running it*.
@Suite(.blocking, .notSanitized("it runs other tools")) struct RunningItTests {
  private let article: Readme
  private let folder: TemporaryDirectory

  init() throws {
    article = try Readme(Readme.catalogue + "/RunningIt.md")
    folder = try TemporaryDirectory()
  }

  private var units: [(name: String, lines: [String])] {
    article.blocks.filter { $0.mark.hasPrefix("unit ") }.map {
      (String($0.mark.dropFirst("unit ".count)), $0.lines)
    }
  }

  private static let installed = "/usr/bin/wormhole"

  @Test func everyBlockIsAUnitOrTheImage() {
    #expect(units.count >= 5)
    #expect(article.blocks.count == units.count + 1)
  }

  @Test func theManagerAcceptsTheUnits() throws {
    guard Programs.installed("systemd-analyze") != nil else {
      return skip("the example units", missing: "systemd-analyze")
    }
    var names: [String] = []
    for (name, lines) in units {
      // The programs are not installed where the tests run.
      let text = lines.joined(separator: "\n").replacing(
        Self.installed, with: Programs.built("wormhole"))
      try folder.write(text + "\n", to: name)
      names.append(folder.path + "/" + name.replacing("@.", with: "@1."))
    }
    try folder.write(
      units.first { $0.name.contains("@") }!.lines.joined(separator: "\n")
        .replacing(Self.installed, with: Programs.built("wormhole")) + "\n",
      to: "converter@1.service")
    let outcome = try run("systemd-analyze", ["verify", "--man=no"] + names)
    // The manager of the machine may have troubles of its own.
    let complaints = outcome.errors.split(separator: "\n").filter { line in
      units.contains { line.contains($0.name.prefix { $0 != "@" && $0 != "." }) }
    }
    #expect(complaints.isEmpty, "\(complaints)")
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
  }

  @Test func theCommandsOfTheUnitsAreUnderstood() throws {
    let lines = units.flatMap(\.lines).filter { $0.hasPrefix("ExecStart=") }
    #expect(lines.count >= 4)
    for line in lines {
      let words = line.split(separator: " ").map(String.init)
      #expect(words[0] == "ExecStart=" + Self.installed)
      #expect(throws: Never.self, "\(line)") {
        _ = try Parser.parse(Array(words.dropFirst()), by: .wormhole)
      }
    }
  }
}
