import WormholeSyscalls

/// Jobs that hold locks until the process is ended from outside.
extension Peer {
  static func hold(_ directory: String, _ name: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    let file = try directory.open(name, [.readWrite])
    try file.lock(.exclusive)
    guard try file.tryPresenceLock() else { throw Errno.busy }
    try keep(file)
  }

  static func share(_ directory: String, _ name: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    let file = try directory.open(name, [.readOnly])
    guard try file.trySharedPresenceLock() else { throw Errno.busy }
    try keep(file)
  }

  static func flock(_ directory: String, _ name: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    let file = try directory.open(name, [.readOnly])
    try file.lock(.exclusive)
    try keep(file)
  }

  private static func keep(_ file: borrowing Descriptor) throws {
    try StandardStream.output.write("held\n")
    let never = try WaitSet()
    _ = try never.wait(until: nil)
  }
}
