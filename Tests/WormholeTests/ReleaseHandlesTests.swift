import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A release build ends a variable's life with its last use.
@Suite(.blocking, .notSanitized("it builds for release")) struct ReleaseHandlesTests {
  /// A program that retains no subscription, and still receives.
  private static let program = """
    import Wormhole

    @main struct Program {
      static func main() async throws {
        try begin(CommandLine.arguments[1])
        try await Task.sleep(for: .seconds(600))
      }

      static func begin(_ directory: String) throws {
        let container = try SharedContainer(directory: directory)
        let watching = try container.channel("number", of: Int.self).watch { snapshot in
          try? container.channel("seen", of: Int.self).put(snapshot.value ?? 0)
        }
        let member = try container.join(as: "watch")
        let receiving = try member.receive(Int.self) { number, _ in
          try container.channel("received", of: Int.self).put(number)
        }
        let responding = member.respond(to: Int.self) { $0 + 1 }
        try container.channel("ready").put(true)
      }
    }
    """

  @Test func whatWasLetGoOfIsHeardInAReleaseBuild() throws {
    guard let compiler = Programs.installed("swiftc") else {
      return skip("a release build that hears", missing: "swiftc")
    }
    let folder = try TemporaryDirectory(isPlain: true)
    try folder.write(Self.program, to: "Program.swift")
    // Only the user of the module is compiled, because lifetimes end there.
    let outcome = try run(
      compiler,
      [
        "-O", "-swift-version", "6", "-parse-as-library", "-suppress-warnings",
        "-I", Programs.built + "/Modules",
        "-Xcc", "-fmodule-map-file=\(Programs.built)/WormholeCLinux.build/module.modulemap",
        "-Xcc", "-fmodule-map-file=\(Programs.built)/WormholeCChecksum.build/module.modulemap",
        "-module-cache-path", folder.path + "/cache", "-o", folder.path + "/program",
        folder.path + "/Program.swift",
      ] + (try objects()), within: .seconds(240))
    try #require(outcome.status == .exited(0), "\(outcome.errors)")
    let meeting = try Meeting()
    let program = try Running(folder.path + "/program", [meeting.path])
    let container = meeting.container
    try eventually("it is ready") { try container.channel("ready").value == true }
    for number in 1...2 {
      try container.channel("number").put(number)
      try container.peer("watch").send(number, .quick())
      #expect(
        try container.peer("watch").request(number, as: Int.self, within: .seconds(30))
          == number + 1)
      try eventually("it has heard") {
        try container.channel("seen", of: Int.self).value == number
          && container.channel("received", of: Int.self).value == number
      }
    }
    try program.child.send(.kill)
    _ = try program.outcome()
  }

  /// The module's object files, from the list of files that a program of the package was linked
  /// with.
  private func objects() throws -> [String] {
    let rooms = [
      "Wormhole", "WormholeContainerStorage", "WormholePropertyLists", "WormholeSyscalls",
      "WormholeCLinux", "WormholeCChecksum",
    ]
    let list = Programs.built("TestPeer") + ".product/Objects.LinkFileList"
    let words = String(
      decoding: try Descriptor.open(path: list, [.readOnly]).contents(), as: UTF8.self)
    return words.split(whereSeparator: \.isNewline).map { $0.filter { $0 != "'" } }
      .filter { object in rooms.contains { object.contains("/\($0).build/") } }
  }
}
