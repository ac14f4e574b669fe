internal import WormholeSyscalls

/// `staging/`: where files and directories are made before they get their final names.
///
/// The maker of an entry holds its flock until the entry is visible or abandoned, so an entry
/// without a lock belongs to a dead process, and is swept. A sweeper may be faster than the maker's
/// flock; the maker then finds the lock taken or the name gone, and makes another entry.
///
/// In a group's container each user has a private folder, `staging/<user>/`, that no other user can
/// enter: no other user can take, open or replace an unfinished entry. An entry gets its final mode
/// before it leaves the folder, so no user ever finds an entry with a wrong mode either.
///
/// Another tool may remove the folder while processes have it open; the next new file of such a
/// process fails, and the process makes the folder again.
final class Staging: Sendable {
  private struct Open {
    var shared: OpenDirectory
    /// The user's own folder: made at the first write, since some users can only read.
    var own: OpenDirectory?
    /// Opens the directory that has the name now; makes a missing one.
    var makeAnew: @Sendable () throws(Errno) -> Descriptor = { () throws(Errno) in
      throw .noSuchFile
    }
  }

  private let parts: Monitor<Open>
  private let sharing: Sharing
  private let environment: Environment

  init(_ directory: consuming Descriptor, _ sharing: Sharing, _ environment: Environment) {
    parts = Monitor(Open(shared: OpenDirectory(directory)))
    self.sharing = sharing
    self.environment = environment
  }

  /// Sets the closure that opens the directory with the name, and makes a missing one.
  func setMakeAnew(_ makeAnew: @escaping @Sendable () throws(Errno) -> Descriptor) {
    parts.withLock { $0.makeAnew = makeAnew }
  }

  private var shared: OpenDirectory { parts.withLock { $0.shared } }

  /// Returns the directory for this user's entries.
  func directory() throws(Errno) -> OpenDirectory {
    let (shared, own) = parts.withLock { ($0.shared, $0.own) }
    if sharing == .owner { return shared }
    if let own { return own }
    return try retrying { () throws(Errno) in try makeOwn() }
  }

  private func makeOwn() throws(Errno) -> OpenDirectory {
    let shared = shared
    let fresh = try openOwn(in: shared)
    return parts.withLock { open in
      guard open.shared === shared else { return fresh }
      if let other = open.own { return other }
      open.own = fresh
      return fresh
    }
  }

  /// Makes a removed folder again; false if none was removed.
  func mend() -> Bool {
    let (shared, own, makeAnew) = parts.withLock { ($0.shared, $0.own, $0.makeAnew) }
    guard shared.isStale else {
      guard let own, own.isStale else { return false }
      parts.withLock { open in
        if open.own === own { open.own = nil }
      }
      return true
    }
    // If the container is gone too, there is no parent directory.
    guard let fresh = try? OpenDirectory(makeAnew()) else { return false }
    parts.withLock { open in
      if open.shared === shared { (open.shared, open.own) = (fresh, nil) }
    }
    return true
  }

  private func openOwn(in shared: OpenDirectory) throws(Errno) -> OpenDirectory {
    if let own = try existingOwn(in: shared) { return own }
    try Sharing.tolerating { () throws(Errno) in
      try sharing.makeBeside(
        Self.ownName, in: shared.descriptor, mode: Self.ownMode, environment)
    }
    guard let own = try existingOwn(in: shared) else { throw .noSuchFile }
    return own
  }

  /// The user's own folder; nil if there is none.
  ///
  /// Only the user can have moved a directory of this mode there: moving a directory to another
  /// parent requires write permission on the moved directory.
  private func existingOwn(in shared: OpenDirectory) throws(Errno) -> OpenDirectory? {
    try ignoring(.noSuchFile) { () throws(Errno) in
      let own = try shared.descriptor.open(Self.ownName, .readOnlyDirectory)
      let status = try own.status()
      guard status.owner == Processes.effectiveUser else { throw .accessDenied }
      guard status.mode == Self.ownMode else { throw .notPermitted }
      return OpenDirectory(own)
    }
  }

