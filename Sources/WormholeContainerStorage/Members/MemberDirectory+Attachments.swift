package import WormholeSyscalls

/// Files that belong to messages: a file's name contains the name of its message. The file exists
/// before the message is placed, and is removed when the message is settled.
extension MemberDirectory {
  /// A file of a message, open for reading.
  package struct OpenedFile: ~Copyable {
    package let file: Descriptor
    package let status: FileStatus
  }

  /// The reason why the file of a message is not as it was sent.
  package enum AttachmentProblem: SystemFailure, Hashable {
    case system(Errno)
    case missing
    case refused(String)
    case damaged(String)
    case cancelled
    /// The transfer is complete, and a power cut may undo it.
    case notDurable(Errno)
  }

  /// Opens the file of a message, if it may be read and has the size that was sent.
  package func openAttachment(
    _ name: String, size: Int
  ) throws(AttachmentProblem) -> OpenedFile {
    let opened = try openAnyAttachment(name)
    let status = opened.status
    guard status.kind == .regular else { throw .refused("the file is not a regular file") }
    if container.options.sharing == .owner, status.owner != Processes.effectiveUser {
      throw .refused("the file belongs to user \(status.owner)")
    }
    if container.options.sharing == .group, status.mode & Sharing.group.foreignWriters != 0 {
      throw .refused("unauthorized users may write to the file")
    }
    guard status.size == size else {
      throw .damaged("the file has \(status.size) bytes, and \(size) were sent")
    }
    return opened
  }

  private func openAnyAttachment(_ name: String) throws(AttachmentProblem) -> OpenedFile {
    do throws(Errno) {
      let file = try part(.files).descriptor.open(name, .readOnlyNonBlocking)
      let status = try file.status()
      return OpenedFile(file: file, status: status)
    } catch {
      switch error {
      case .noSuchFile: throw .missing
      case .tooManyLinks: throw .refused("the path is a symbolic link")
      case .noDevice: throw .refused("the path is a socket")
      default: throw .system(error)
      }
    }
  }

  /// Reads the whole file of a message, and compares it with the size and checksum that were sent.
  package func verifyAttachment(
    _ name: String, size: Int, checksum: UInt32, _ report: FileCopy.Report
  ) throws(AttachmentProblem) {
    let opened = try openAttachment(name, size: size)
    try verify(opened.file, size: size, checksum: checksum, report)
  }

  private func verify(
    _ file: borrowing Descriptor, size: Int, checksum: UInt32, _ report: FileCopy.Report
  ) throws(AttachmentProblem) {
    let found: UInt32
    do throws(CopyFailure) {
      found = try FileCopy.checksum(of: file, size: size, report)
    } catch {
      throw AttachmentProblem(error, size)
    }
    guard found == checksum else { throw .damaged("its checksum is wrong") }
  }

  // MARK: Moving out

  /// The parameters for moving a file out.
  package struct TakeOptions: Sendable {
    package var name: String
    package var size: Int
    package var checksum: UInt32
    package var durability: Durability
    package var isReplacing: Bool

    package init(
      name: String, size: Int, checksum: UInt32, durability: Durability, isReplacing: Bool
    ) {
      self.name = name
      self.size = size
      self.checksum = checksum
      self.durability = durability
      self.isReplacing = isReplacing
    }
  }

  /// Moves the file of a message to a path of the user's; on another file system, copies it under a
  /// hidden name beside the target.
  package func takeAttachment(
    _ taking: TakeOptions, to path: UserPath, _ report: FileCopy.Report
  ) throws(AttachmentProblem) {
    let parent = try AttachmentProblem.wrapping { () throws(Errno) in try path.openParent() }
    if container.options.sharing == .group {
      return try takeOpened(taking, to: parent, path.name, report)
    }
    do throws(Errno) {
      try publish(taking, to: parent, path.name)
    } catch {
      guard error == .crossDevice else { throw .system(error) }
      let opened = try openAttachment(taking.name, size: taking.size)
      _ = try copyOut(opened.file, taking, to: parent, path.name, report)
      try makeDurable(parent, taking)
      _ = try? remove(taking.name, from: .files)
      return
    }
    try makeDurable(parent, taking)
  }

  /// Copies the file of a message to a path of the user's, and leaves the message its file.
  ///
  /// A call of ``makeDurable(_:_:)`` has to follow, once the copy is recorded.
  ///
  /// - Returns: the copy, which can be removed later.
  package func copyAttachment(
    _ taking: TakeOptions, to path: UserPath, _ report: FileCopy.Report
  ) throws(AttachmentProblem) -> HandedCopy {
    let parent = try AttachmentProblem.wrapping { () throws(Errno) in try path.openParent() }
    let opened = try openAttachment(taking.name, size: taking.size)
    let copy = try copyOut(opened.file, taking, to: parent, path.name, report)
    // The lock was for other copiers; now the file is the user's.
    try? copy.unlock()
    return HandedCopy(copy, parent, path)
  }

