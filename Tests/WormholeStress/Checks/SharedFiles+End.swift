import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The files after all processes have ended.
extension SharedFiles {
  /// Reads each file as a program that starts later: an access whose process died no longer blocks
  /// other accesses.
  func look() throws -> [String: Content] {
    let coordinator = coordinator()
    var found: [String: Content] = [:]
    for name in Self.files {
      found[name] = try coordinator.write(path(name), within: .seconds(10)) { path in
        try read(path)
      }
    }
    return found
  }

  /// Returns accesses that have not ended, and hidden directories in which new files were made.
  func leftovers() throws -> [Violation] {
    var found: [Violation] = []
    for path in containers {
      let container = try Container.open(path, create: false)
      _ = try container.repair()
      let problems = try container.inspect()
        .filter { $0.severity == .problem && $0.subject != "file system" }
      found += problems.map { Violation(.leak, "\(path): \($0.subject): \($0.what)") }
      for place in AccessPlace.allCases.map(\.name) + ["passed", "processes"] {
        found += try Self.names("\(path)/system/coordination/\(place)")
          .map { Violation(.leak, "'\($0)' is left in '\(path)/system/coordination/\(place)'") }
      }
    }
    for folder in folders {
      found += try Self.names(folder).filter { $0.hasPrefix(".wormhole-") }
        .map { Violation(.leak, "'\($0)' is left in '\(folder)'") }
    }
    return found
  }

  private static func names(_ path: String) throws -> [String] {
    guard let directory = try? Descriptor.open(path: path, [.readOnly, .directory]) else {
      return []
    }
    return try directory.names()
  }
}
