import WormholeContainerStorage
import WormholeSyscalls

/// Directories that the program makes for its work.
enum StressFolder {
  /// Makes a directory, and returns its path.
  static func make(_ path: String) throws(WormholeError) -> String {
    try naming("make directory", path) { () throws(Errno) in
      try Descriptor.makeDirectory(path: path, mode: 0o700)
    }
    return path
  }

  static func remove(_ path: String) throws(Errno) {
    _ = try Child.spawn("rm", ["-rf", "--", path]).wait()
  }
}
