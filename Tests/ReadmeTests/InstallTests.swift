import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The lines of README that install the command and the library, run as they are shown.
@Suite(.blocking, .notSanitized("it builds for release")) struct InstallTests {
  /// A repository of the present sources stands in for the address.
  ///
  /// It has the tag that the manifest asks for. The program's session uses the installed command.
  @Test(.enabled(if: TestRun.isLong, "WORMHOLE_LONG=1 lets it run"))
  func theInstallLinesInstallTheCommandAndTheLibrary() throws {
    for tool in ["git", "swift"] where Programs.installed(tool) == nil {
      return skip("the install lines", missing: tool)
    }
    let home = try TemporaryDirectory(isPlain: true)
    let programs = "\(home.path)/.local/bin"
    let origin = "\(home.path)/origin/wormhole.git"
    let texts = [Project.address ?? Project.placeholder: origin]
    try makeRepository(at: origin)
    let readme = try Readme()

    let installed = try readme.session("install").run(
      in: home.path, programs: programs, replacing: texts, comparing: false, within: long)
    try #require(installed.status == .exited(0), "\(installed.output)\(installed.errors)")
    let version = try run(programs + "/wormhole", ["--version"])
    #expect(version.output.hasPrefix("wormhole "))

    let package = home.path + "/package"
    try write(readme.block("manifest"), replacing: texts, to: package + "/Package.swift")
    try write(
      readme.block("Tests/ReadmeProgram/Cinema.swift"),
      to: "\(package)/Sources/cinema/Cinema.swift")
    let outcome = try readme.session("program").run(in: package, programs: programs, within: long)
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
  }

  /// The static command is built in a copy of its own, so that neither build replaces the other's.
  @Test(.enabled(if: TestRun.isLong, "WORMHOLE_LONG=1 lets it run"))
  func theStaticCommandIsBuiltWithoutItsSymbols() throws {
    for tool in ["git", "swift"] where Programs.installed(tool) == nil {
      return skip("the static command", missing: tool)
    }
    let home = try TemporaryDirectory(isPlain: true)
    try makeRepository(at: home.path)
    let readme = try Readme()
    let sentence = try #require(readme.text.firstMatch(of: /With `([^`]+)` it also runs/))
    let line = try #require(
      readme.session("install").exchanges.first { $0.command.hasPrefix("swift build") })
    try shell("cd '\(home.path)'\n\(line.command) \(sentence.output.1)", within: long * 3)
    let folder = try run(
      "swift",
      ["build", "-c", "release", "--show-bin-path", "--package-path"]
        + [home.path]
    ).output.split(separator: "\n")
    let program = "\(try #require(folder.last))/wormhole"
    #expect(try run(program, ["--version"]).output.hasPrefix("wormhole "))
    let size = try Descriptor.open(path: program, [.readOnly]).status().size
    #expect(size < 25_000_000, "the symbols are half of the file")
  }

  private let long = Duration.seconds(300)

  private func write(
    _ text: String, replacing texts: [String: String] = [:], to path: String
  ) throws {
    let folder = path.split(separator: "/").dropLast().map { "/" + $0 }.joined()
    try shell("mkdir -p '\(folder)'")
    let file = try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600)
    try file.write(texts.reduce(text) { $0.replacing($1.key, with: $1.value) })
  }

  /// Makes a repository of the checkout's files as they are now, tagged with the version.
  private func makeRepository(at path: String) throws {
    try shell(
      """
      mkdir -p '\(path)'
      cd '\(Programs.source)'
      tar -c --exclude=.build --exclude=.git . | tar -x -C '\(path)'
      cd '\(path)'
      git init --quiet
      git add --all
      git -c user.name=tests -c user.email=tests -c commit.gpgsign=false commit --quiet -m sources
      git tag "$VERSION"
      """, environment: ["VERSION=" + Project.version])
  }

  private func shell(
    _ script: String, environment: [String] = [], within time: Duration = patience
  ) throws {
    let outcome = try run("sh", ["-ec", script], environment: environment, within: time)
    try #require(outcome.status == .exited(0), "\(outcome.errors)")
  }
}
