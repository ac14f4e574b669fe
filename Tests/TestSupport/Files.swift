internal import FoundationEssentials
package import WormholeSyscalls

extension Descriptor {
  /// Writes the bytes at the present offset.
  package func write(_ bytes: [UInt8]) throws(Errno) {
    try writeFully(bytes)
  }

  /// Writes the text at the present offset.
  package func write(_ text: String) throws(Errno) {
    try writeFully(Array(text.utf8))
  }

  /// The whole content of the file, from its beginning.
  package func contents() throws(Errno) -> [UInt8] {
    var bytes: [UInt8] = []
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 65_536, alignment: 1)
    defer { buffer.deallocate() }
    while true {
      let count = try readFully(into: buffer, at: bytes.count)
      if count == 0 { return bytes }
      bytes.append(contentsOf: buffer[..<count])
    }
  }

  /// Removes all that is in the directory, whatever its names are made of.
  package func removeContents() throws(Errno) {
    var names: [[CChar]] = []
    try forEachName { name throws(Errno) in
      var length = 0
      while name[length] != 0 { length += 1 }
      names.append(Array(UnsafeBufferPointer(start: name, count: length + 1)))
      return true
    }
    for name in names {
      if try status(of: name).kind == .directory {
        try open(name, [.readOnly, .directory]).removeContents()
        try removeDirectory(name)
      } else {
        try unlink(name)
      }
    }
  }
}

/// Removes a directory and all that is in it.
///
/// More than once, where need be: a value that is saved in the background, or an observer that
/// continues in the next container, may add to a directory that was empty.
package func removeTree(_ path: String) throws {
  try eventually("'\(path)' is removed") {
    try? FileManager.default.removeItem(atPath: path)
    return !FileManager.default.fileExists(atPath: path)
  }
}

/// How much the kernel lets a user have of inotify: `max_queued_events` and its like.
package func inotifyLimit(_ name: String) throws -> Int {
  let path = "/proc/sys/fs/inotify/" + name
  let text = try Descriptor.open(path: path, [.readOnly]).contents()
  guard let limit = Int(String(decoding: text, as: UTF8.self).filter(\.isNumber)) else {
    throw UnexpectedForm(description: "'\(path)' holds no number")
  }
  return limit
}

private struct UnexpectedForm: Error { let description: String }
