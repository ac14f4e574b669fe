package import Syscalls

/// `live/<incarnation>/`: what is for the process that lives now, and goes with it.
///
/// Whoever joins makes a folder of its own and removes those of the dead; nobody ever reads them
/// again. So what only makes sense now never arrives at a later process.
extension MemberDirectory {
  /// Makes the folder of an incarnation, and removes those of the others.
  package func makeLive(_ incarnation: Incarnation) throws(Errno) -> OpenDirectory {
    let live = try part(.live)
    let folder = OpenDirectory(
      try container.staging.ensureDirectory(incarnation.rawValue, in: live.descriptor))
    for name in try live.descriptor.names() where name != incarnation.rawValue {
      do throws(Errno) {
        try removeTree(name, in: live.descriptor)
      } catch {
        // Foreign; it is in nobody's way.
        container.log(
          .notice, "left '\(path)/live/\(name)' where it is: \(error)",
          about: LogSubject(member: self.name), because: error)
      }
    }
    return folder
  }

  /// The folder of an incarnation; nil if it is no more.
  package func live(_ incarnation: Incarnation) throws(Errno) -> OpenDirectory? {
    do throws(Errno) {
      return OpenDirectory(
        try container.options.sharing.openExisting(
          incarnation.rawValue, in: part(.live).descriptor))
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// Removes the folder of an incarnation that leaves.
  package func removeLive(_ incarnation: Incarnation) throws(Errno) {
    try removeTree(incarnation.rawValue, in: part(.live).descriptor)
  }
}

extension Container {
  /// Puts a new file into an open directory, complete, under a name that is free.
  package func place(
    _ bytes: [UInt8], in directory: OpenDirectory, as name: String
  ) throws(Errno) {
    var failure: Errno?
    bytes.withUnsafeBytes { bytes in
      failure = Errno.of { () throws(Errno) in
        try staging.place(bytes, sync: false, in: directory.descriptor, as: name)
      }
    }
    if let failure { throw failure }
  }

  /// Takes a file out of an open directory: reads it, and then removes it.
  ///
  /// - Returns: nil if it is not there, or somebody else has removed it meanwhile.
  package func take(
    _ name: String, from directory: OpenDirectory
  ) throws(WormholeError) -> FoundFile? {
    let found: FoundFile
    do throws(FileReading.Refusal) {
      found = try reading.read(name, in: directory.descriptor)
    } catch {
      let refusal = error.error("read", name, name)
      // What may pass says nothing of it; whatever else it is, it is not to be met again.
      if !refusal.mayPass { try? directory.descriptor.unlink(name) }
      throw refusal
    }
    if case .missing = found { return nil }
    do throws(Errno) {
      try directory.descriptor.unlink(name)
      return found
    } catch {
      if error == .noSuchFile { return nil }
      throw WormholeError(error, "remove", name)
    }
  }
}
