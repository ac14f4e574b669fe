package import WormholeSyscalls

/// The only file that is written in place; see `Progress`.
extension MemberDirectory {
  /// Returns the content from the last incarnation; empty without a valid file.
  package func readProgress(
    _ name: String, largest: Int
  ) throws(WormholeError) -> [UInt8] {
    do throws(Errno) {
      let file = try home.descriptor.open(name, .readOnlyNonBlocking)
      let status = try file.status()
      guard status.kind == .regular, status.size <= largest else { return [] }
      return try file.readAll(size: status.size)
    } catch {
      // A link or a socket in its place is foreign, and the rename replaces it.
      if [.noSuchFile, .tooManyLinks, .noDevice].contains(error) { return [] }
      throw WormholeError(error, "open mailbox", self.name, at: self)
    }
  }

  /// Replaces the file by a new file with the given content.
  ///
  /// The file belongs to the user alone even if the container is a group's: no other user may mark
  /// messages as processed. If there is no space for a new file, the old file is used, if it has
  /// the size and belongs to the user.
  package func makeProgress(
    _ name: String, _ bytes: [UInt8], page: Int
  ) throws(WormholeError) -> [FilePage] {
    try naming("open mailbox", self.name, at: self) { () throws(Errno) in
      do throws(Errno) {
        return try makeProgressAnew(name, bytes, page)
      } catch {
        guard [.noSpace, .quotaExceeded].contains(error),
          let old = try? openProgress(name, bytes.count...bytes.count)
        else { throw error }
        return try Self.pages(of: old, bytes.count, page)
      }
    }
  }

  /// Extends the file by a page, with reserved disk space.
  ///
  /// An earlier call may have extended the file, in whole or in part, and failed afterwards.
  ///
  /// - Parameter size: the present size, without the page of such a call.
  package func extendProgress(_ name: String, size: Int, page: Int) throws(Errno) -> FilePage {
    let file = try openProgress(name, size...(size + page))
    do throws(Errno) {
      try file.reserve(size + page)
    } catch {
      guard error == .notSupported else { throw error }
      // Written bytes have disk space.
      let zeros = [UInt8](repeating: 0, count: page)
      try file.writeFully(zeros.span.bytes, at: size)
    }
    return try FilePage(file, at: size, size: page)
  }

  private func makeProgressAnew(
    _ name: String, _ bytes: [UInt8], _ page: Int
  ) throws(Errno) -> [FilePage] {
    let staging = container.staging
    let sharing = container.options.sharing
    return try staging.withFile(bytes, isPrivate: true) { staged, file throws(Errno) in
      try file.setMode(sharing == .group ? 0o640 : 0o600)
      // The bytes are written, so all but exotic file systems have reserved their space
      // already.
      try ignoring(.notSupported, file.reserve(bytes.count))
      let pages = try Self.pages(of: file, bytes.count, page)
      try staging.directory().descriptor.rename(staged, to: home.descriptor, name)
      // The file is no longer staged, and the descriptors of the pages share the lock.
      try file.unlock()
      return pages
    }
  }

  private static func pages(
    of file: borrowing Descriptor, _ size: Int, _ page: Int
  ) throws(Errno) -> [FilePage] {
    var pages: [FilePage] = []
    for offset in stride(from: 0, to: size, by: page) {
      pages.append(try FilePage(file, at: offset, size: page))
    }
    return pages
  }

  /// Opens the present file, if only this user may write to it.
  private func openProgress(
    _ name: String, _ sizes: ClosedRange<Int>
  ) throws(Errno) -> Descriptor {
    let file = try home.descriptor.open(name, [.readWrite, .nonBlocking])
    let status = try file.status()
    guard status.kind == .regular, sizes.contains(status.size), status.links == 1,
      status.owner == Processes.effectiveUser, status.mode & 0o022 == 0
    else { throw .notPermitted }
    return file
  }
}
