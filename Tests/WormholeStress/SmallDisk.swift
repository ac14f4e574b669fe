import WormholeSyscalls

/// A file system in memory that fills up soon, for the container of a run.
struct SmallDisk {
  private let path: String

  /// Mounts the file system; nil if mounting is not possible.
  init?(at path: String) {
    self.path = path
    guard Processes.effectiveUser == 0, Self.run("mkdir", [path]),
      Self.run("mount", ["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", path])
    else { return nil }
  }

  /// Unmounts the file system, after a copy of its content if the content is to be inspected.
  func remove(keepingIn directory: String?) {
    if let directory { _ = Self.run("cp", ["-a", "--", path + "/.", directory]) }
    _ = Self.run("umount", ["--lazy", path])
  }

  private static func run(_ program: String, _ arguments: [String]) -> Bool {
    (try? Child.spawn(program, arguments).wait()) == .exited(0)
  }
}
