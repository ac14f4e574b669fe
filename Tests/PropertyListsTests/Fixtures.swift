import Foundation

/// The files in `Fixtures/PropertyLists`.
enum Fixtures {
  static let directory = URL(filePath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appending(path: "Fixtures/PropertyLists")

  static func bytes(_ path: String) throws -> [UInt8] {
    Array(try Data(contentsOf: directory.appending(path: path)))
  }

  static func names(in folder: String) throws -> Set<String> {
    Set(try FileManager.default.contentsOfDirectory(atPath: directory.appending(path: folder).path))
  }
}
