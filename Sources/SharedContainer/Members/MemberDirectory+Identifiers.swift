package import Syscalls

/// Second names of messages that only one of them can have at a time, in `files/`: links to the
/// same file.
///
/// That a name can exist once is what decides among several who send under one id, and it costs no
/// look at what is there already. Whoever ends the message removes the link. One that a process has
/// left that died between the two is found out by the next who wants the name: it locks the file
/// (which its maker does until the message is placed, so one that is still being placed is not
/// taken for such), looks whether the message is anywhere, and puts a link to its own file in its
/// place.
extension MemberDirectory {
  /// Places a new file as ``place(_:as:in:durability:replacing:)`` does, with a second name; false
  /// if another message has that.
  ///
  /// - Parameter isOver: whether the message that has it has ended; asked only if there is one.
  package func place(
    _ bytes: [UInt8], as name: String, in part: Part, durability: Durability, unique: String,
    isOver: () throws(Errno) -> Bool
  ) throws(Errno) -> Bool {
    let syncs = durability == .power && !Mutants.has(.noFileSync)
    let (directory, files) = (try self.part(part), try self.part(.files))
    let staging = container.staging
    var result: Result<Bool, Errno>?
    bytes.withUnsafeBytes { bytes in
      result = Result { () throws(Errno) in
        try staging.withFile(bytes, sync: syncs) { staged, file throws(Errno) in
          // To close it is not enough: a child that is just being started may hold a copy, and
          // whoever ends the message soon could not give the name back, nor the next one take it.
          defer { try? file.unlock() }
          let taken = try take(unique, for: staged, in: files, isOver)
          guard case .had(let link) = taken else { return false }
          defer { link?.unlock() }
          do throws(Errno) {
            try staging.directory().descriptor.publish(staged, to: directory.descriptor, name)
          } catch {
            // Nobody else takes it over while the file is locked.
            try? files.descriptor.unlink(unique)
            throw error
          }
          return true
        }
      }
    }
    return try result!.get()
  }

  private enum Taken {
    case not
    /// The link itself is locked where the lock on the file is not seen through it.
    case had(LockedFile?)
  }

  private func take(
    _ unique: String, for staged: String, in files: OpenDirectory,
    _ isOver: () throws(Errno) -> Bool
  ) throws(Errno) -> Taken {
    let staging = container.staging
    for _ in 0..<100 {
      do throws(Errno) {
        try staging.directory().descriptor.link(staged, to: files.descriptor, unique)
        guard container.reading.isRelayed else { return .had(nil) }
        // Whoever was sooner to lock it takes it for one that the dead have left.
        guard case .locked(let link) = try lock(unique, in: files) else { return .not }
        return .had(link)
      } catch {
        guard error == .fileExists else { throw error }
      }
      switch try lock(unique, in: files) {
      case .gone: continue
      case .busy: return .not
      case .locked(let old):
        defer { old.unlock() }
        guard try isOver() else { return .not }
        let spare = "\(unique),\(container.options.environment.randomName())"
        try staging.directory().descriptor.link(staged, to: files.descriptor, spare)
        var link: LockedFile?
        if container.reading.isRelayed, case .locked(let file) = try lock(spare, in: files) {
          link = file
        }
        try files.descriptor.rename(spare, to: files.descriptor, unique)
        return .had(link)
      }
    }
    return .not
  }

  /// A file that is locked as long as this is kept.
  private final class LockedFile {
    let status: FileStatus
    private let file: Descriptor

    init(_ file: consuming Descriptor, _ status: FileStatus) {
      self.file = file
      self.status = status
    }

    // A child that is just being started may hold a copy of the descriptor.
    func unlock() { try? file.unlock() }
  }

  private enum Lock {
    case gone, busy
    case locked(LockedFile)
  }

  private func lock(_ unique: String, in files: OpenDirectory) throws(Errno) -> Lock {
    do throws(Errno) {
      let file = try files.descriptor.open(unique, .readOnlyNonBlocking)
      guard try file.tryLock(.exclusive) else { return .busy }
      let status = try file.status()
      guard try files.descriptor.status(of: unique).isSameFile(as: status) else {
        try file.unlock()
        return .gone
      }
      return .locked(LockedFile(file, status))
    } catch {
      guard error == .noSuchFile else { throw error }
      return .gone
    }
  }

  /// Gives a second name back, if it is still that of this file, which has ended.
  package func release(_ unique: String, of file: FileStatus) {
    // What cannot be given back now is found out by the next who wants it.
    guard let files = try? part(.files), let found = try? lock(unique, in: files) else { return }
    switch found {
    case .locked(let locked):
      defer { locked.unlock() }
      if locked.status.isSameFile(as: file) { try? files.descriptor.unlink(unique) }
    case .gone, .busy: break
    }
  }

  /// Gives those back that the dead have left.
  ///
  /// - Parameters:
  ///   - isUnique: whether a name in `files/` is such a second name.
  ///   - isOver: whether the message that has it has ended.
  package func sweepUnique(
    _ isUnique: (String) -> Bool, isOver: (String) throws(Errno) -> Bool
  ) throws(Errno) {
    guard let files = try existing(.files) else { return }
    var names: [String] = []
    try list(.files) { name in
      let name = String(cString: name)
      if isUnique(name) { names.append(name) }
    }
    for name in names {
      switch try lock(name, in: files) {
      case .locked(let locked):
        defer { locked.unlock() }
        if try isOver(name) { try? files.descriptor.unlink(name) }
      case .gone, .busy: break
      }
    }
  }
}
