import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// A statically linked program where /proc is missing: the Swift runtime looks for its own path
/// there before `main`, and aborts without.
@Suite(.blocking) struct StaticStartTests {
  private static let what = "a static program without /proc"

  /// A variable that is set for the start is visible to the runtime alone.
  @Test func aStaticProgramStartsWithoutProcAndHasTheEnvironmentThatItWasGiven() throws {
    guard Processes.effectiveUser == 0 else {
      return skip(Self.what, because: "only root can change the root")
    }
    guard let compiler = Programs.installed("swiftc"), let chroot = Programs.installed("chroot")
    else { return skip(Self.what, because: "swiftc or chroot is not in PATH") }
    let folder = try TemporaryDirectory(isPlain: true)
    guard try compile(compiler, in: folder) else {
      return skip(Self.what, because: "Swift's static libraries are not installed")
    }
    func run(_ program: String, _ setting: String) throws -> ProcessOutcome {
      try TestSupport.run(
        "env", ["-i", setting, chroot, folder.path, "/" + program])
    }
    // Or it would prove nothing.
    #expect(try run("bare", "A=b").status == .signalled(6))
    for (setting, root) in [
      ("A=b", "none"), ("SWIFT_ROOT=", "''"), ("SWIFT_ROOT=/x", "'/x'"),
    ] {
      let outcome = try run("program", setting)
      #expect(outcome.status == .exited(0), "\(setting): \(outcome.errors)")
      #expect(outcome.output == root + "\n", "\(setting)")
    }
  }

  /// Compiles with and without the tested code; returns false where the program cannot be linked.
  private func compile(_ compiler: String, in folder: TemporaryDirectory) throws -> Bool {
    try folder.write(
      """
      import Glibc
      print(getenv("SWIFT_ROOT").map { "'\\(String(cString: $0))'" } ?? "none")
      """,
      to: "main.swift")
    let object = folder.path + "/path.o"
    let made = try run(
      "clang", ["-c", Programs.source + "/Sources/WormholeCLinux/RuntimePath.c", "-o", object])
    #expect(made.status == .exited(0), "\(made.errors)")
    for (name, objects) in [("bare", []), ("program", [object])] {
      let linked = try run(
        compiler,
        [
          "-static-executable", "-module-cache-path", folder.path + "/cache",
          folder.path + "/main.swift", "-o", folder.path + "/" + name,
        ] + objects, within: .seconds(120))
      guard linked.status == .exited(0) else { return false }
    }
    return true
  }
}
