import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeCommand

/// The packages and shims that `wormhole new` writes.
@Suite(.blocking, .notSanitized("about what a command writes")) struct NewVerbTests {
  private let home: TemporaryDirectory

  init() throws {
    home = try TemporaryDirectory(isPlain: true)
    try home.descriptor.makeDirectory("wormhole", mode: 0o700)
    try home.write("", to: "wormhole/Package.swift")
  }

  /// Runs a shell script in the directory of the test.
  private func shell(_ script: String) throws -> ProcessOutcome {
    let path = Processes.environment("PATH") ?? "/usr/bin:/bin"
    return try run(
      "sh", ["-c", "cd '\(home.path)' && " + script],
      environment: ["PATH=\(Programs.built):\(path)"])
  }

  /// Runs a script that is refused; returns the error.
  private func refusal(_ arguments: String, _ status: Int32) throws -> String {
    let before = try shell("find . | sort").output
    let outcome = try shell("wormhole new \(arguments)")
    #expect(outcome.status == .exited(status), "\(outcome.errors)")
    #expect(outcome.output == "")
    #expect(try shell("find . | sort").output == before)
    return outcome.errors.replacing(home.path, with: "HOME")
  }

  @Test func thePackageIsPrintedInTheArticle() throws {
    let url = "https://swift.org/wormhole.git"
    let outcome = try shell("wormhole new two-sides ci --package \(url)")
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output == "")
    let path = Programs.source + "/Sources/Wormhole/Wormhole.docc/TwoSidesInCI.md"
    let article = String(
      decoding: try Descriptor.open(path: path, [.readOnly]).contents(), as: UTF8.self)
    let blocks = article.matches(of: #/<!-- two-sides: (.*) -->\n```[a-z]+\n((?:.*\n)*?)```\n/#)
    let files = try shell("cd ci && find . -type f | cut -c 3- | sort").output
    #expect(blocks.map { $0.output.1 + "\n" }.sorted().joined() == files)
    for block in blocks {
      let text = try home.read("ci/\(block.output.1)")
      let expected = block.output.2.replacing(Project.address ?? Project.placeholder, with: url)
      #expect(text == expected, "\(block.output.1)")
    }
    #expect(PackageReference.published == Project.address)
    #expect(try shell("readlink ci/Sources/*/Shared").output == "../../Shared\n../../Shared\n")
  }

  @Test func thePackageNamesADirectoryFromItsOwn() throws {
    let outcome = try shell("mkdir deep && wormhole new two-sides deep/ci --package wormhole")
    #expect(
      outcome.errors == "wormhole: wrote 7 files; try 'swift test' there\n")
    let manifest = try home.read("deep/ci/Package.swift")
    #expect(manifest.contains(#".package(name: "wormhole", path: "../../wormhole")"#))
    #expect(try shell("cat deep/ci/Sources/PhoneSide/Shared/TicketStore.swift").errors == "")
  }

  /// Before a colon behind a slash there is no host.
  @Test func aDirectoryMayHaveAColonInItsName() throws {
    _ = try shell("mkdir fork:a && touch fork:a/Package.swift")
    let outcome = try shell("wormhole new two-sides ci --package ./fork:a")
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let manifest = try home.read("ci/Package.swift")
    #expect(manifest.contains(#".package(name: "wormhole", path: "../fork:a")"#), "\(manifest)")
  }

  @Test func aForksNameIsThatOfItsAddress() throws {
    for (url, name) in [
      ("git@swift.org:Our-Hole.git", "our-hole"), ("https://swift.org/x/Hole", "hole"),
      ("swift.org:hole.git", "hole"),
    ] {
      _ = try shell("rm -rf ci; wormhole new two-sides ci --package \(url)")
      let manifest = try home.read("ci/Package.swift")
      #expect(manifest.contains(#".package(url: "\#(url)", from: "0.1.0")"#))
      #expect(manifest.ranges(of: #"package: "\#(name)")"#).count == 2, "\(manifest)")
    }
  }

  @Test func theUsersSourcesAreLinked() throws {
    try home.descriptor.makeDirectory("app", mode: 0o700)
    try home.descriptor.makeDirectory("app/Inner", mode: 0o700)
    try home.write(
      "import Foundation\nfinal class Link: NSObject,\n  WCSessionDelegate {\n}\n",
      to: "app/A.swift")
    try home.write(
      """
      @preconcurrency internal import class Combine.PassthroughSubject
      import os.log
      import WatchConnectivity
      final class Other { static let shared = Other() }
      final class Talk: NSObject, WCSessionDelegate {
        private static let hidden = Talk()
        static let common: Talk = Talk()
      }

      """, to: "app/Inner/B.swift")
    let outcome = try shell(
      "ln -s app link; wormhole new two-sides ci --sources link/ --package wormhole")
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(try shell("readlink ci/Sources/*/Shared").output == "../../../app\n../../../app\n")
    #expect(try shell("ls ci").output == "Package.swift\nSources\nTests\ntwo-sides.yml\n")
    #expect(try shell("cat ci/Sources/WatchSide/Shared/Inner/B.swift").status == .exited(0))
    let manifest = try home.read("ci/Package.swift")
    #expect(manifest.contains(#"dependencies: [connectivity, "Combine", "os"],"#))
    #expect(manifest.contains(#"name: "Combine","#))
    // As the article on shims builds them.
    #expect(manifest.split(separator: ".swiftLanguageMode(.v5)").count == 4)
    for program in ["PhoneSide/PhoneApp", "WatchSide/WatchApp"] {
      let text = try home.read("ci/Sources/\(program).swift")
      #expect(text.contains("    _ = Talk.common\n"))
      #expect(!text.contains("Ticket"))
    }
    let tests = try home.read("ci/Tests/TwoSidesTests/TwoSidesTests.swift")
    #expect(tests.contains("bothSessionsAreActivated") && !tests.contains("Metropolis"))
  }

  @Test func aMissingObjectIsReported() throws {
    try home.descriptor.makeDirectory("app", mode: 0o700)
    try home.write("let answer = 42\n", to: "app/A.swift")
    let outcome = try shell("wormhole new two-sides ci --sources app --package wormhole")
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors.contains("start the app's code in PhoneApp.swift and WatchApp.swift"))
    let manifest = try home.read("ci/Package.swift")
    #expect(manifest.contains("dependencies: [connectivity],"))
  }

  /// The folder of a build has the sources of other packages.
  @Test func hiddenDirectoriesHaveNoSources() throws {
    _ = try shell(
      """
      mkdir -p app/.build bare/.build && touch app/A.swift bare/.build/B.swift
      echo 'import WatchKit' >app/.build/B.swift
      """)
    let outcome = try shell("wormhole new two-sides ci --sources app --package wormhole")
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let manifest = try home.read("ci/Package.swift")
    #expect(manifest.contains("dependencies: [connectivity],"), "\(manifest)")
    #expect(
      try refusal("two-sides more --package wormhole --sources bare", 1)
        .contains("the directory contains no Swift file"))
  }

  @Test func nothingIsReplaced() throws {
    _ = try shell(
      "mkdir full odd && touch full/mine odd/\"$(printf '\\377')\" file && ln -s none dangling "
        + "&& mkdir empty && ln -s empty link && mkdir -p app/empty && touch app/A.swift")
    let full =
      "cannot write package 'full': the directory is not empty; "
      + "name a new directory, or an empty one\n"
    #expect(try refusal("two-sides full --package wormhole", 77) == "wormhole: " + full)
    #expect(try refusal("shim combine full", 77) == "wormhole: " + full)
    #expect(try refusal("two-sides odd --package wormhole", 77).contains("is not empty"))
    for name in ["file", "dangling", "link"] {
      let error = try refusal("two-sides \(name) --package wormhole", 77)
      #expect(error.hasPrefix("wormhole: cannot write package '\(name)': not a directory"))
    }
    #expect(try refusal("two-sides none/ci --package wormhole", 1).contains("'none/ci': no such"))
    #expect(
      try refusal("two-sides app/empty --sources app --package wormhole", 77)
        .contains("a link would lead to itself"))
    // The sources stay as they were.
    #expect(
      try refusal("two-sides app/more --sources app --package wormhole", 77)
        .contains("a link would lead to itself"))
    #expect(try shell("test -d app/empty && ! test -e app/more").status == .exited(0))
    // An empty directory is taken.
    #expect(try shell("wormhole new two-sides empty --package wormhole").status == .exited(0))
  }

  @Test func mistakesAreReported() throws {
    if Project.address == nil {
      #expect(
        try refusal("two-sides ci", 1) == "wormhole: cannot write package 'wormhole': the package "
          + "has no public address yet; pass '--package' with the URL or the directory of the "
          + "package\n")
    }
    for path in ["none", "."] {
      let error = try refusal("two-sides ci --package \(path)", 1)
      #expect(error.contains("there is no file 'Package.swift' in a directory of this path"))
    }
    #expect(
      try refusal("two-sides ci --package wormhole --sources none", 1)
        .hasPrefix("wormhole: cannot read sources 'none': no such file"))
    _ = try shell("mkdir bare")
    #expect(
      try refusal("two-sides ci --package wormhole --sources bare", 1)
        .contains("the directory contains no Swift file"))
    #expect(try refusal("two-sides a b", 64).contains("unexpected argument 'b'"))
    #expect(try refusal("three-sides a", 64).contains("KIND must be two-sides or shim"))
    #expect(try refusal("two-sides", 64).contains("DIR is missing"))
    #expect(try refusal("shim os", 64).contains("cannot write shim 'os': DIR is missing"))
    #expect(
      try refusal("shim UIKit a", 64).contains("the shims are combine, watchkit, os"))
    for option in ["--package", "--sources"] {
      let error = try refusal("shim os a \(option) wormhole", 64)
      #expect(error.contains("--sources and --package belong to two-sides"), "\(option)")
    }
  }

  @Test(arguments: Shim.allCases)
  func aShimIsWritten(_ shim: Shim) throws {
    #expect(try shell("wormhole new shim \(shim.rawValue) target").status == .exited(0))
    for file in shim.files { #expect(try home.read("target/" + file.path) == file.text) }
    let count = try shell("find target -type f | wc -l").output
    #expect(Int(count.filter(\.isNumber)) == shim.files.count)
  }

  @Test func literalsContainAnyName() {
    #expect("a\"b\\c\n\u{7F}é\\(x)".asLiteral == #""a\"b\\c\u{a}\u{7f}é\\(x)""#)
    #expect(relativePath(from: "/tmp/b/c", to: "/tmp/d") == "../../d")
    #expect(relativePath(from: "/tmp", to: "/tmp/d/e") == "d/e")
    #expect(relativePath(from: "/tmp", to: "/tmp") == ".")
  }
}
