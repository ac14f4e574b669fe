import Foundation
import TestSupport
import TestTraits
import Testing

/// The container in which the package is developed on a Mac.
@Suite(.blocking) struct DevelopmentContainerTests {
  private struct Definition: Decodable {
    let image: String
    let postCreateCommand: String
    let `init`: Bool
  }

  private let definition: Definition
  private let readme: String

  init() throws {
    let file = [Programs.source, ".devcontainer", "devcontainer.json"].joined(separator: "/")
    definition = try JSONDecoder().decode(
      Definition.self, from: Data(contentsOf: URL(fileURLWithPath: file)))
    readme = try String(contentsOfFile: Programs.source + "/README.md", encoding: .utf8)
  }

  @Test func itsImageAndCommandsAreThoseOfREADME() throws {
    #expect(readme.contains("`\(definition.image)`"))
    let commands = definition.postCreateCommand.components(separatedBy: " && ")
    #expect(commands == ["swift run wormhole demo", "swift test"])
    for command in commands { #expect(readme.contains("`\(command)`"), "\(command)") }
    // Tests start processes whose parents end, and an init process must reap them.
    #expect(definition.`init`)
  }

  @Test func itsImageHasTheCompilerOfTheManifest() throws {
    let manifest = try String(contentsOfFile: Programs.source + "/Package.swift", encoding: .utf8)
    let version = try #require(manifest.firstMatch(of: /swift-tools-version: ([0-9.]+)/)?.1)
    #expect(definition.image == "swift:\(version)")
  }

  /// A developer on a Mac reads the limit before anything else is tried.
  @Test func theFirstScreenOfREADMENamesTheSystem() {
    let screen = readme.components(separatedBy: "\n").prefix(24).joined(separator: " ")
    #expect(screen.contains("Linux with Glibc only"))
  }
}
