import WormholeLibC

/// The locations of programs.
extension Processes {
  /// Returns the absolute path of a program: of a name found in PATH, or of a path from the working
  /// directory.
  ///
  /// ENOENT if no such file exists, EACCES if the file exists but no user may execute it.
  package static func path(ofProgram program: String) throws(Errno) -> String {
    guard !program.utf8.contains(UInt8(ascii: "/")) else {
      let name = program.begins(with: "./") ? String(Substring(program.utf8.dropFirst(2))) : program
      let path = name.begins(with: "/") ? name : try workingDirectory() + "/" + name
      try checkProgram(path)
      return path
    }
    var failure = Errno.noSuchFile
    for folder in (environment("PATH") ?? "/usr/bin:/bin").parts(between: ":") {
      let path = folder.begins(with: "/") ? "\(folder)/\(program)" : ""
      guard !path.isEmpty, !program.isEmpty else { continue }
      do throws(Errno) {
        try checkProgram(path)
        return path
      } catch {
        if error == .accessDenied { failure = error }
      }
    }
    throw failure
  }

  /// Returns the path of the program of this process.
  package static func ownProgram() throws(Errno) -> String {
    // `/proc/self` is a link itself, so the path contains the process ID.
    let process = try Descriptor.open(path: "/proc/\(current)", .readOnlyDirectory)
    return String(decoding: try process.readSymbolicLink("exe"), as: UTF8.self)
  }

  /// Throws unless the path leads to an executable file, as far as the file's mode shows.
  package static func checkProgram(_ path: String) throws(Errno) {
    let status = try Descriptor.status(ofPath: path)
    guard status.kind == .regular, status.mode & 0o111 != 0 else { throw .accessDenied }
  }

  /// Throws unless files can be created in the directory.
  package static func checkDirectory(_ path: String) throws(Errno) {
    guard try Descriptor.status(ofPath: path).kind == .directory else { throw .notADirectory }
    guard access(path, W_OK | X_OK) == 0 else { throw Errno.current }
  }

  /// Returns the working directory of this process.
  package static func workingDirectory() throws(Errno) -> String {
    guard let path = getcwd(nil, 0) else { throw Errno.current }
    defer { free(path) }
    return String(cString: path)
  }
}
