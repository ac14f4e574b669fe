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
}
