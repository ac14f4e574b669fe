import WormholeLibC
internal import WormholeCLinux

/// The names in a directory, read in one pass from the start.
///
/// A listing is not a snapshot: a name that was added or removed during the listing may appear or
/// be missing, regardless of the order in which the names were added.
extension Descriptor {
  /// Calls the body with each name except `.` and `..`, until the body returns false.
  ///
  /// The names are the kernel's bytes: a foreign name need not be UTF-8. A listing moves the
  /// descriptor's offset, so only one listing may run at a time.
  ///
  /// - Parameter isFresh: whether the descriptor was opened for this listing, and is still at the
  ///   start.
  package func forEachName(
    isFresh: Bool = false, _ body: (UnsafePointer<CChar>) throws(Errno) -> Bool
  ) throws(Errno) {
    try forEachEntry(isFresh: isFresh) { name, _ throws(Errno) in try body(name) }
  }

  /// Lists as ``forEachName(isFresh:_:)`` does, and adds the kernel's code for the kind of file.
  private func forEachEntry(
    isFresh: Bool = false, _ body: (UnsafePointer<CChar>, UInt8) throws(Errno) -> Bool
  ) throws(Errno) {
    let directory = try number
    if !isFresh {
      _ = try perform(.lseek, on: directory) { WormholeLibC.lseek(directory, 0, SEEK_SET) }
    }
    let size = 32 * 1024
    let buffer = UnsafeMutableRawPointer.allocate(byteCount: size, alignment: 8)
    defer { buffer.deallocate() }
    while true {
      let count = try perform(.getdents, on: directory) { linux_getdents(directory, buffer, size) }
      if count == 0 { return }
      var offset = 0
      while offset < count {
        let entry = buffer + offset
        let name = (entry + MemoryLayout<linux_directory_entry>.offset(of: \.name)!)
          .assumingMemoryBound(to: CChar.self)
        let length = entry.loadUnaligned(
          fromByteOffset: MemoryLayout<linux_directory_entry>.offset(of: \.length)!, as: UInt16.self
        )
        offset += Int(length)
        if isDot(name) { continue }
        let kind = entry.load(
          fromByteOffset: MemoryLayout<linux_directory_entry>.offset(of: \.type)!, as: UInt8.self)
        guard try body(name, kind) else { return }
      }
    }
  }

  /// As ``forEachName(isFresh:_:)``, and says of each whether it is a plain file.
  package func forEachFile(
    isFresh: Bool = false, _ body: (UnsafePointer<CChar>, _ isPlain: Bool) throws(Errno) -> Bool
  ) throws(Errno) {
    try forEachEntry(isFresh: isFresh) { name, kind throws(Errno) in
      // Some file systems do not say.
      let isPlain =
        kind == UInt8(DT_UNKNOWN)
        ? (try? status(of: name).kind) == .regular : kind == UInt8(DT_REG)
      return try body(name, isPlain)
    }
  }

  /// The names of all subdirectories, as far as the names are UTF-8, in no order.
  package func directoryNames() throws(Errno) -> [String] {
    var names: [String] = []
    var unsure: [String] = []
    try forEachEntry { name, kind throws(Errno) in
      guard let name = String(validatingCString: name) else { return true }
      if kind == UInt8(DT_DIR) { names.append(name) }
      if kind == UInt8(DT_UNKNOWN) { unsure.append(name) }  // The file system does not report it.
      return true
    }
    for name in unsure where (try? status(of: name).kind) == .directory { names.append(name) }
    return names
  }

  /// Returns the first names that fulfil a condition, as the kernel reports them.
  package func names(
    most: Int, where isWanted: (UnsafePointer<CChar>) -> Bool = { _ in true }
  ) throws(Errno) -> [[CChar]] {
    var names: [[CChar]] = []
    try forEachName { name throws(Errno) in
      guard isWanted(name) else { return true }
      names.append(Array(UnsafeBufferPointer(start: name, count: name.length + 1)))
      return names.count < most
    }
    return names
  }

  /// Returns all names that are UTF-8, in no order.
  package func names() throws(Errno) -> [String] {
    var names: [String] = []
    try forEachName { name throws(Errno) in
      if let name = String(validatingCString: name) { names.append(name) }
      return true
    }
    return names
  }
}

private func isDot(_ name: UnsafePointer<CChar>) -> Bool {
  let dot = CChar(bitPattern: UInt8(ascii: "."))
  guard name[0] == dot else { return false }
  return name[1] == 0 || (name[1] == dot && name[2] == 0)
}
