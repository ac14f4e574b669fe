package import WormholeSyscalls

/// Files that tests compare with.
package enum Fixture {
  /// The bytes of a file below `Fixtures`.
  package static func bytes(_ path: String) throws(Errno) -> [UInt8] {
    try Descriptor.open(path: Programs.source + "/Fixtures/" + path, [.readOnly]).contents()
  }

  /// The text of a file below `Fixtures`.
  package static func text(_ path: String) throws(Errno) -> String {
    String(decoding: try bytes(path), as: UTF8.self)
  }

  /// Names each line in which a text differs from a file below `Fixtures`, and the command that
  /// writes the file again.
  package static func differences(
    of text: String, from path: String, renewing command: String
  ) throws(Errno) -> [String] {
    let kept = try self.text(path)
    guard text != kept else { return [] }
    let file = "Fixtures/" + path
    let (printed, recorded) = (text.split(separator: "\n"), kept.split(separator: "\n"))
    var differences: [String] = []
    for line in printed where !recorded.contains(line) {
      differences.append("\(file): the line is missing: \(line)")
    }
    for line in recorded where !printed.contains(line) {
      differences.append("\(file): the command does not print the line: \(line)")
    }
    return differences + ["\(file) differs; if that is meant: \(command) >\(file)"]
  }
}
