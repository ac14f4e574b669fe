import Glibc

/// Where programs are.
extension Processes {
  /// The absolute path of a program: of a name that PATH leads to, or of a path from here.
  ///
  /// ENOENT if there is none, EACCES if there is something that nobody may run.
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

  /// The path of the program that this process runs.
  package static func ownProgram() throws(Errno) -> String {
    // `self` is a link itself, so the number has to be spelled out.
    let process = try Descriptor.open(path: "/proc/\(current)", [.readOnly, .directory])
    return String(decoding: try process.readSymbolicLink("exe"), as: UTF8.self)
  }

  /// Whether there is something at the path that can be run, as far as its mode tells.
  package static func checkProgram(_ path: String) throws(Errno) {
    let status = try Descriptor.status(ofPath: path)
    guard status.kind == .regular, status.mode & 0o111 != 0 else { throw .accessDenied }
  }

  /// Whether files can be put into the directory.
  package static func checkDirectory(_ path: String) throws(Errno) {
    guard try Descriptor.status(ofPath: path).kind == .directory else { throw .notADirectory }
    guard access(path, W_OK | X_OK) == 0 else { throw Errno.current }
  }

  /// Where this process is.
  package static func workingDirectory() throws(Errno) -> String {
    guard let path = getcwd(nil, 0) else { throw Errno.current }
    defer { free(path) }
    return String(cString: path)
  }
}
