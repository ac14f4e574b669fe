package import WormholeSyscalls

/// `live/<incarnation>/`: messages for the running process, removed with it.
///
/// A process that joins makes its own folder and removes the folders of dead incarnations; their
/// messages are never read again. Immediate messages therefore never arrive at a later process.
extension MemberDirectory {
  /// Makes the folder of an incarnation.
  package func makeLive(_ incarnation: Incarnation) throws(Errno) -> OpenDirectory {
    OpenDirectory(
      try container.staging.ensureDirectory(
        incarnation.rawValue, in: part(.live).descriptor))
  }

  /// Removes the folders of all other incarnations.
  ///
  /// The caller has the presence during the call: without it, another process may join and make its
  /// folder.
  ///
  /// - Returns: false if the system has refused a part of it, and may grant it later.
  package func sweepLive(but incarnation: Incarnation) -> Bool {
    var isSwept = true
    func attempt(_ what: String, _ call: () throws(Errno) -> Void) {
      do throws(Errno) {
        try call()
      } catch {
        // A foreign entry blocks no member.
        container.log(
          .notice, "could not \(what): \(error)", about: LogSubject(member: name), because: error)
        let failure = WormholeError(error, "sweep", name)
        if failure.mayPass || failure.code == .full { isSwept = false }
      }
    }
    attempt("list '\(path)/live'") { () throws(Errno) in
      let live = try part(.live)
      for other in try live.descriptor.names() where other != incarnation.rawValue {
        attempt("remove '\(path)/live/\(other)'") { () throws(Errno) in
          try removeTree(other, in: live.descriptor, container.options.sharing)
        }
      }
    }
    return isSwept
  }

  /// Returns the folder of an incarnation; nil if it was removed.
  package func live(_ incarnation: Incarnation) throws(Errno) -> OpenDirectory? {
    try ignoring(
      .noSuchFile,
      OpenDirectory(
        container.options.sharing.openExisting(
          incarnation.rawValue, in: part(.live).descriptor)))
  }

  /// Removes the folder of a leaving incarnation.
  package func removeLive(_ incarnation: Incarnation) throws(Errno) {
    try removeTree(
      incarnation.rawValue, in: part(.live).descriptor, container.options.sharing)
  }
}

extension Container {
  /// Puts a complete new file into an open directory, under a free name.
  package func addFile(
    _ bytes: [UInt8], to directory: OpenDirectory, as name: String
  ) throws(Errno) {
    try staging.publish(bytes, sync: false, as: name) { directory }
  }

  /// Returns why a small file cannot be written here now; nil if it can be.
  package func stagingFailure() -> Errno? {
    Errno.of { () throws(Errno) in
      try staging.withFile([UInt8](repeating: 0, count: 4096)) { _, _ throws(Errno) in }
    }
  }

  /// Takes a file out of an open directory: reads and removes the file.
  ///
  /// - Parameter mayStay: whether the content is returned too if the file cannot be removed; the
  ///   caller may then find the file again.
  /// - Returns: nil if the file is missing, or another process has removed it in the meantime.
  package func take(
    _ name: String, from directory: OpenDirectory, mayStay: Bool = false
  ) throws(WormholeError) -> FoundFile? {
    try name.withCName { path throws(WormholeError) in
      try take(name, path, from: directory, mayStay)
    }
  }

  private func take(
    _ name: String, _ path: UnsafePointer<CChar>, from directory: OpenDirectory, _ mayStay: Bool
  ) throws(WormholeError) -> FoundFile? {
    let found: FoundFile
    do throws(ReadRefusal) {
      found = try reader.read(path, in: directory.descriptor)
    } catch {
      let refusal = error.error("read", name, name)
      // A temporary failure proves nothing; other unreadable files are removed, or each retry would
      // fail.
      if !refusal.mayPass { try? directory.descriptor.unlink(path) }
      throw refusal
    }
    if case .missing = found { return nil }
    do throws(WormholeError) {
      let isOurs = try naming(
        "remove", name, ignoring(.noSuchFile, directory.descriptor.unlink(path)) != nil)
      return isOurs ? found : nil
    } catch {
      guard mayStay else { throw error }
      return found
    }
  }
}
