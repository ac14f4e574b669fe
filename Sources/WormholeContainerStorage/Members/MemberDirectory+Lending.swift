internal import WormholeSyscalls

/// Making the file of a message available under another name than its name in `files/`.
extension MemberDirectory {
  /// Calls the body with a path at which the file of a message has the visible name; afterwards the
  /// path leads nowhere.
  ///
  /// The path is a second name of the file, or a copy if the system refuses a link, in a directory
  /// of its own in the staging directory. Whatever happens to the second name or to this process,
  /// the file of the message stays where it is, and the directory is swept.
  package func lendAttachment<Value>(
    _ name: String, size: Int, as visible: String, _ body: (String) throws -> Value
  ) throws(AttachmentProblem) -> Result<Value, any Error> {
    let opened = try openAttachment(name, size: size)
    do throws(Errno) {
      return try container.staging.withDirectory { directory throws(Errno) in
        do throws(Errno) {
          try part(.files).descriptor.link(name, to: directory, visible)
        } catch {
          guard error != .noSuchFile else { throw error }
          let copy = try directory.open(
            visible, .readWriteNew, mode: 0o600)
          do throws(CopyFailure) {
            _ = try FileCopy.copy(opened.file, to: copy, size: size) { _ in true }
          } catch {
            guard case .system(let number) = error else { throw .inputOutput }
            throw number
          }
        }
        let path = try directory.path + "/" + visible
        return Result { try body(path) }
      }
    } catch {
      throw error == .noSuchFile ? .missing : .system(error)
    }
  }
}

extension Descriptor {
  /// The current path of the directory.
  fileprivate var path: String {
    get throws(Errno) {
      // `self` is a link itself, so the path contains the process ID.
      let open = try Descriptor.open(
        path: "/proc/\(Processes.current)/fd", .readOnlyDirectory)
      return String(decoding: try open.readSymbolicLink("\(rawValue)"), as: UTF8.self)
    }
  }
}
