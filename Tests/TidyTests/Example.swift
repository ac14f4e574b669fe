/// A few lines that break a rule, or come near a violation without breaking the rule.
struct Example: Sendable {
  let rule: String
  let path: String
  let text: String

  init(_ rule: Rule, _ text: String, in path: String = "Sources/Wormhole/Example.swift") {
    self.rule = rule.name
    self.path = path
    self.text = text + "\n"
  }

  // Paths that must not be written here in one piece.
  private static let slash = "/"
  private static let address = "https:" + "//"

  static let bad: [Example] = [
    Example(.imports, "import Glibc"),
    Example(.imports, "@_exported public import Foundation"),
    Example(.imports, "import struct Foundation.Data", in: "Sources/WormholePropertyLists/A.swift"),
    Example(.imports, "package import Wormhole", in: "Sources/WormholeContainerStorage/A.swift"),
    Example(.imports, "import Dispatch", in: "Sources/WormholeContainerStorage/A.swift"),
    Example(.imports, "import WormholeCLinux", in: "Tests/SyscallsTests/A.swift"),
    Example(.testing, "package import Testing", in: "Tests/TestSupport/A.swift"),
    Example(.calls, "import FoundationEssentials\nlet file = open(path, O_RDONLY)"),
    Example(.calls, "import Dispatch\n_ = WormholeLibC.flock(descriptor, LOCK_EX)"),
    Example(
      .calls, "import Foundation\ntext(\"\\(unlink(path))\")", in: "Sources/AppGroups/A.swift"),
    Example(.fileCalls, "let data = try Data(contentsOf: url)"),
    Example(.fileCalls, "try data.write(to: url, options: .atomic)"),
    Example(.fileCalls, "FileManager.default.removeItem(at: url)"),
    Example(.sleeps, "try await Task.sleep(for: .seconds(1))", in: "Tests/ATests/A.swift"),
    Example(.sleeps, "usleep(1000)", in: "Tests/ATests/A.swift"),
    Example(.sleeps, "Thread.sleep(forTimeInterval: 1)", in: "Tests/ATests/A.swift"),
    Example(
      .timers, "queue.asyncAfter(deadline: .now() + 1) {}", in: "Sources/WormholeDropIns/A.swift"),
    Example(.timers, "try await Task.sleep(for: .seconds(1))"),
    Example(.timers, "let queue = DispatchQueue(label: \"a\")"),
    Example(.blocking, "@Suite struct A {\n@Test func a() {", in: "Tests/ATests/A.swift"),
    Example(
      .blocking, "@Suite(.blocking) struct A {\n@Test func a() async {",
      in: "Tests/ATests/A.swift"),
    Example(
      .expectations, "let a = try watch.receive(Int.self) { a in\n#expect(a == 1)\n}",
      in: "Tests/ATests/A.swift"),
    Example(
      .expectations, "try Thread(\"a\") {\ndo { try b() } catch { Issue.record(error) }\n}",
      in: "Tests/ATests/A.swift"),
    Example(
      .expectations, "side.onContext = { #expect($0 == 1) }", in: "Tests/ATests/A.swift"),
    Example(
      .expectations, "observe(\na,\n{ _ in\n#expect(throws: A.self) { try b() }\n})",
      in: "Tests/ATests/A.swift"),
    Example(.lineLength, String(repeating: "x", count: 101)),
    Example(.whitespace, "let a = 1 "),
    Example(.whitespace, "\tlet a = 1"),
    Example(.whitespace, "let a = 1\r"),
    Example(.whitespace, "let a = 1\n"),
    Example(.fileLength, String(repeating: "line\n", count: 450) + "line"),
    Example(.debris, "// TODO: think"),
    Example(.debris, "let a = 1  // FIXME"),
    Example(.printing, "print(value)"),
    Example(.printing, "debugPrint(value)"),
    Example(.bytes, "guard path.hasPrefix(\"a\") else { return }"),
    Example(.bytes, "let isOurs = name.hasSuffix(end)", in: "Sources/MMWormhole/A.swift"),
    Example(.deadCode, "// let a = 1"),
    Example(.deadCode, "  // guard isOpen() else {"),
    Example(.deadCode, "// }"),
    Example(.documentation, "public struct A {}"),
    Example(.documentation, "// Not documentation.\n  public static func a() {}"),
    Example(.documentation, "@inlinable\npublic func a() {}"),
    Example(.documentation, "@discardableResult public func a() {}"),
    Example(.reasons, "final class A: @unchecked Sendable {}"),
    Example(.reasons, "/// A cache.\nnonisolated(unsafe) var cache = 0"),
    Example(.fileNames, "struct Another {}"),
    Example(.monitors, "private let looking = Monitor(())"),
    Example(.monitors, "let body: Monitor<(@Sendable () -> Void)?>"),
    Example(.monitors, "let state = Mutex(State())"),
    Example(.machinePaths, "let path = \"\(slash)home/me/file\""),
    Example(.machinePaths, "run \(slash)opt/tool/bin", in: ".ci/run"),
    Example(.hosts, "see \(address)example.com/page", in: "README.md"),
    Example(.hosts, "see \(address)www.w3.org/2000/svg", in: "README.md"),
    Example(.clocks, "let deadline = Instant.now + timeout"),
    Example(.clocks, "let left = deadline - .now", in: "Sources/Wormhole/Sending/A.swift"),
    Example(.clocks, "(isLate, seen) = (deadline <= .now, .now)"),
    Example(
      .clocks, "let now = Clocks.sinceEpoch", in: "Sources/WormholeContainerStorage/Slot/A.swift"),
    Example(.clocks, "let age = Date().timeIntervalSince(writtenAt)"),
  ]

