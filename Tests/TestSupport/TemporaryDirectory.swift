package import Syscalls
import Synchronization

/// A directory of one test's own, removed with all that is in it when the test lets go of it.
package final class TemporaryDirectory: Sendable {
  package let path: String
  package let descriptor: Descriptor

  /// Makes a directory that nobody else has, below TMPDIR.
  ///
  /// Its name has a blank and a letter of two bytes, so that in no test's paths letters are bytes.
  ///
  /// - Parameter isPlain: for compilers, which do not get on with that.
  package init(isPlain: Bool = false) throws(Errno) {
    let parent = Processes.environment("TMPDIR") ?? "/tmp"
    let number = made.add(1, ordering: .relaxed).newValue
    // The clock keeps apart what a process of the same number may have left behind.
    let name =
      "wormhole-test-\(Processes.current)-\(number)-\(Clocks.sinceBoot)"
      + (isPlain ? "" : " \u{fc}")
    let path = parent + "/" + name
    try Descriptor.makeDirectory(path: path, mode: 0o700)
    descriptor = try Descriptor.open(path: path, [.readOnly, .directory])
    self.path = path
  }

  deinit {
    // What cannot be removed is left for a person to look at; the test has said what it had to.
    try? descriptor.removeContents()
    try? Descriptor.removeDirectory(path: path)
  }

  /// Makes a file that holds the text.
  package func write(_ text: String, to name: String) throws(Errno) {
    let file = try descriptor.open(name, [.writeOnly, .create, .truncate], mode: 0o600)
    try file.write(text)
  }

  /// The text that a file holds.
  package func read(_ name: String) throws(Errno) -> String {
    String(decoding: try bytes(of: name), as: UTF8.self)
  }

  /// The bytes that a file holds.
  package func bytes(of name: String) throws(Errno) -> [UInt8] {
    try descriptor.open(name, [.readOnly, .nonBlocking]).contents()
  }
}

private let made = Atomic<Int>(0)
