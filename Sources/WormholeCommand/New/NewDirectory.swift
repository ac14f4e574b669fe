import WormholeContainerStorage
import WormholeSyscalls

/// A directory that the command fills with new files, and in which it never replaces a file.
///
/// The directory is new or empty at first. Each file is created exclusively and each name is
/// resolved beneath the directory without symbolic links, so that a file or link that another
/// process adds in the meantime is an error and remains as it is.
struct NewDirectory: ~Copyable {
  private static let operation = "write package"

  let path: String
  private let directory: Descriptor
  /// Whether this value has created the directory.
  private let isNew: Bool

  /// Creates the directory, or opens it if it is empty.
  init(_ path: String) throws(WormholeError) {
    let isNew = try Self.makeDirectory(path)
    let directory = try Self.emptyDirectory(path)
    (self.path, self.isNew) = (path, isNew)
    self.directory = directory
  }

  /// Removes the directory before the first file, if the directory was created for the files.
  func abandon() {
    if isNew { try? Descriptor.removeDirectory(path: path) }
  }

  /// Returns false if there is a directory already.
  private static func makeDirectory(_ path: String) throws(WormholeError) -> Bool {
    do throws(Errno) {
      try Descriptor.makeDirectory(path: path, mode: 0o777, keepsUmask: true)
      return true
    } catch {
      guard error == .fileExists else { throw WormholeError(error, operation, path) }
      return false
    }
  }

  private static func emptyDirectory(_ path: String) throws(WormholeError) -> Descriptor {
    do throws(Errno) {
      let directory = try Descriptor.open(path: path, .readOnlyDirectory)
      if try directory.names(most: 1).isEmpty { return directory }
    } catch {
      throw WormholeError(error, operation, path)
    }
    throw WormholeError(
      .refused, operation, path, because: "the directory is not empty",
      hint: "name a new directory, or an empty one")
  }

  /// The path of the directory without symbolic links.
  var straightPath: String {
    get throws(WormholeError) {
      do throws(Errno) {
        return try directory.straightPath()
      } catch {
        throw WormholeError(proc: error, Self.operation, path)
      }
    }
  }

  func write(_ text: String, to name: String) throws(WormholeError) {
    try creating(name) { last, folder throws(Errno) in
      try folder.open(last, .writeOnlyNew, mode: 0o666).writeFully(Array(text.utf8))
    }
  }

  func link(_ name: String, to target: String) throws(WormholeError) {
    try creating(name) { last, folder throws(Errno) in
      try folder.makeSymbolicLink(last, to: target)
    }
  }

  /// Creates the directories above a name, and then the file of the name.
  private func creating(
    _ name: String, _ body: (String, borrowing Descriptor) throws(Errno) -> Void
  ) throws(WormholeError) {
    try naming(Self.operation, path + "/" + name) { () throws(Errno) in
      var parts = name.parts(between: "/")
      let last = parts.removeLast()
      var folder = try directory.open(".", .readOnlyDirectory)
      for part in parts {
        try ignoring(.fileExists, folder.makeDirectory(part, mode: 0o777, keepsUmask: true))
        folder = try folder.open(part, .readOnlyDirectory)
      }
      try body(last, folder)
    }
  }
}

/// Returns the path that leads from a directory to a file; both paths are absolute and without
/// symbolic links.
func relativePath(from directory: String, to file: String) -> String {
  let (from, to) = (directory.parts(between: "/"), file.parts(between: "/"))
  let common = zip(from, to).prefix { $0 == $1 }.count
  let parts = [String](repeating: "..", count: from.count - common) + to.dropFirst(common)
  return parts.isEmpty ? "." : parts.joined(separator: "/")
}