  /// Makes the name of a copy durable, if the message was sent so.
  package func makeDurable(
    _ copy: HandedCopy, _ taking: TakeOptions
  ) throws(AttachmentProblem) {
    try makeDurable(copy.parent, taking)
  }

  /// Moves exactly the file that is compared here: other users of a group can replace the file at
  /// any moment, so the open file is linked, and not its name.
  private func takeOpened(
    _ taking: TakeOptions, to parent: borrowing Descriptor, _ name: String,
    _ report: FileCopy.Report
  ) throws(AttachmentProblem) {
    let opened = try openAttachment(taking.name, size: taking.size)
    let target = try? parent.status()
    if target?.device == opened.status.device,
      try link(opened.file, taking, to: parent, name, report)
    {
      // The file is the user's now, durable or not: a write to it would damage the message's file.
      defer { _ = try? remove(taking.name, from: .files) }
      return try makeDurable(parent, taking)
    }
    _ = try copyOut(opened.file, taking, to: parent, name, report)
    try makeDurable(parent, taking)
    _ = try? remove(taking.name, from: .files)
  }

  /// Links the file to the name; false if the kernel does not permit or support that.
  private func link(
    _ file: borrowing Descriptor, _ taking: TakeOptions, to parent: borrowing Descriptor,
    _ name: String, _ report: FileCopy.Report
  ) throws(AttachmentProblem) -> Bool {
    try verify(file, size: taking.size, checksum: taking.checksum, report)
    let hidden = hiddenName(of: taking, in: parent)
    do throws(Errno) {
      guard taking.isReplacing else {
        try file.linkOpen(to: parent, name)
        return true
      }
      try file.linkOpen(to: parent, hidden)
    } catch {
      if error == .fileExists { throw .system(error) }
      return false
    }
    do throws(Errno) {
      try parent.rename(hidden, to: parent, name)
    } catch {
      try? parent.unlink(hidden)
      throw .system(error)
    }
    // If the name already led to this file, the rename leaves both names.
    try? parent.unlink(hidden)
    return true
  }

  private func publish(
    _ taking: TakeOptions, to parent: borrowing Descriptor, _ name: String
  ) throws(Errno) {
    let files = try part(.files)
    guard taking.isReplacing else {
      return try files.descriptor.publish(taking.name, to: parent, name)
    }
    try files.descriptor.rename(taking.name, to: parent, name)
  }

  private func makeDurable(
    _ directory: borrowing Descriptor, _ taking: TakeOptions
  ) throws(AttachmentProblem) {
    guard taking.durability == .power, !Mutants.has(.noTakenSync) else { return }
    if let error = Errno.of({ () throws(Errno) in try directory.sync() }) {
      throw .notDurable(error)
    }
  }

  private func copyOut(
    _ file: borrowing Descriptor, _ taking: TakeOptions, to parent: borrowing Descriptor,
    _ name: String,
    _ report: FileCopy.Report
  ) throws(AttachmentProblem) -> Descriptor {
    // Checked before copying, because a copy may take long.
    if !taking.isReplacing, (try? parent.status(of: name)) != nil { throw .system(.fileExists) }
    var hidden = hiddenName(of: taking, in: parent)
    let copy = try AttachmentProblem.wrapping { () throws(Errno) -> Descriptor in
      if let first = try makeCopy(hidden, in: parent) { return first }
      hidden = Sharing.hiddenName(container.options.environment)
      guard let second = try makeCopy(hidden, in: parent) else { throw .fileExists }
      return second
    }
    let failure: AttachmentProblem?
    do throws(Errno) {
      failure = fill(copy, from: file, taking, report)
      if failure == nil {
        if taking.isReplacing {
          try parent.rename(hidden, to: parent, name)
        } else {
          try parent.publish(hidden, to: parent, name)
        }
      }
    } catch {
      try? parent.unlink(hidden)
      throw .system(error)
    }
    if let failure {
      try? parent.unlink(hidden)
      throw failure
    }
    return copy
  }

  /// Creates and locks the file of a copy; nil if another attempt has the name.
  ///
  /// Another attempt may find the file before the file is locked, and removes the file as if a
  /// killed process had left it. Therefore the name is checked again under the lock.
  private func makeCopy(
    _ hidden: String, in parent: borrowing Descriptor
  ) throws(Errno) -> Descriptor? {
    guard let copy = try ignoring(.fileExists, parent.open(hidden, .readWriteNew, mode: 0o600))
    else { return nil }
    // The lock shows later attempts that the copier lives. If the file system has no locks, later
    // attempts cannot lock the copy either and leave it alone.
    guard (try? copy.tryLock(.exclusive)) != false, isFile(copy, hidden, in: parent) else {
      return nil
    }
    return copy
  }