  static let good: [Example] = [
    Example(.imports, "import Synchronization"),
    Example(.imports, "import WormholeCLinux", in: "Tests/TestPeer/Peer+Copies.swift"),
    Example(
      .timers, "let queue = DispatchQueue(label: \"a\")", in: "Sources/WormholeDropIns/A.swift"),
    Example(.timers, "queue.soon(after: .seconds(1)) {}  // not asyncAfter(deadline:)"),
    Example(.imports, "import WormholeLibC", in: "Sources/WormholeSyscalls/A.swift"),
    Example(.imports, "import Foundation", in: "Sources/AppGroups/A.swift"),
    Example(.imports, "// import Glibc"),
    Example(.calls, "import Foundation\ntry directory.open(name)"),
    Example(.bytes, "guard path.begins(with: \"a\") else { return }"),
    Example(.bytes, "word.hasPrefix(\"#\")", in: "Sources/WormholePropertyLists/A.swift"),
    Example(.calls, "let a = open(1)"),
    Example(.calls, "open(name: path)"),
    Example(.calls, "import Foundation\nfunc open(_ a: Int) {}\nlet a = open(1)"),
    Example(.calls, "let words = \"flock(1)\"  // flock(1)"),
    Example(.fileCalls, "let text = \"\"\"\n  Data(contentsOf: url)\n  \"\"\""),
    Example(
      .sleeps, "let child = try Child.spawn(\"sleep\", [\"60\"])", in: "Tests/ATests/A.swift"),
    Example(
      .blocking, "@Suite(.blocking) struct A {\n@Test func a() {", in: "Tests/ATests/A.swift"),
    Example(
      .blocking, "@Suite struct A {\n@Test(.blocking) func a() {\n@Test func b() async {",
      in: "Tests/ATests/A.swift"),
    Example(
      .expectations,
      "try relay.handle(a) { #expect($0 == 1) }\nwatch(a) { heard.add($0) }\n#expect(a == 1)",
      in: "Tests/ATests/A.swift"),
    Example(
      .testing, "#if canImport(Testing)\npackage import Testing\n#endif",
      in: "Tests/TestSupport/A.swift"),
    Example(.testing, "import Testing", in: "Tests/ATests/A.swift"),
    Example(.lineLength, String(repeating: "é", count: 100)),
    Example(.lineLength, "| " + String(repeating: "x", count: 101) + " |", in: "README.md"),
    Example(.whitespace, "let a = 1"),
    Example(.fileLength, String(repeating: "line\n", count: 449) + "line"),
    Example(.debris, "let text = \"TODO\""),
    Example(.printing, "printer.print(page)"),
    Example(.printing, "print(seed)", in: "Tests/ATests/A.swift"),
    Example(.deadCode, "// If it is open, the guard lets it pass."),
    Example(.deadCode, "/// let a = 1"),
    Example(.documentation, "/// An example.\n@frozen\npublic struct A {}"),
    Example(.documentation, "public import WormholeSyscalls\npublic extension A {}"),
    Example(.documentation, "package struct A {}"),
    Example(.reasons, "// One thread has it.\nnonisolated(unsafe) var cache = 0"),
    Example(.fileNames, "struct Example {}"),
    Example(
      .fileNames, "extension Wormhole.Example {}", in: "Sources/Wormhole/Example+Topic.swift"),
    Example(.monitors, "private let looking = Monitor(0)"),
    Example(.monitors, "let pause = Monitor(())"),
    Example(.monitors, "let bodies: Monitor<[@Sendable () -> Void]>"),
    Example(.monitors, "let end: Mutex<Descriptor?>", in: "Sources/WormholeSyscalls/A.swift"),
    Example(.machinePaths, "let path = \"/tmp/file\"  // or /proc/self/fd"),
    Example(.machinePaths, "a/b/c and lock/<g>.d/"),
    Example(.hosts, "see \(address)swift.org/documentation", in: "README.md"),
    Example(.hosts, "<svg xmlns='\(address)www.w3.org/2000/svg'>", in: "Sources/Wormhole/A.svg"),
    Example(.clocks, "let deadline = time.now + timeout  // not Instant.now"),
    Example(.clocks, "let now = try carrier().now.epoch"),
    Example(.clocks, "let text = a.nowhere"),
    Example(
      .clocks, "let end = .now + tick", in: "Sources/WormholeContainerStorage/Lock/A.swift"),
    Example(.clocks, "let end = Instant.now + time", in: "Sources/WormholeCommand/A.swift"),
  ]
}
