package import WormholeSyscalls

/// Second names of messages, in `files/`: links to the message's file, with names that a single
/// message can have at a time.
///
/// A name can exist only once: if several senders use the same id, the link decides between them,
/// without a listing. The process that settles the message removes the link. If a process dies
/// before the removal, the link outlives its message. The next sender with the same id then finds
/// the link: the sender locks the file, checks whether the message exists anywhere, and replaces
/// the link by a link to its own file. The maker locks the file until the message is placed, so a
/// message that is still being placed is not taken for an abandoned one.
extension MemberDirectory {
  /// Places a new file as ``place(_:as:in:durability:replacing:)`` does, with a second name; false
  /// if another message has the second name.
  ///
  /// - Parameter isOver: whether the message with the second name is settled; called only if the
  ///   name is taken.
  package func place(
    _ bytes: [UInt8], as name: String, in part: Part, durability: Durability, unique: String,
    isOver: () throws(Errno) -> Bool
  ) throws(Errno) -> Bool {
    let syncs = durability == .power && !Mutants.has(.noFileSync)
    var (directory, files) = (try self.part(part), try self.part(.files))
    var isSecondTry = false
    let staging = container.staging
    return try staging.withFile(
      bytes, sync: syncs,
      renewing: { (error: Errno) throws(Errno) -> Bool in
        guard !isSecondTry, error == .noSuchFile,
          [part, .files].filter({ forgetIfStale($0) }) != []
        else { return false }
        isSecondTry = true
        directory = try self.part(part)
        files = try self.part(.files)
        return true
      }
    ) { staged, file throws(Errno) in
      // Closing is not enough: a child that is being spawned may have a copy of the descriptor.
      // Without unlocking, a process that settles the message soon could not release the name,
      // and the next sender could not take it.
      defer { try? file.unlock() }
      let taken = try take(unique, for: staged, in: files, isOver)
      guard case .had(let link) = taken else { return false }
      defer { link?.unlock() }
      do throws(Errno) {
        try staging.directory().descriptor.publish(staged, to: directory.descriptor, name)
      } catch {
        // No other process takes the name over while the file is locked.
        try? files.descriptor.unlink(unique)
        throw error
      }
      return true
    }
  }

  private enum IdentifierUse {
    case not
    /// The link itself is locked, if the lock on the file is not visible through the link.
    case had(LockedFile?)
  }

  private func take(
    _ unique: String, for staged: String, in files: OpenDirectory,
    _ isOver: () throws(Errno) -> Bool
  ) throws(Errno) -> IdentifierUse {
    let staging = container.staging
    for _ in 0..<100 {
      do throws(Errno) {
        try staging.directory().descriptor.link(staged, to: files.descriptor, unique)
        guard container.reader.isRelayed else { return .had(nil) }
        // If another process locked the link first, it takes the link for an abandoned one.
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
        if container.reader.isRelayed, case .locked(let file) = try lock(spare, in: files) {
          link = file
        }
        try files.descriptor.rename(spare, to: files.descriptor, unique)
        return .had(link)
      }
    }
    return .not
  }

  /// A locked file; the lock lasts as long as the object.
  private final class LockedFile {
    let status: FileStatus
    private let file: Descriptor

    init(_ file: consuming Descriptor, _ status: FileStatus) {
      self.file = file
      self.status = status
    }

    // A child that is being spawned may have a copy of the descriptor.
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

  /// Releases a settled message's second name, if the name still leads to the message's file.
  package func release(_ unique: String, of file: FileStatus) {
    // After a failed release, the next sender with the same id takes the name over.
    guard let files = try? part(.files), let found = try? lock(unique, in: files) else { return }
    switch found {
    case .locked(let locked):
      defer { locked.unlock() }
      if locked.status.isSameFile(as: file) { try? files.descriptor.unlink(unique) }
    case .gone, .busy: break
    }
  }

  /// Releases the second names that dead processes have left.
  ///
  /// - Parameters:
  ///   - isUnique: whether a name in `files/` is a second name.
  ///   - isOver: whether the message with the second name is settled.
  package func sweepUnique(
    _ isUnique: (String) -> Bool, isOver: (String) throws(Errno) -> Bool
  ) throws(Errno) {
    guard let files = try existing(.files) else { return }
    for name in try names(in: .files, { String(cString: $0) }) where isUnique(name) {
      switch try lock(name, in: files) {
      case .locked(let locked):
        defer { locked.unlock() }
        if try isOver(name) { try? files.descriptor.unlink(name) }
      case .gone, .busy: break
      }
    }
  }
}