  private func isFile(
    _ file: borrowing Descriptor, _ name: String, in parent: borrowing Descriptor
  ) -> Bool {
    guard let named = try? parent.status(of: name), let opened = try? file.status() else {
      return false
    }
    return FileIdentity(named) == FileIdentity(opened)
  }

  /// Returns the name of a copy until it is complete: the same for every attempt, so that the copy
  /// of an earlier, killed attempt is found and removed.
  private func hiddenName(of taking: TakeOptions, in parent: borrowing Descriptor) -> String {
    let hidden = Sharing.hiddenName(of: taking.name)
    guard let left = try? parent.open(hidden, .readOnlyNonBlocking) else {
      let isFree = (try? parent.status(of: hidden)) == nil
      return isFree ? hidden : Sharing.hiddenName(container.options.environment)
    }
    // Another process may still be copying.
    guard (try? left.tryLock(.exclusive)) == true, (try? left.status().kind) == .regular,
      isFile(left, hidden, in: parent), (try? parent.unlink(hidden)) != nil
    else { return Sharing.hiddenName(container.options.environment) }
    return hidden
  }

  private func fill(
    _ copy: borrowing Descriptor, from file: borrowing Descriptor, _ taking: TakeOptions,
    _ report: FileCopy.Report
  ) -> AttachmentProblem? {
    do throws(CopyFailure) {
      let sum = try FileCopy.copy(file, to: copy, size: taking.size, report)
      guard sum == taking.checksum || Mutants.has(.trustCopies) else {
        return .damaged("its checksum is wrong")
      }
    } catch {
      return AttachmentProblem(error, taking.size)
    }
    guard taking.durability == .power else { return nil }
    return Errno.of { () throws(Errno) in try copy.sync() }.map { .system($0) }
  }

  // MARK: Files of dead processes

  /// Removes files without a message: the sender died before it placed the message, or a process
  /// died after it settled the message.
  ///
  /// A sender locks the file until its message is placed, so a file that can be locked and has no
  /// message will never have one. No process may claim messages during the sweep.
  ///
  /// - Parameters:
  ///   - isLooking: whether the sweep only reports, and removes nothing.
  ///   - messages: the names that a file's message may have; nil for foreign files, which are left
  ///     alone.
  /// - Returns: the names of the removed files, or of the files that a sweep would remove.
  package func sweepFiles(
    isLooking: Bool = false, _ messages: (String) -> [String]?
  ) throws(Errno) -> [String] {
    let names = try self.names(in: .files) { String(cString: $0) }.filter { messages($0) != nil }
    // The message of a file may be among the unknown ones.
    guard !names.isEmpty, try !hasUnknownClaims() else { return [] }
    var swept: [String] = []
    for name in names {
      guard let messages = messages(name), try !isAwaited(messages) else { continue }
      // It may be foreign, or removed in the meantime.
      try ignoring([.noSuchFile, .tooManyLinks, .noDevice, .accessDenied, .notPermitted]) {
        () throws(Errno) in
        let file = try part(.files).descriptor.open(name, .readOnlyNonBlocking)
        guard try file.status().kind == .regular, try file.tryLock(.exclusive) else { return }
        defer { try? file.unlock() }
        // The message may have arrived and moved on before the lock was taken; and a dead-lettered
        // message may be on its way back.
        if !Mutants.has(.sweepUnasked), try isAwaited(messages) { return }
        if !Mutants.has(.sweepUnasked), try isAwaited(messages) { return }
        let isSwept = isLooking ? true : try remove(name, from: .files)
        if isSwept { swept.append(name) }
      }
    }
    return swept
  }

  /// Whether a message with any of the names exists, checked in the order of the message's moves.
  private func isAwaited(_ names: [String]) throws(Errno) -> Bool {
    for name in names where try isThere(name, in: .inbox) { return true }
    for holder in try workers() + [self] {
      let isClaimed = try holder.contains(.claimed) { file in
        let claimed = String(cString: file)
        return claimed.lastIndex(of: "~").map { names.contains(String(claimed[..<$0])) } ?? false
      }
      if isClaimed { return true }
    }
    for name in names where try isThere(name, in: .dead) { return true }
    return false
  }

  /// Read-only: a missing part is not made.
  private func isThere(_ name: String, in part: Part) throws(Errno) -> Bool {
    guard let directory = try existing(part) else { return false }
    return try ignoring(.noSuchFile, directory.descriptor.status(of: name)) != nil
  }
}

extension MemberDirectory.AttachmentProblem {
  init(_ failure: CopyFailure, _ size: Int) {
    self =
      switch failure {
      case .system(let error): .system(error)
      case .shrank(let now):
        .damaged("the file was truncated to \(now) bytes, and \(size) were sent")
      case .cancelled: .cancelled
      }
  }
}
