package import WormholeSyscalls

/// A user's path: of a file to send, or of the target of a received file.
package struct UserPath: Sendable {
  package let path: String
  /// The directory part, with a slash at its end; empty if the path has none.
  package let parent: String
  /// Its last component.
  package let name: String

  package init(_ path: String) {
    self.path = path
    if let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) {
      let start = path.utf8.index(after: slash)
      parent = String(path[..<start])
      name = String(path[start...])
    } else {
      parent = ""
      name = path
    }
  }

  /// The directory part, without a slash at its end.
  package var directory: String {
    parent.isEmpty ? "." : Self.withoutSlashes(parent)
  }

  /// Returns the path without slashes and dots at its end, with which the kernel would follow a
  /// link.
  package static func withoutSlashes(_ path: String) -> String {
    var bytes = path.utf8[...]
    while bytes.count > 1,
      bytes.last == UInt8(ascii: "/") || bytes.suffix(2).elementsEqual("/.".utf8)
    {
      bytes.removeLast()
    }
    return bytes.count == path.utf8.count ? path : String(Substring(bytes))
  }

  /// Whether a file can have this name.
  package static func isName(_ name: String) -> Bool { isName(name.utf8) }

  @inline(__always)
  static func isName(_ name: some Collection<UInt8>) -> Bool {
    let (dot, count) = (UInt8(ascii: "."), name.count)
    guard 1...255 ~= count else { return false }
    if count <= 2, name.allSatisfy({ $0 == dot }) { return false }
    return name.allSatisfy { $0 != UInt8(ascii: "/") && $0 != 0 }
  }

  /// Opens the directory and follows links.
  package func openParent(_ flags: OpenFlags = .readOnlyDirectory) throws(Errno) -> Descriptor {
    try Descriptor.open(path: parent + ".", flags)
  }

  /// Whether the path is a symbolic link itself.
  package var isLink: Bool {
    guard let parent = try? openParent([.path, .directory]) else { return false }
    return (try? parent.status(of: name))?.kind == .symbolicLink
  }

  /// Opens the file to send.
  ///
  /// The path is the user's own, so links are followed; a FIFO or a device does not block the call.
  package func open(_ operation: String) throws(WormholeError) -> UserFile {
    let opened = try openAny(operation)
    guard opened.status.kind == .regular else { throw refusal(opened.status.kind, operation) }
    return opened
  }

  private func openAny(_ operation: String) throws(WormholeError) -> UserFile {
    do throws(Errno) {
      // C would end the path at the zero byte.
      guard !path.utf8.contains(0) else { throw .noSuchFile }
      let file = try Descriptor.open(following: path, .readOnlyNonBlocking)
      let status = try file.status()
      return UserFile(path: self, file: file, status: status)
    } catch {
      if error == .noDevice { throw refusal(.socket, operation) }
      if error == .tooManyLinks {
        throw WormholeError(
          .refused, operation, path, because: "its symbolic links form a cycle", errno: error)
      }
      throw WormholeError(error, operation, path)
    }
  }

  private func refusal(_ kind: FileStatus.Kind, _ operation: String) -> WormholeError {
    let what =
      switch kind {
      case .directory: "a directory"
      case .fifo: "a FIFO"
      case .socket: "a socket or a device without a driver"
      case .device: "a device"
      case .symbolicLink: "a symbolic link"
      case .regular: "a file"
      }
    return WormholeError(
      .refused, operation, path, because: "the path is \(what), not a regular file",
      hint: kind == .directory ? "pack the directory into an archive file" : nil)
  }
}

/// A user's regular file, open for reading.
package struct UserFile: ~Copyable, Sendable {
  package let path: UserPath
  package let file: Descriptor
  /// The status when the file was opened: its size is the number of bytes to send.
  package let status: FileStatus

  /// Gives the file a second name, in another directory; false if linking is not possible, or if
  /// the file already has several names.
  func link(to directory: borrowing Descriptor, as new: String) -> Bool {
    guard status.links == 1, status.owner == Processes.effectiveUser else { return false }
    do throws(Errno) {
      let parent = try path.openParent([.path, .directory])
      try parent.link(path.name, to: directory, new)
      // If the path is a symbolic link, the new name is a link too, and not the opened file.
      if try directory.status(of: new).isSameFile(as: status) { return true }
      try directory.unlink(new)
    } catch {
      // Another file system, or one without links: the caller copies the file.
    }
    return false
  }

  /// Removes the file, if its path still leads to it.
  package func remove() throws(Errno) {
    let parent = try path.openParent([.path, .directory])
    guard try parent.status(of: path.name).isSameFile(as: status) else { throw .busy }
    try parent.unlink(path.name)
  }
}
