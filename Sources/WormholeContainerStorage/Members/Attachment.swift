package import WormholeSyscalls

/// A file on its way to a member: staged, then moved into the member's `files/` under the name of
/// its message, then, after the message is placed, handed over to the message.
///
///     let attachment = try Attachment.stage(file, in: container, …)   // complete, perhaps synced
///     try attachment.move(to: home, as: name)                         // before the message
///     …                                                               // the message is placed
///     attachment.keep()
///
/// The file is flocked from the start until ``keep()``. If a sweeper finds a file without a lock
/// and without a message, the sender is therefore dead, and the sweeper removes the file: see
/// ``MemberDirectory/sweepFiles(isLooking:_:)``. Without ``keep()``, the file is removed with the
/// object.
package final class Attachment {
  package private(set) var size: Int
  package private(set) var checksum: UInt32 = 0
  private let container: Container
  private let file: Descriptor
  private let durability: Durability
  /// The original mode of a linked file, restored unless the message is placed.
  private let originalMode: FileMode?
  private var standing: Location

  private enum Location {
    case staged(String)
    case inFiles(MemberDirectory, String)
    case kept
  }

  private init(
    _ container: Container, _ file: consuming Descriptor, staged name: String, size: Int,
    originalMode: FileMode?, _ durability: Durability
  ) {
    self.container = container
    self.file = file
    self.size = size
    self.originalMode = originalMode
    self.durability = durability
    standing = .staged(name)
  }

  deinit {
    switch standing {
    case .staged(let name):
      restoreMode()
      try? container.staging.directory().descriptor.unlink(name)
    case .inFiles(let home, let name):
      restoreMode()
      _ = try? home.remove(name, from: .files)
    case .kept: break
    }
    // A child that is being spawned may have a copy of the descriptor.
    try? file.unlock()
  }

  private func restoreMode() {
    if let originalMode { try? file.setMode(originalMode) }
  }

  // MARK: Staging

  /// Makes the complete file under a temporary name.
  ///
  /// - Parameter moving: links the source file if possible, instead of a copy. The file keeps its
  ///   own name; the caller removes this name after placing the message.
  package static func stage(
    _ source: borrowing UserFile, in container: Container, moving: Bool, durability: Durability,
    _ report: FileCopy.Report
  ) throws(CopyFailure) -> Attachment {
    let attachment =
      if moving, let linked = try link(source, container, durability, report) {
        linked
      } else {
        try copy(source, container, durability, report)
      }
    guard durability == .power, !Mutants.has(.noFileSync) else {
      return attachment
    }
    try CopyFailure.wrapping { () throws(Errno) in try attachment.file.sync() }
    return attachment
  }

  private static func link(
    _ source: borrowing UserFile, _ container: Container, _ durability: Durability,
    _ report: FileCopy.Report
  ) throws(CopyFailure) -> Attachment? {
    guard let directory = try? container.staging.directory().descriptor.duplicate() else {
      return nil
    }
    let name = container.options.environment.randomName()
    guard source.link(to: directory, as: name) else { return nil }
    guard let file = try? directory.open(name, .readOnlyNonBlocking),
      let isOurs = try? file.tryLock(.exclusive), isOurs
    else {
      // Another process has locked the file, perhaps a sweeper.
      try? directory.unlink(name)
      return nil
    }
    let attachment = Attachment(
      container, file, staged: name, size: source.status.size,
      originalMode: source.status.mode, durability)
    attachment.checksum = try FileCopy.checksum(
      of: attachment.file, size: attachment.size, report)
    return attachment
  }

  private static func copy(
    _ source: borrowing UserFile, _ container: Container, _ durability: Durability,
    _ report: FileCopy.Report
  ) throws(CopyFailure) -> Attachment {
    let made = try make(container)
    let attachment = Attachment(
      container, made.file, staged: made.name, size: source.status.size, originalMode: nil,
      durability)
    if source.status.size == 0,
      let content = try FileCopy.copyUnsized(source.file, to: attachment.file, report)
    {
      (attachment.size, attachment.checksum) = (content.size, content.checksum)
      return attachment
    }
    attachment.checksum = try FileCopy.copy(
      source.file, to: attachment.file, size: attachment.size, report)
    return attachment
  }

  /// Makes a new file in staging, flocked before a sweeper finds it.
  private static func make(_ container: Container) throws(CopyFailure) -> NewFile {
    var tries = 0
    while true {
      let name = container.options.environment.randomName()
      let staging = try CopyFailure.wrapping { () throws(Errno) in
        try container.staging.directory()
      }
      do throws(Errno) {
        let file = try staging.descriptor.open(
          name, .readWriteNew, mode: 0o600)
        if try file.tryLock(.exclusive), try file.status().links > 0 {
          return NewFile(name: name, file: file)
        }
        try? staging.descriptor.unlink(name)
      } catch {
        try? staging.descriptor.unlink(name)
        guard error == .noSuchFile, container.staging.mend() else { throw .system(error) }
      }
      tries += 1
      guard tries < 10 else { throw .system(.busy) }
    }
  }

  private struct NewFile: ~Copyable {
    let name: String
    let file: Descriptor
  }

  // MARK: Into the member's directory

  /// Moves the file to the place that the message names; with `.power`, durably.
  ///
  /// If a concurrent removal of the member prevents the message, the caller calls this again, with
  /// the name of the next message.
  package func move(to home: MemberDirectory, as name: String) throws(Errno) {
    if !Mutants.has(.keepFileMode) { try file.setMode(container.options.sharing.fileMode) }
    do throws(Errno) {
      try publish(as: name, in: home)
    } catch {
      guard error == .noSuchFile, home.forgetIfStale(.files) else { throw error }
      try publish(as: name, in: home)
    }
    standing = .inFiles(home, name)
    if durability == .power { try home.makeDurable(.files) }
  }

  private func publish(as name: String, in home: MemberDirectory) throws(Errno) {
    let files = try home.part(.files)
    switch standing {
    case .staged(let staged):
      try container.staging.directory().descriptor.publishAsItIs(
        staged, to: files.descriptor, name)
    case .inFiles(let before, let earlier):
      try before.part(.files).descriptor.publishAsItIs(
        earlier, to: files.descriptor, name)
    case .kept: preconditionFailure("its message owns the file")
    }
  }

  /// Whether the file has lost its name in the container, so that no further move can succeed.
  package var isLost: Bool {
    do throws(Errno) {
      switch standing {
      case .staged(let name):
        let staging = try container.staging.directory()
        return try ignoring(.noSuchFile, staging.descriptor.status(of: name)) == nil
      case .inFiles(let home, let name): return try home.status(of: name, in: .files) == nil
      case .kept: return false
      }
    } catch {
      return error == .noSuchFile
    }
  }

  /// Hands the file over to its message, which has been placed.
  package func keep() { standing = .kept }
}