  /// The name of the user's own folder.
  static var ownName: String { "\(Processes.effectiveUser)" }
  /// New entries get the container's group, as everywhere in the container.
  private static let ownMode: FileMode = 0o2700

  // MARK: Files

  /// Makes a file, flocked and with this content, and calls the body, which gives the file its
  /// visible name.
  ///
  /// A name that is left in staging afterwards is removed.
  ///
  /// - Parameters:
  ///   - isPrivate: whether only the owner may ever write to the file, in a group's container too.
  ///   - isGuarded: whether forked children must not inherit the file, because its lock has to
  ///     stay.
  ///   - isRenewed: as for ``publish(_:sync:as:in:renewing:)``; throws if the other directory is
  ///     gone, and every further attempt would fail.
  func withFile<Result: ~Copyable>(
    _ bytes: RawSpan, sync: Bool = false, isPrivate: Bool = false,
    isGuarded: Bool = false,
    renewing isRenewed: (Errno) throws(Errno) -> Bool = { _ throws(Errno) in false },
    _ publish: (_ name: String, _ file: borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try retrying(renewing: isRenewed) { () throws(Errno) in
      let name = freshName()
      let directory = try directory()
      let file = try directory.descriptor.open(
        name, .readWriteNew, mode: 0o600, isGuarded: isGuarded)
      // After a rename the name is gone; after a link both names exist.
      defer { try? directory.descriptor.unlink(name) }
      guard try file.tryLock(.exclusive) else { throw .noSuchFile }
      if sharing == .group, !isPrivate { try file.setMode(sharing.fileMode) }
      try file.writeFully(bytes)
      if sync { try file.sync() }
      return try publish(name, file)
    }
  }

  func withFile<Result: ~Copyable>(
    _ bytes: [UInt8], sync: Bool = false, isPrivate: Bool = false,
    renewing isRenewed: (Errno) throws(Errno) -> Bool = { _ throws(Errno) in false },
    _ publish: (_ name: String, _ file: borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try withFile(
      bytes.span.bytes, sync: sync, isPrivate: isPrivate, renewing: isRenewed, publish)
  }

  /// Makes a file as ``withFile(_:sync:_:)`` does, and moves it to a free name in another
  /// directory: EEXIST if the name is taken.
  ///
  /// Each attempt makes another file. The attempt is repeated if the file or the folder is gone
  /// here, or if the caller has renewed the other directory.
  ///
  /// - Parameters:
  ///   - target: returns the other directory, for each attempt.
  ///   - isRenewed: returns whether another attempt may succeed after a failure in the other
  ///     directory; sets the limit of such attempts.
  func publish(
    _ bytes: [UInt8], sync: Bool, as visible: UnsafePointer<CChar>,
    in target: () throws(Errno) -> OpenDirectory,
    renewing isRenewed: (Errno) -> Bool = { _ in false }
  ) throws(Errno) {
    var tries = 0
    while true {
      let name = freshName()
      let directory = try directory()
      var other: OpenDirectory?
      let failure = Errno.of { () throws(Errno) in
        let folder = try target()
        other = folder
        let file = try stage(bytes, name, in: directory.descriptor, sync: sync)
        try directory.descriptor.publish(name, to: folder.descriptor, visible)
        try? file.close()  // Not before: closing unlocks the file.
      }
      guard let failure else { return }
      if let other, wasSwept(name, in: directory.descriptor, failure), !other.isStale {
        tries += 1
        guard tries < 10 else { throw failure }
        if failure == .noSuchFile { _ = mend() }
      } else if !isRenewed(failure) {
        throw failure
      }
    }
  }

  /// Removes the file of a failed attempt; returns whether a sweeper took the file for a dead
  /// process's, or was checking it.
  private func wasSwept(
    _ name: String, in directory: borrowing Descriptor, _ failure: Errno
  ) -> Bool {
    let isSwept =
      failure == .wouldBlock
      || failure == .noSuchFile && (try? directory.status(of: name)) == nil
    try? directory.unlink(name)
    return isSwept
  }

  private func stage(
    _ bytes: [UInt8], _ name: String, in directory: borrowing Descriptor, sync: Bool
  ) throws(Errno) -> Descriptor {
    let file = try directory.open(name, .writeOnlyNew, mode: 0o600)
    guard try file.tryLock(.exclusive) else { throw .wouldBlock }
    if sharing == .group { try file.setMode(sharing.fileMode) }
    try file.writeFully(bytes)
    if sync { try file.sync() }
    return file
  }

  // MARK: Directories

  /// Opens a directory of the container; makes a missing one.
  func ensureDirectory(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    try sharing.openDirectory(name, in: parent) { () throws(Errno) in
      // For a single user the directory is complete at once.
      guard sharing == .group else { return try parent.makeDirectory(name, mode: 0o700) }
      try makeDirectory(name, in: parent)
    }
  }

  /// Makes a directory with its content; it becomes visible complete and with its mode, unless the
  /// name is taken.
  ///
  /// - Parameter isPrivate: whether only the owner may ever enter it, in a group's container too.
  func makeDirectory(
    _ name: String, in parent: borrowing Descriptor, isPrivate: Bool = false,
    _ fill: (borrowing Descriptor) throws(Errno) -> Void = { _ in }
  ) throws(Errno) {
    if Mutants.has(.modeAfterName) {
      try parent.makeDirectory(name, mode: 0o700)
      let made = try parent.open(name, .readOnlyDirectory)
      try made.setMode(sharing.directoryMode)
      return try fill(made)
    }
    try retrying { () throws(Errno) in
      let staged = freshName()
      let directory = try directory()
      try directory.descriptor.makeDirectory(staged, mode: 0o700)
      defer { try? removeTree(staged, in: directory.descriptor) }
      let made = try directory.descriptor.open(staged, .readOnlyDirectory)
      guard try made.tryLock(.exclusive) else { throw .noSuchFile }
      defer { try? made.unlock() }
      if sharing == .group, !isPrivate { try made.setMode(sharing.directoryMode) }
      try fill(made)
      try directory.descriptor.publishAsItIs(staged, to: parent, name)
    }
  }

  /// Makes a directory that stays in staging, private to the body; afterwards the directory is
  /// removed with its content.
  func withDirectory<Value>(
    _ body: (borrowing Descriptor) throws(Errno) -> Value
  ) throws(Errno) -> Value {
    var (name, directory) = ("", try directory())
    defer { try? removeTree(name, in: directory.descriptor) }
    let made = try retrying { () throws(Errno) in
      (name, directory) = (freshName(), try self.directory())
      try directory.descriptor.makeDirectory(name, mode: 0o700)
      let made = try directory.descriptor.open(name, .readOnlyDirectory)
      guard try made.tryLock(.exclusive) else { throw .noSuchFile }
      return made
    }
    defer { try? made.unlock() }
    return try body(made)
  }

  /// Removes a directory of the package that other processes may be using, with its content.
  ///
  /// The content is moved out first: some file systems (FUSE, NFS) keep a removed file that is
  /// still open, under another name in its directory, and the directory cannot be removed until the
  /// file is closed.
  func clear(away name: String, in parent: borrowing Descriptor) throws(Errno) {
    do throws(Errno) {
      let doomed = try parent.open(name, .readOnlyDirectory)
      try sharing.checkRemovable(doomed, in: parent)
      let staging = try directory()
      try doomed.forEachName { file throws(Errno) in
        // Directories are foreign here, and an entry that cannot be moved is removed in place.
        guard sharing == .owner || (try? doomed.status(of: file))?.kind != .directory else {
          return true
        }
        let hidden = nameForMoved()
        guard (try? doomed.rename(file, to: staging.descriptor, hidden)) != nil else { return true }
        do throws(Errno) {
          try staging.descriptor.unlink(hidden)
        } catch {
          try? removeTree(hidden, in: staging.descriptor, sharing)
        }
        return true
      }
      try empty(doomed, sharing)
    } catch {
      if error == .noSuchFile { return }
      throw error
    }
    try ignoring(.noSuchFile, parent.removeDirectory(name))
  }

  // MARK: Files of dead processes

  /// Removes the entries of dead processes, and nothing else; returns their number.
  ///
  /// In a group's container only entries in the user's own folder: any member may have moved a
  /// foreign file to a name beside it.
  func sweep() throws(Errno) -> Int {
    if sharing == .owner || Mutants.has(.removePrivate) {
      let swept = try sweep(shared.descriptor)
      guard sharing == .group, let own = try ownIfThere() else { return swept }
      return try swept + sweep(own.descriptor)
    }
    return try ownIfThere().map { own throws(Errno) in try sweep(own.descriptor) } ?? 0
  }

  /// The user's own folder; nil if missing.
  private func ownIfThere() throws(Errno) -> OpenDirectory? {
    guard sharing == .group else { return nil }
    let (shared, own) = parts.withLock { ($0.shared, $0.own) }
    if let own { return own }
    return try existingOwn(in: shared)
  }

  /// Throws if the user's own folder cannot be used.
  func checkOwn() throws(Errno) { _ = try ownIfThere() }

  /// The directories for this user's entries, with their paths below the container.
  func directories() -> [(path: String, directory: OpenDirectory)] {
    let own = ((try? ownIfThere()) ?? nil).map { (path: "staging/\(Self.ownName)", directory: $0) }
    return [(path: "staging", directory: shared)] + (own.map { [$0] } ?? [])
  }

  private func sweep(_ directory: borrowing Descriptor) throws(Errno) -> Int {
    var swept = 0
    for name in try directory.names() where isSwept(name) {
      // The entry was moved into place, or swept by another process, after the listing; or it is
      // a foreign link or socket, or a tree deeper than any of the package; or it belongs to a
      // user who has not yet opened it to the group.
      try ignoring([
        .noSuchFile, .tooManyLinks, .noDevice, .directoryNotEmpty, .accessDenied, .notPermitted,
      ]) { () throws(Errno) in
        let left = try directory.open(name, .readOnlyNonBlocking)
        guard try left.tryLock(.exclusive) else { return }
        defer { try? left.unlock() }
        switch try left.status().kind {
        case .directory:
          try removeTree(name, in: directory, Randomness.isName(name) ? .owner : sharing)
        case .regular: try directory.unlink(name)
        default: return
        }
        swept += 1
      }
    }
    return swept
  }

  /// Whether no process holds the entry any more; nil if it is gone, or is neither file nor
  /// directory.
  static func isAbandoned(
    _ name: String, in directory: borrowing Descriptor
  ) throws(Errno) -> Bool? {
    try ignoring([.noSuchFile, .tooManyLinks, .noDevice]) { () throws(Errno) -> Bool? in
      let left = try directory.open(name, .readOnlyNonBlocking)
      guard [.regular, .directory].contains(try left.status().kind) else { return nil }
      guard try left.tryLock(.exclusive) else { return false }
      try left.unlock()
      return true
    } ?? nil
  }

  private func retrying<Result: ~Copyable>(
    renewing isRenewed: (Errno) throws(Errno) -> Bool = { _ throws(Errno) in false },
    _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    var tries = 0
    while true {
      do throws(Errno) {
        return try body()
      } catch {
        if try isRenewed(error) { continue }
        tries += 1
        guard error == .noSuchFile, tries < 10 else { throw error }
        _ = mend()
      }
    }
  }

  private func freshName() -> String { environment.randomName() }

  /// Returns the name of an entry that is moved here out of a group's directory, to be removed.
  ///
  /// The entry may be foreign, and is removed under the rules for group directories; entries that
  /// were made here are removed whole.
  func nameForMoved() -> String {
    sharing == .owner ? freshName() : freshName() + Self.movedSuffix
  }
  private static let movedSuffix = ".moved"

  /// Whether an entry of this name, if no process holds it, belongs to a dead process.
  func isSwept(_ name: String) -> Bool {
    guard sharing == .group, name.ends(with: Self.movedSuffix) else {
      return Randomness.isName(name)
    }
    return Randomness.isName(String(name.dropLast(Self.movedSuffix.utf8.count)))
  }
}
