import TestSupport
import WormholeSyscalls

/// All files of the package that people write.
enum House {
  static func files() throws -> [SourceFile] { try read.get() }

  // Read and taken apart once for all rules.
  private static let read = Result {
    var files: [SourceFile] = []
    let pages = ["Package.swift", "README.md", "Fixtures/office.svg"]
    for place in pages + [".ci", ".github", "Sources", "Tests"] {
      try collect(place, into: &files)
    }
    return files
  }

  private static func collect(_ path: String, into files: inout [SourceFile]) throws {
    let root = try Descriptor.open(path: Programs.source, [.readOnly, .directory])
    let status = try root.status(of: path)
    if status.kind == .directory {
      let names = try root.open(path, [.readOnly, .directory]).names().sorted()
      for name in names where !name.hasPrefix(".") { try collect(path + "/" + name, into: &files) }
    } else if status.kind == .regular {
      // The target of a link is read at its own path.
      let bytes = try root.open(path, [.readOnly]).contents()
      files.append(SourceFile(path, String(decoding: bytes, as: UTF8.self)))
    }
  }

  /// The names that stand in the package's root for everybody to see.
  static func topLevel() throws -> Set<String> {
    let root = try Descriptor.open(path: Programs.source, [.readOnly, .directory])
    return Set(try root.names().filter { !$0.hasPrefix(".") && !$0.hasSuffix(".profraw") })
  }
}
