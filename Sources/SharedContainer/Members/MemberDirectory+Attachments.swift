package import Syscalls

/// Files that belong to messages: under a name made of the message's, there before that is, and
/// gone when it has ended.
extension MemberDirectory {
  /// A file of a message, open for reading.
  package struct OpenedFile: ~Copyable {
    package let file: Descriptor
    package let status: FileStatus
  }

  /// Why the file of a message is not as it was sent.
  package enum AttachmentProblem: Error, Hashable {
    case system(Errno)
    case missing
    case refused(String)
    case damaged(String)
    case cancelled
    /// It was done, and a power cut may undo it.
    case notDurable(Errno)
  }

  /// Opens the file of a message, if it is one that may be read, and as large as it was.
  package func openAttachment(
    _ name: String, size: Int
  ) throws(AttachmentProblem) -> OpenedFile {
    let opened = try openAnyAttachment(name)
    let status = opened.status
    guard status.kind == .regular else { throw .refused("it is not a regular file") }
    if container.options.sharing == .owner, status.owner != Processes.effectiveUser {
      throw .refused("it belongs to user \(status.owner)")
    }
    if container.options.sharing == .group, status.mode & Sharing.group.foreignWriters != 0 {
      throw .refused("others may write to it")
    }
    guard status.size == size else {
      throw .damaged("it has \(status.size) bytes, and \(size) were sent")
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
      case .tooManyLinks: throw .refused("a symbolic link stands in its place")
      case .noDevice: throw .refused("a socket stands in its place")
      default: throw .system(error)
      }
    }
  }

  /// Reads the file of a message through, and compares it with what was sent.
  package func verifyAttachment(
    _ name: String, size: Int, checksum: UInt32, _ report: FileCopy.Report
  ) throws(AttachmentProblem) {
    let opened = try openAttachment(name, size: size)
    let found: UInt32
    do throws(FileCopy.Failure) {
      found = try FileCopy.checksum(of: opened.file, size: size, report)
    } catch {
      throw AttachmentProblem(error, size)
    }
    guard found == checksum else { throw .damaged("its checksum is wrong") }
  }

  // MARK: Taking it out

  /// What is known of a file that is to be taken.
  package struct Taking: Sendable {
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

  /// Moves the file of a message to a path of the user's; on another file system, by a copy under a
  /// name beside it.
  package func takeAttachment(
    _ taking: Taking, to path: UserPath, _ report: FileCopy.Report
  ) throws(AttachmentProblem) {
    let parent = try openParent(of: path)
    if container.options.sharing == .group {
      return try takeOpened(taking, to: parent, path.name, report)
    }
    do throws(Errno) {
      try publish(taking, to: parent, path.name)
    } catch {
      guard error == .crossDevice else { throw .system(error) }
      let opened = try openAttachment(taking.name, size: taking.size)
      try copyOut(opened.file, taking, to: parent, path.name, report)
      _ = try? remove(taking.name, from: .files)
      return
    }
    try makeDurable(parent, taking)
  }

  /// Takes what is compared here and nothing else: others of a group can put something else in its
  /// place at any moment, so what is moved is the open file, and not its name.
  private func takeOpened(
    _ taking: Taking, to parent: borrowing Descriptor, _ name: String, _ report: FileCopy.Report
  ) throws(AttachmentProblem) {
    let opened = try openAttachment(taking.name, size: taking.size)
    let target = try? parent.status()
    if target?.device == opened.status.device,
      try link(opened.file, taking, to: parent, name, report)
    {
      try makeDurable(parent, taking)
    } else {
      try copyOut(opened.file, taking, to: parent, name, report)
    }
    _ = try? remove(taking.name, from: .files)
  }

  /// Gives it the name; false where the kernel does not let this user do that, or cannot.
  private func link(
    _ file: borrowing Descriptor, _ taking: Taking, to parent: borrowing Descriptor,
    _ name: String, _ report: FileCopy.Report
  ) throws(AttachmentProblem) -> Bool {
    let found: UInt32
    do throws(FileCopy.Failure) {
      found = try FileCopy.checksum(of: file, size: taking.size, report)
    } catch {
      throw AttachmentProblem(error, taking.size)
    }
    guard found == taking.checksum else { throw .damaged("its checksum is wrong") }
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
    // Where the name led to this very file, both are left.
    try? parent.unlink(hidden)
    return true
  }

  private func openParent(of path: UserPath) throws(AttachmentProblem) -> Descriptor {
    do throws(Errno) {
      return try path.openParent()
    } catch {
      throw .system(error)
    }
  }

  private func publish(
    _ taking: Taking, to parent: borrowing Descriptor, _ name: String
  ) throws(Errno) {
    let files = try part(.files)
    guard taking.isReplacing else {
      return try files.descriptor.publish(taking.name, to: parent, name)
    }
    try files.descriptor.rename(taking.name, to: parent, name)
  }

  private func makeDurable(
    _ directory: borrowing Descriptor, _ taking: Taking
  ) throws(AttachmentProblem) {
    guard taking.durability == .power else { return }
    if let error = Errno.of({ () throws(Errno) in try directory.sync() }) {
      throw .notDurable(error)
    }
  }

  private func copyOut(
    _ file: borrowing Descriptor, _ taking: Taking, to parent: borrowing Descriptor, _ name: String,
    _ report: FileCopy.Report
  ) throws(AttachmentProblem) {
    // Not after all has been copied.
    if !taking.isReplacing, (try? parent.status(of: name)) != nil { throw .system(.fileExists) }
    let hidden = hiddenName(of: taking, in: parent)
    let failure: AttachmentProblem?
    do throws(Errno) {
      let copy = try parent.open(hidden, [.readWrite, .create, .exclusive], mode: 0o600)
      // So that nobody takes it for what a dead process left; where locks are unknown nobody can.
      _ = try? copy.tryLock(.exclusive)
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
    try makeDurable(parent, taking)
  }

  /// What a copy is called until it is complete: the same whenever the file is taken, so that what
  /// an earlier attempt left that was killed is found, and removed.
  private func hiddenName(of taking: Taking, in parent: borrowing Descriptor) -> String {
    let hidden = Sharing.hiddenName(of: taking.name)
    guard let left = try? parent.open(hidden, .readOnlyNonBlocking) else {
      let isFree = (try? parent.status(of: hidden)) == nil
      return isFree ? hidden : Sharing.hiddenName(container.options.environment)
    }
    // Another process may be at it still.
    guard (try? left.tryLock(.exclusive)) == true, (try? left.status().kind) == .regular,
      (try? parent.unlink(hidden)) != nil
    else { return Sharing.hiddenName(container.options.environment) }
    return hidden
  }

  private func fill(
    _ copy: borrowing Descriptor, from file: borrowing Descriptor, _ taking: Taking,
    _ report: FileCopy.Report
  ) -> AttachmentProblem? {
    do throws(FileCopy.Failure) {
      let sum = try FileCopy.copy(file, to: copy, size: taking.size, report)
      guard sum == taking.checksum else { return .damaged("its checksum is wrong") }
    } catch {
      return AttachmentProblem(error, taking.size)
    }
    guard taking.durability == .power else { return nil }
    return Errno.of { () throws(Errno) in try copy.sync() }.map { .system($0) }
  }

  // MARK: What the dead left

  /// Removes files whose message is nowhere: their senders died before they placed it, or somebody
  /// did after ending it.
  ///
  /// A sender holds a lock on the file until its message is placed, so what can be locked and has
  /// no message then never will. Nobody may be claiming messages meanwhile.
  ///
  /// - Parameters:
  ///   - isLooking: whether it only looks, and removes nothing.
  ///   - messages: the names that a file's message may have; nil for foreign files, which are left
  ///     alone.
  /// - Returns: the names of those it has removed, or would.
  package func sweepFiles(
    isLooking: Bool = false, _ messages: (String) -> [String]?
  ) throws(Errno) -> [String] {
    var names: [String] = []
    try list(.files) { names.append(String(cString: $0)) }
    var swept: [String] = []
    for name in names {
      guard let messages = messages(name), try !isAwaited(messages) else { continue }
      do throws(Errno) {
        let file = try part(.files).descriptor.open(name, .readOnlyNonBlocking)
        guard try file.tryLock(.exclusive) else { continue }
        defer { try? file.unlock() }
        // Its message may have come, and gone on, before the lock was had; and one that was given
        // up may be on its way back.
        if try isAwaited(messages) { continue }
        if try isAwaited(messages) { continue }
        let isSwept = isLooking ? true : try remove(name, from: .files)
        if isSwept { swept.append(name) }
      } catch {
        // Foreign, or gone meanwhile.
        guard [.noSuchFile, .tooManyLinks, .noDevice].contains(error) else { throw error }
      }
    }
    return swept
  }

  /// Whether a message of one of these names is there, looked for in the direction in which they
  /// move.
  private func isAwaited(_ names: [String]) throws(Errno) -> Bool {
    for name in names where try isThere(name, in: .inbox) { return true }
    var isClaimed = false
    try list(.claimed) { file in
      let claimed = String(cString: file)
      if let tilde = claimed.lastIndex(of: "~"), names.contains(String(claimed[..<tilde])) {
        isClaimed = true
      }
    }
    if isClaimed { return true }
    for name in names where try isThere(name, in: .dead) { return true }
    return false
  }

  /// For those who only look: a part that is missing is not made.
  private func isThere(_ name: String, in part: Part) throws(Errno) -> Bool {
    guard let directory = try existing(part) else { return false }
    do throws(Errno) {
      _ = try directory.descriptor.status(of: name)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }
}

extension MemberDirectory.AttachmentProblem {
  init(_ failure: FileCopy.Failure, _ size: Int) {
    self =
      switch failure {
      case .system(let error): .system(error)
      case .shrank(let now): .damaged("it was cut to \(now) bytes, and \(size) were sent")
      case .cancelled: .cancelled
      }
  }
}
