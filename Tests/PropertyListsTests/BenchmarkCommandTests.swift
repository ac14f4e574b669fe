import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// The benchmarks run with the tests and so cannot rot; their measurements here mean nothing.
@Suite(.blocking, .notSanitized("about what a command prints"))
struct BenchmarkCommandTests {
  /// The workloads whose small size takes more than two seconds of processor time in a debug build,
  /// even with `--once`.
  ///
  /// Only a long run has time for these workloads.
  private static let slow: Set<String> = [
    "send-batch",  // An operation sends 32 000 messages.
    "queue-keyed",  // For each of 1000 jobs, the directories of all workers are listed twice.
  ]

  /// All workloads that the program declares.
  private static let workloads: [String] = {
    let help = (try? BenchmarkCommandTests.run(["--help"]).output) ?? ""
    let lines = help.split(separator: "\n").drop { $0 != "workloads:" }.dropFirst()
    return lines.compactMap { line in line.split(separator: " ").first.map { String($0) } }
  }()

  private static let tried = workloads.filter { TestRun.isLong || !slow.contains($0) }

  /// Without the list, no workload would run.
  @Test func theHelpNamesTheWorkloads() {
    #expect(Self.workloads.count > 20 && Self.slow.isSubset(of: Self.workloads))
  }

  /// The article names all workloads, and each row of its table is that of a workload.
  @Test func theArticleNamesTheWorkloads() throws {
    let path = Programs.source + "/Sources/Wormhole/Wormhole.docc/Performance.md"
    let article = try String(contentsOfFile: path, encoding: .utf8)
    for name in Self.workloads { #expect(article.contains("`\(name)`"), "\(name)") }
    let lines = article.split(separator: "\n").drop { !$0.hasPrefix("| Workload ") }
    let rows = lines.prefix { $0.hasPrefix("|") }.dropFirst(2)
    #expect(!rows.isEmpty)
    for row in rows {
      let name = row.split(separator: "`").dropFirst().first.map { String($0) } ?? ""
      #expect(Self.workloads.contains(name), "\(row)")
    }
  }

  /// One after the other: many of them use several processes, and the same processor.
  @Test(.serialized, arguments: tried)
  func eachWorkloadRunsInItsSmallSize(_ name: String) throws {
    let result = try Self.run(["--small", "--once", "--json", name])
    #expect(result.status == .exited(0), "\(result.errors)")
    #expect(result.output.contains(#""workload":"\#(name)""#), "\(result.output)\(result.errors)")
  }

  /// With the usual number of operations, and in one run.
  @Test func smallWorkloadsAreMeasured() throws {
    let names = ["plist-encode", "plist-value-decode", "lock", "defaults"]
    let result = try Self.run(["--small", "--json"] + names)
    #expect(result.status == .exited(0), "\(result.errors)")
    let lines = result.output.split(separator: "\n")
    #expect(lines.count == names.count)
    for line in lines {
      let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
      let fields = try #require(object as? [String: Any])
      #expect(fields["ratio"] is Double && fields["machine"] is String)
      #expect(fields["size"] as? String == "small")
      let p99 = try #require(fields["p99"] as? Double)
      let slowest = try #require(fields["slowest"] as? Double)
      #expect(slowest >= p99)
    }
  }

  @Test func ratesOfOneAndOfSixteenSendersAreReported() throws {
    let details = try details(of: ["--small", "senders"])
    for senders in ["1 sender", "16 senders"] {
      for figure in ["messages a second", "with the bare calls", "ratio"] {
        #expect((details["\(senders): \(figure)"] ?? 0) > 0)
      }
    }
  }

  @Test func theFairnessOfTwoProcessesIsReportedBesideAControl() throws {
    let details = try details(of: ["--small", "fairness"])
    #expect(details["runs"] == 2)
    let least = try #require(details["least to most served, minimum"])
    let below = try #require(details["runs below 0.5"])
    #expect(least > 0 && least <= 1 && (least < 0.5) == (below > 0))
    let control = try #require(details["control: least to most, minimum"])
    #expect(control > 0 && control <= 1)
    let processor = try #require(details["control: least share of a processor"])
    #expect(processor > 0 && processor < 1.1)
  }

  /// A script in place of the command.
  @Test func theStartOfANamedCommandIsMeasured() throws {
    let folder = try TemporaryDirectory()
    defer { withExtendedLifetime(folder) {} }
    let command = script("echo eighty-eight", in: folder)
    let result = try Self.run(["--small", "--once", "--json", "--command", command, "start"])
    #expect(result.status == .exited(0), "\(result.errors)")
    let conditions = try fields(of: result.output)["conditions"] as? String
    #expect(conditions?.hasSuffix(command) == true)
    #expect(try Self.run(["--command"]).status == .exited(64))
  }

  /// Files that other programs have deleted in the temporary directory cost a workload no time.
  @Test func theDirectoryOfAWorkloadIsFarFromOthers() throws {
    let folder = try TemporaryDirectory(isPlain: true)
    let subject = "the place of a workload"
    defer { withExtendedLifetime(folder) {} }
    guard try folder.descriptor.fileSystem().type == 0xEF53 else {
      return skip(subject, because: "the temporary directory is not on ext4")
    }
    guard Programs.installed("lsattr") != nil else { return skip(subject, missing: "lsattr") }
    let command = script(
      "lsattr -d \"${0%/*}/..\" >'\(folder.path)/attributes'; echo eighty-eight", in: folder)
    let result = try Self.run(
      ["--small", "--once", "--command", command, "start"],
      environment: ["TMPDIR=\(folder.path)"])
    #expect(result.status == .exited(0), "\(result.errors)")
    let attributes = try folder.read("attributes")
    let flags = attributes.prefix { $0 != " " }
    #expect(flags.contains("T"), "\(attributes)")
    let left = try folder.descriptor.names().filter { $0.hasPrefix("wormhole-bench-") }
    #expect(left.isEmpty)
  }

  @Test func theLargePutToWatchIsMeasuredUnboundToo() throws {
    let details = try details(of: ["--large", "put-to-watch"])
    for figure in ["one way", "one way with the bare calls"] {
      #expect((details["\(figure), us"] ?? 0) > 0)
      #expect((details["\(figure), unbound, us"] ?? 0) > 0)
    }
  }

  @Test func rarePutsAreMeasuredUnboundToo() throws {
    let details = try details(of: ["--large", "--once", "put-rare"])
    for figure in ["rare", "rare, unbound", "often", "often, unbound"] {
      #expect((details["\(figure), median, us"] ?? 0) > 0)
    }
  }

  /// The program starts more than two hundred processes.
  @Test(.enabled(if: TestRun.isLong, "WORMHOLE_LONG=1 lets it run"))
  func theLastOfAHundredWatchersIsMeasuredBesideTheBareCalls() throws {
    let details = try details(of: ["--large", "--once", "fan-out"])
    for count in [1, 100] {
      for figure in ["us", "slowest, us", "times the bare calls"] {
        #expect((details["last of \(count), \(figure)"] ?? 0) > 0)
      }
    }
  }

  /// Beside the systems that the machine has; the others are named as skipped.
  @Test(arguments: ["redis", "nats", "sqlite"])
  func otherSystemsAreMeasured(_ name: String) throws {
    let result = try Self.run(["--small", "--json", "--compare", name])
    #expect(result.status == .exited(0), "\(result.errors)")
    guard !result.output.contains(#""workload":"\#(name)-"#) else {
      let isFannedOut = result.output.contains(#""workload":"redis-fan-out""#)
      #expect(isFannedOut == (name == "redis"))
      let expected = name == "sqlite" ? "synchronous = NORMAL" : "\(name)-server on processor "
      for line in result.output.split(separator: "\n") {
        let conditions = try fields(of: String(line))["conditions"] as? String
        #expect(conditions?.contains(expected) == true, "\(line)")
      }
      return
    }
    // Where there is the server or the library, it must be used.
    skip(
      "the workloads beside \(name)",
      missing: name == "sqlite" ? "libsqlite3.so.0" : "\(name)-server")
  }

  @Test func aPictureIsDrawn() throws {
    let path = NSTemporaryDirectory() + "/plot-\(UUID().uuidString).svg"
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(try Self.run(["--small", "--plot", path, "plist-encode"]).status == .exited(0))
    let picture = try String(contentsOfFile: path, encoding: .utf8)
    #expect(picture.hasPrefix("<svg") && picture.contains("plist-encode, small"))
    #expect(picture.hasSuffix("</svg>\n"))
    #expect(try Self.run(["--plot"]).status == .exited(64))
  }

  @Test func whatIsNotThereIsAUsageError() throws {
    #expect(try Self.run(["nonsense"]).status == .exited(64))
    #expect(try Self.run(["--nonsense"]).status == .exited(64))
    #expect(try Self.run(["--gate", "--once"]).status == .exited(64))
  }

  private func details(of arguments: [String]) throws -> [String: Double] {
    let result = try Self.run(["--json"] + arguments)
    #expect(result.status == .exited(0), "\(result.errors)")
    let fields = try fields(of: result.output)
    return try #require(fields["details"] as? [String: Double])
  }

  private func fields(of line: String) throws -> [String: Any] {
    let object = try JSONSerialization.jsonObject(with: Data(line.utf8))
    return try #require(object as? [String: Any])
  }

  /// Makes a program of the given commands, and returns its path.
  private func script(_ commands: String, in folder: TemporaryDirectory) -> String {
    let path = folder.path + "/command"
    #expect(
      FileManager.default.createFile(
        atPath: path, contents: Data("#!/bin/sh\n\(commands)\n".utf8),
        attributes: [.posixPermissions: 0o755]))
    return path
  }

  private static func run(
    _ arguments: [String], environment: [String] = []
  ) throws -> ProcessOutcome {
    try TestSupport.run(Programs.built("wormhole-bench"), arguments, environment: environment)
  }
}
