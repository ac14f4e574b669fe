import Syscalls

/// Jobs that hold locks until they are ended from outside.
extension Peer {
  /// `hold <directory> <name>`: takes both kinds of lock on a file and keeps them.
  static let hold = Job("hold") { arguments in
    let directory = try Descriptor.open(path: arguments[0], [.readOnly, .directory])
    let file = try directory.open(arguments[1], [.readWrite])
    try file.lock(.exclusive)
    guard try file.tryPresenceLock() else { throw Errno.busy }
    try StandardStream.output.write("held\n")
    let never = try Pipe()
    _ = try waitUntilReadable(never.reading, never.reading, until: nil)
  }
}
