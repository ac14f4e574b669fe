package import WormholeSyscalls

/// The content of a directory, with its owners: for tests of files that no program may change.
package struct DirectorySnapshot: Equatable, CustomStringConvertible {
  private let lines: [String]

  /// - Parameter name: a file or directory in the parent.
  package init(of name: String, in parent: borrowing Descriptor) throws {
    var lines: [String] = []
    try Self.collect(name, in: parent, name, &lines)
    self.lines = lines
  }

  package var description: String { lines.joined(separator: "\n") }

  private static func collect(
    _ name: String, in parent: borrowing Descriptor, _ path: String, _ lines: inout [String]
  ) throws {
    let status = try parent.status(of: name)
    let mode = String(status.mode, radix: 8)
    lines.append("\(path) \(status.kind) \(mode) \(status.owner) \(status.group) \(status.inode)")
    switch status.kind {
    case .regular:
      lines.append("  \(try parent.open(name, [.readOnly, .nonBlocking]).contents())")
    case .directory:
      let directory = try parent.open(name, [.readOnly, .directory])
      for child in try directory.names().sorted() {
        try collect(child, in: directory, "\(path)/\(child)", &lines)
      }
    default: break
    }
  }
}
