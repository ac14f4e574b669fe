import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The static command in a root that contains nothing else, as the image of *Running it* has it.
@Suite(.blocking, .notSanitized("it runs a release build")) struct StaticCommandTests {
  private let folder: TemporaryDirectory
  /// The path of the command in its root.
  private let command: String

  init() throws {
    folder = try TemporaryDirectory()
    let image = try #require(
      try Readme(Readme.catalogue + "/RunningIt.md").blocks.first { $0.mark == "image" })
    #expect(image.lines.count == 3)
    let copy = image.lines[1].split(separator: " ")
    command = String(copy[2])
    #expect(image.lines[2] == "ENTRYPOINT [\"\(command)\"]")
  }

  @Test func theImageKeepsAValue() throws {
    guard let inRoot = try prepared(for: "the image") else { return }
    #expect(try run("sh", ["-c", inRoot("\(command) put film M")]).status == .exited(0))
    let outcome = try run("sh", ["-c", inRoot("\(command) get film")])
    #expect(outcome.output == "M\n", "\(outcome.errors)")
  }

  /// The page needs no file beside the command, and no other host.
  @Test func thePageNeedsOnlyTheCommand() throws {
    guard let inRoot = try prepared(for: "the page of the static command") else { return }
    let server = try Running("sh", ["-c", inRoot("\(command) serve")])
    let address = try eventually("the address") { () -> Substring? in
      try server.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().first
    }
    let outcome = try run("sh", ["-c", inRoot("\(command) put film 'The General'")])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let parts = address.split(separator: "/")
    let connection = try WebConnection(port: Int(parts[1].split(separator: ":")[1])!)
    try connection.ask("/\(parts[2])/")
    let page = try connection.reply()
    #expect(page.status == 200)
    #expect(!page.body.contains(/(src|href|url|import)[=(" ]+(https?:)?\/\//))
    guard Browser.isInstalled(for: "the page of the static command in a browser") else { return }
    let browser = try Browser()
    try browser.open(String(address))
    try browser.wait("document.body.innerText.includes('The General')", "the value")
    try browser.wait("document.body.dataset.way === 'live'", "a stream")
  }

  /// Copies the command, and returns what runs a command in its root.
  private func prepared(for what: String) throws -> ((String) -> String)? {
    // The static build of the checks has a folder of its own, beside that of this build.
    let built = "\(Programs.built)/../../static/release/wormhole"
    guard (try? Descriptor.status(ofPath: built)) != nil else {
      skip(what, because: "no static command is built")
      return nil
    }
    guard Processes.effectiveUser == 0 else {
      skip(what, because: "only root can change the root of a process")
      return nil
    }
    let path = folder.path
    let outcome = try run(
      "sh", ["-c", "cd '\(path)' && mkdir -p root/proc root/var && cp '\(built)' root\(command)"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    return { line in
      """
      cd '\(path)' && exec unshare -m sh -c "mount --bind /proc root/proc &&
      export WORMHOLE_CONTAINER=/var/hole && exec chroot root \(line)"
      """
    }
  }
}
