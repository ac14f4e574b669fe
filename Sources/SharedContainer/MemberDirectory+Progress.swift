package import Syscalls

/// The one file that is written in place; see `Progress`.
extension MemberDirectory {
  /// What the last incarnation left; empty if there is nothing of the size.
  package func readProgress(_ name: String, size: Int) throws(WormholeError) -> [UInt8] {
    do throws(Errno) {
      let file = try home.descriptor.open(name, [.readOnly, .nonBlocking])
      let status = try file.status()
      guard status.kind == .regular, status.size == size else { return [] }
      return try file.readAll(size: size)
    } catch {
      // A link or a socket in its place is foreign, and replaced by the rename.
      if [.noSuchFile, .tooManyLinks, .noDevice].contains(error) { return [] }
      throw WormholeError(error, "open mailbox", self.name)
    }
  }

  /// Makes the file anew with this content and maps it.
  ///
  /// It is the user's own even where the container is a group's: whoever could cut it short could
  /// bring this process down.
  package func mapProgress(_ name: String, _ bytes: [UInt8]) throws(WormholeError) -> Mapping {
    let staging = container.staging
    let sharing = container.options.sharing
    var result: Result<Mapping, Errno>?
    bytes.withUnsafeBytes { bytes in
      result = Result { () throws(Errno) in
        try staging.withFile(bytes) { staged, file throws(Errno) in
          try file.setMode(sharing == .group ? 0o640 : 0o600)
          do throws(Errno) {
            try file.reserve(bytes.count)
          } catch {
            // Its bytes are written, so all but exotic file systems have set them aside already.
            guard error == .notSupported else { throw error }
          }
          let mapping = try Mapping(file, size: bytes.count)
          try staging.directory.rename(staged, to: home.descriptor, name)
          return mapping
        }
      }
    }
    do throws(Errno) {
      return try result!.get()
    } catch {
      throw WormholeError(error, "open mailbox", self.name)
    }
  }
}
