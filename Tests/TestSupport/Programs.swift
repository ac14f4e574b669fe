import WormholeSyscalls

/// Where the programs under test are.
package enum Programs {
  /// The folder of what was built together with the running tests.
  package static let built: String = {
    let path = String(decoding: testProgram(), as: UTF8.self)
    return path.split(separator: "/").dropLast().map { "/" + $0 }.joined()
  }()

  private static func testProgram() -> [UInt8] {
    do {
      // `self` is a link itself, so the number has to be spelled out.
      let process = "/proc/\(Processes.current)"
      return try Descriptor.open(path: process, [.readOnly, .directory]).readSymbolicLink("exe")
    } catch {
      preconditionFailure("the path of the running tests: \(error)")
    }
  }

  /// The path of a program of this package, which was built together with the tests.
  package static func built(_ name: String) -> String { built + "/" + name }

  /// The path of a program of the system's, if it is installed.
  package static func installed(_ name: String) -> String? {
    let folders = Processes.environment("PATH") ?? "/usr/bin:/bin"
    for folder in folders.split(separator: ":") {
      let path = folder + "/" + name
      // Asked through its folder, a program that is a symbolic link counts as well.
      guard let directory = try? Descriptor.open(path: String(folder), [.path, .directory]),
        let status = try? directory.status(of: name), status.kind != .directory
      else { continue }
      return path
    }
    return nil
  }

  /// The root of the package's sources.
  package static let source: String = {
    let path = #filePath.split(separator: "/").dropLast(3)
    return path.map { "/" + $0 }.joined()
  }()
}
