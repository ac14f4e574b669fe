import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeCommand

/// The sources of the modules of Apple's that the command writes.
@Suite(.blocking, .notSanitized("it runs the compiler")) struct ShimTests {
  /// The command has every file that the tests build, and each is what the tests build.
  @Test(arguments: Shim.allCases.map(\.rawValue))
  func theCommandHasTheFilesThatTheTestsBuild(_ name: String) throws {
    let shim = try #require(Shim(rawValue: name))
    func check(_ files: [(path: String, text: String)], _ folder: String) throws {
      let path = Programs.source + "/Tests/Shims/" + folder
      let directory = try Descriptor.open(path: path, [.readOnly, .directory])
      #expect(files.map(\.path).sorted() == (try directory.names().sorted()))
      for file in files {
        let bytes = try directory.open(file.path, [.readOnly]).contents()
        #expect(Array(file.text.utf8) == Array(bytes), "\(file.path)")
      }
    }
    try check(shim.files, shim.targetName)
    if !shim.filesForUsers.isEmpty { try check(shim.filesForUsers, "Names") }
  }

  /// In both language modes, as a user's manifest may choose either, and with warnings as errors.
  @Test(arguments: Shim.allCases.map(\.rawValue), [5, 6])
  func theFilesCompile(_ name: String, _ mode: Int) throws {
    guard let compiler = Programs.installed("swiftc") else {
      return skip("the shim of \(name)", missing: "swiftc")
    }
    let shim = try #require(Shim(rawValue: name))
    let folder = try TemporaryDirectory()
    for file in shim.files { try folder.write(file.text, to: file.path) }
    let outcome = try run(
      compiler,
      [
        "-typecheck", "-swift-version", "\(mode)", "-warnings-as-errors", "-parse-as-library",
        "-module-name", shim.targetName,
      ] + shim.files.map { folder.path + "/" + $0.path }, within: .seconds(300))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
  }
}
