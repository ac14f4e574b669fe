import Synchronization
package import WormholeSyscalls

/// A test's own directory, removed with all its content when the test releases the object.
package final class TemporaryDirectory: Sendable {
  package let path: String
  package let descriptor: Descriptor

  /// Makes a new directory below TMPDIR.
  ///
  /// Its name has a blank and a letter of two bytes, so that in no test's paths letters are bytes.
  ///
  /// - Parameter isPlain: for compilers, which cannot handle such a name.
  package init(isPlain: Bool = false) throws(Errno) {
    let parent = Processes.environment("TMPDIR") ?? "/tmp"
    let number = made.add(1, ordering: .relaxed).newValue
    // The clock distinguishes leftovers of a process that had the same process ID.
    let name =
      "wormhole-test-\(Processes.current)-\(number)-\(Clocks.sinceBoot)"
      + (isPlain ? "" : " \u{fc}")
    let path = parent + "/" + name
    try Descriptor.makeDirectory(path: path, mode: 0o700)
    descriptor = try Descriptor.open(path: path, [.readOnly, .directory])
    self.path = path
  }

  deinit {
    // Files that cannot be removed are left for a person to look at; the test has reported its
    // result.
    try? descriptor.removeContents()
    try? Descriptor.removeDirectory(path: path)
  }

  /// Makes a file with the given text.
  package func write(_ text: String, to name: String) throws(Errno) {
    let file = try descriptor.open(name, [.writeOnly, .create, .truncate], mode: 0o600)
    try file.write(text)
  }

  /// The text of a file.
  package func read(_ name: String) throws(Errno) -> String {
    String(decoding: try bytes(of: name), as: UTF8.self)
  }

  /// The bytes of a file.
  package func bytes(of name: String) throws(Errno) -> [UInt8] {
    try descriptor.open(name, [.readOnly, .nonBlocking]).contents()
  }
}

private let made = Atomic<Int>(0)
