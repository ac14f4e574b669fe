import Syscalls

/// Jobs that hold locks until they are ended from outside.
extension Peer {
  static func hold(_ directory: String, _ name: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    let file = try directory.open(name, [.readWrite])
    try file.lock(.exclusive)
    guard try file.tryPresenceLock() else { throw Errno.busy }
    try StandardStream.output.write("held\n")
    let never = try Pipe()
    _ = try waitUntilReadable(never.reading, never.reading, until: nil)
  }
}
