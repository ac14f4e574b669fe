package import WormholeContainerStorage
internal import WormholeSyscalls

/// The file with the token for the servers on this machine.
package enum TokenFile {
  private static let largest = 4096
  private static let operation = "read token"

  /// Reads the token: the first line of a regular file of this user that no other user can read.
  package static func read(_ path: String) throws(WormholeError) -> String {
    var bytes = [UInt8](repeating: 0, count: largest)
    let (status, count) = try naming(operation, path) { () throws(Errno) in
      // Opening waits for nobody, whatever has the name.
      let file = try Descriptor.open(path: path, .readOnlyNonBlocking)
      let status = try file.status()
      return (status, status.kind == .regular ? try Self.read(file, &bytes) : 0)
    }
    guard status.kind == .regular, status.owner == Processes.effectiveUser,
      status.mode & 0o077 == 0
    else {
      throw WormholeError(
        .refused, operation, path,
        because: status.kind == .regular
          ? "another user owns the file or can read it" : "it is not a regular file",
        hint: "use a file of your own with mode 0600")
    }
    let line = bytes[..<count].prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
    guard !line.isEmpty, line.allSatisfy({ (0x21...0x7e).contains($0) }) else {
      throw WormholeError(
        .invalidValue, operation, path,
        because: "the first line is not a token: printable characters without spaces")
    }
    return String(decoding: line, as: UTF8.self)
  }

  private static func read(
    _ file: borrowing Descriptor, _ bytes: inout [UInt8]
  ) throws(Errno) -> Int {
    var (count, failure): (Int, Errno?) = (0, nil)
    bytes.withUnsafeMutableBytes { buffer in
      do throws(Errno) { count = try file.readFully(into: buffer) } catch { failure = error }
    }
    if let failure { throw failure }
    return count
  }
}
