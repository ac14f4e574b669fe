import Syscalls

/// A file system in memory that is soon full, for the container of a run.
struct SmallDisk {
  private let path: String

  /// Mounts it; nil where that cannot be done.
  init?(at path: String) {
    self.path = path
    guard Processes.effectiveUser == 0, Self.run("mkdir", [path]),
      Self.run("mount", ["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs", path])
    else { return nil }
  }

  /// Unmounts it; what is on it is copied first, if somebody is to look at it.
  func remove(keepingIn directory: String?) {
    if let directory { _ = Self.run("cp", ["-a", "--", path + "/.", directory]) }
    _ = Self.run("umount", ["--lazy", path])
  }

  private static func run(_ program: String, _ arguments: [String]) -> Bool {
    (try? Child.spawn(program, arguments).wait()) == .exited(0)
  }
}
