package import Syscalls

/// `staging/`: where files and directories are made before they appear under their names.
///
/// Whoever makes one holds its flock until it is visible or given up, so what nobody holds was left
/// by the dead, and is swept. A sweeper may be faster than the maker's flock; the maker then finds
/// the lock taken or the name gone, and makes another.
///
/// In a container of a group each user has a folder of his own in it, `staging/<user>/`, that
/// nobody else can enter: what is not finished is nobody else's to take, to open or to exchange.
/// What leaves it has its final mode, so nobody ever meets what it may not open either.
///
/// Somebody's hand may remove it under those who have it open; what they make next fails then, and
/// they make it anew.
final class Staging: Sendable {
  private struct Open {
    var shared: OpenDirectory
    /// The user's own folder: made for the first who writes, since others may only be able to read.
    var own: OpenDirectory?
    /// Opens the directory that has the name now, and makes it if there is none.
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

  /// Says how to open the directory that has the name, and to make it if there is none.
  func setMakeAnew(_ makeAnew: @escaping @Sendable () throws(Errno) -> Descriptor) {
    parts.withLock { $0.makeAnew = makeAnew }
  }

  private var shared: OpenDirectory { parts.withLock { $0.shared } }

  /// Where this user makes things.
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

  /// Makes anew what somebody has removed; false if that was nothing.
  func mend() -> Bool {
    let (shared, own, makeAnew) = parts.withLock { ($0.shared, $0.own, $0.makeAnew) }
    guard shared.isStale else {
      guard let own, own.isStale else { return false }
      parts.withLock { open in
        if open.own === own { open.own = nil }
      }
      return true
    }
    // Without its container there is nowhere to make it.
    guard let fresh = try? OpenDirectory(makeAnew()) else { return false }
    parts.withLock { open in
      if open.shared === shared { (open.shared, open.own) = (fresh, nil) }
    }
    return true
  }

  /// Only its owner makes it, and nobody else ever enters it, so it need not appear complete.
  private func openOwn(in shared: OpenDirectory) throws(Errno) -> OpenDirectory {
    let own = try sharing.openDirectory(Self.ownName, in: shared.descriptor) { () throws(Errno) in
      try shared.descriptor.makeDirectory(Self.ownName, mode: 0o700)
    } check: { directory, status throws(Errno) in
      guard status.owner == Processes.effectiveUser else { throw .accessDenied }
      if status.mode != Self.ownMode { try directory.setMode(Self.ownMode) }
    }
    return OpenDirectory(own)
  }

  /// What the user's own folder is called.
  static var ownName: String { "\(Processes.effectiveUser)" }
  /// What is made in it is the group's, as all else in the container.
  private static let ownMode: FileMode = 0o2700

  // MARK: Files

  /// Makes a file, flocked and with this content, and hands it to the body, which gives it its
  /// visible name.
  ///
  /// Whatever is left under the staged name afterwards is removed.
  ///
  /// - Parameters:
  ///   - isPrivate: whether nobody but its owner may ever write to it, in a group's container
  ///     either.
  ///   - isGuarded: whether it is kept from copies of this process, as its lock is to stay.
  func withFile<Result: ~Copyable>(
    _ bytes: UnsafeRawBufferPointer, sync: Bool = false, isPrivate: Bool = false,
    isGuarded: Bool = false,
    _ publish: (_ name: String, _ file: borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try retrying { () throws(Errno) in
      let name = freshName()
      let directory = try directory()
      let file = try directory.descriptor.open(
        name, [.readWrite, .create, .exclusive], mode: 0o600, isGuarded: isGuarded)
      // A rename has taken the name along; a link has not.
      defer { try? directory.descriptor.unlink(name) }
      guard try file.tryLock(.exclusive) else { throw .noSuchFile }
      if sharing == .group, !isPrivate { try file.setMode(sharing.fileMode) }
      try file.writeFully(bytes)
      if sync { try file.sync() }
      return try publish(name, file)
    }
  }

  /// Makes a file as ``withFile(_:sync:_:)`` does, and moves it to a name in another directory,
  /// which has to be free: EEXIST if it is not.
  func place(
    _ bytes: UnsafeRawBufferPointer, sync: Bool, in target: borrowing Descriptor,
    as visible: UnsafePointer<CChar>
  ) throws(Errno) {
    var tries = 0
    while true {
      let name = freshName()
      let directory = try directory()
      let failure = Errno.of { () throws(Errno) in
        let file = try stage(bytes, name, in: directory.descriptor, sync: sync)
        try directory.descriptor.publish(name, to: target, visible)
        try? file.close()  // Not before: until then it is flocked.
      }
      guard let failure else { return }
      // A sweeper may have taken it for what a dead process left, or be looking at it.
      let wasSwept =
        failure == .wouldBlock
        || failure == .noSuchFile && (try? directory.descriptor.status(of: name)) == nil
      try? directory.descriptor.unlink(name)
      tries += 1
      guard wasSwept, tries < 10, (try? target.status().links) != 0 else { throw failure }
      if failure == .noSuchFile { _ = mend() }
    }
  }

  private func stage(
    _ bytes: UnsafeRawBufferPointer, _ name: String, in directory: borrowing Descriptor, sync: Bool
  ) throws(Errno) -> Descriptor {
    let file = try directory.open(name, [.writeOnly, .create, .exclusive], mode: 0o600)
    guard try file.tryLock(.exclusive) else { throw .wouldBlock }
    if sharing == .group { try file.setMode(sharing.fileMode) }
    try file.writeFully(bytes)
    if sync { try file.sync() }
    return file
  }

  // MARK: Directories

  /// Opens a directory of the container, and makes it if it is missing.
  ///
  /// Whoever finds one that is his own and whose mode is not that of the container mends that.
  func ensureDirectory(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    try sharing.openDirectory(name, in: parent) { () throws(Errno) in
      // For the owner alone it is complete from the beginning.
      guard sharing == .group else { return try parent.makeDirectory(name, mode: 0o700) }
      try makeDirectory(name, in: parent)
    } check: { directory, status throws(Errno) in
      try sharing.mend(directory, status)
    }
  }

  /// Makes a directory with what belongs in it; it appears complete, with its mode, unless there is
  /// one of that name.
  func makeDirectory(
    _ name: String, in parent: borrowing Descriptor,
    _ fill: (borrowing Descriptor) throws(Errno) -> Void = { _ in }
  ) throws(Errno) {
    if Mutants.has(.modeAfterName) {
      try parent.makeDirectory(name, mode: 0o700)
      let made = try parent.open(name, [.readOnly, .directory])
      try made.setMode(sharing.directoryMode)
      return try fill(made)
    }
    try retrying { () throws(Errno) in
      let staged = freshName()
      let directory = try directory()
      try directory.descriptor.makeDirectory(staged, mode: 0o700)
      defer { try? removeTree(staged, in: directory.descriptor) }
      let made = try directory.descriptor.open(staged, [.readOnly, .directory])
      guard try made.tryLock(.exclusive) else { throw .noSuchFile }
      defer { try? made.unlock() }
      if sharing == .group { try made.setMode(sharing.directoryMode) }
      try fill(made)
      try directory.descriptor.publishAsItIs(staged, to: parent, name)
    }
  }

  /// Makes a directory that stays here and that others have no business in; once the body has
  /// returned it is removed, with all that lies in it.
  func withDirectory<Value>(
    _ body: (borrowing Descriptor) throws(Errno) -> Value
  ) throws(Errno) -> Value {
    var (name, directory) = ("", try directory())
    defer { try? removeTree(name, in: directory.descriptor) }
    let made = try retrying { () throws(Errno) in
      (name, directory) = (freshName(), try self.directory())
      try directory.descriptor.makeDirectory(name, mode: 0o700)
      let made = try directory.descriptor.open(name, [.readOnly, .directory])
      guard try made.tryLock(.exclusive) else { throw .noSuchFile }
      return made
    }
    defer { try? made.unlock() }
    return try body(made)
  }

  /// Removes a directory of ours that others may be using, with all that lies in it.
  ///
  /// What lies in it is moved out first: some file systems (FUSE, NFS) keep a file that is removed
  /// while somebody has it open, under another name in its directory, which then cannot be removed
  /// for as long as that lasts.
  func clear(away name: String, in parent: borrowing Descriptor) throws(Errno) {
    do throws(Errno) {
      let doomed = try parent.open(name, [.readOnly, .directory])
      let staging = try directory()
      try doomed.forEachName { file throws(Errno) in
        let hidden = freshName()
        // What cannot be moved is removed where it is.
        guard (try? doomed.rename(file, to: staging.descriptor, hidden)) != nil else { return true }
        do throws(Errno) {
          try staging.descriptor.unlink(hidden)
        } catch {
          try? removeTree(hidden, in: staging.descriptor)
        }
        return true
      }
      try empty(doomed)
    } catch {
      if error == .noSuchFile { return }
      throw error
    }
    do throws(Errno) {
      try parent.removeDirectory(name)
    } catch {
      guard error == .noSuchFile else { throw error }
    }
  }

  // MARK: What the dead left

  /// Removes what the dead left, and nothing else; answers how many.
  func sweep() throws(Errno) -> Int {
    let swept = try Self.sweep(shared.descriptor)
    guard let own = try ownIfThere() else { return swept }
    return try swept + Self.sweep(own.descriptor)
  }

  /// The user's own folder, if it has one.
  private func ownIfThere() throws(Errno) -> OpenDirectory? {
    guard sharing == .group else { return nil }
    let (shared, own) = parts.withLock { ($0.shared, $0.own) }
    if let own { return own }
    return try shared.directory(Self.ownName, sharing)
  }

  /// The directories in which this user may have something, with their paths from the root.
  func places() throws(Errno) -> [(path: String, directory: OpenDirectory)] {
    let own = try ownIfThere().map { (path: "staging/\(Self.ownName)", directory: $0) }
    return [(path: "staging", directory: shared)] + (own.map { [$0] } ?? [])
  }

  private static func sweep(_ directory: borrowing Descriptor) throws(Errno) -> Int {
    var swept = 0
    for name in try directory.names() where Self.isOurs(name) {
      do throws(Errno) {
        let left = try directory.open(name, [.readOnly, .nonBlocking])
        guard try left.tryLock(.exclusive) else { continue }
        defer { try? left.unlock() }
        switch try left.status().kind {
        case .directory: try removeTree(name, in: directory)
        case .regular: try directory.unlink(name)
        default: continue
        }
        swept += 1
      } catch {
        // Moved into place, or swept by another, between the listing and now; a foreign link or
        // socket, or a tree deeper than any of ours; or another user's, who has not yet opened it
        // to the group.
        let harmless: Set<Errno> = [
          .noSuchFile, .tooManyLinks, .noDevice, .directoryNotEmpty, .accessDenied,
        ]
        guard harmless.contains(error) else { throw error }
      }
    }
    return swept
  }

  /// Whether nobody holds it any more; nil if it is gone, or no file or directory.
  static func isAbandoned(
    _ name: String, in directory: borrowing Descriptor
  ) throws(Errno) -> Bool? {
    do throws(Errno) {
      let left = try directory.open(name, [.readOnly, .nonBlocking])
      guard [.regular, .directory].contains(try left.status().kind) else { return nil }
      guard try left.tryLock(.exclusive) else { return false }
      try left.unlock()
      return true
    } catch {
      guard [.noSuchFile, .tooManyLinks, .noDevice].contains(error) else { throw error }
      return nil
    }
  }

  private func retrying<Result: ~Copyable>(
    _ body: () throws(Errno) -> Result
  ) throws(Errno) -> Result {
    var tries = 0
    while true {
      do throws(Errno) {
        return try body()
      } catch {
        tries += 1
        guard error == .noSuchFile, tries < 10 else { throw error }
        _ = mend()
      }
    }
  }

  private func freshName() -> String { environment.randomName() }

  static func isOurs(_ name: String) -> Bool {
    name.utf8.count == 16
      && name.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
      }
  }
}

/// Removes a directory of ours with all that lies in it, to a depth that ours never reach.
package func removeTree(
  _ name: UnsafePointer<CChar>, in parent: borrowing Descriptor, depth: Int = 4
) throws(Errno) {
  do throws(Errno) {
    let directory = try parent.open(name, [.readOnly, .directory])
    try empty(directory, depth: depth)
  } catch {
    if error == .noSuchFile { return }
    throw error
  }
  try parent.removeDirectory(name)
}

/// Removes all that lies in a directory of ours.
///
/// Links are removed, not followed.
func empty(_ directory: borrowing Descriptor, depth: Int = 4) throws(Errno) {
  guard depth > 0 else { throw .directoryNotEmpty }
  // Others may still put something in, so list again until nothing is left; but not for ever, as
  // some file systems keep what is open under ever new names.
  var isEmpty = false
  var passes = 0
  while !isEmpty {
    isEmpty = true
    passes += 1
    guard passes <= 10 else { throw .directoryNotEmpty }
    var names: [[CChar]] = []
    try directory.forEachName { name throws(Errno) in
      names.append(Array(UnsafeBufferPointer(start: name, count: length(of: name) + 1)))
      return true
    }
    for name in names {
      isEmpty = false
      do throws(Errno) {
        try directory.unlink(name)
      } catch {
        switch error {
        case .noSuchFile: break
        case .isADirectory, .notPermitted: try removeTree(name, in: directory, depth: depth - 1)
        default: throw error
        }
      }
    }
  }
}

private func length(of name: UnsafePointer<CChar>) -> Int {
  var length = 0
  while name[length] != 0 { length += 1 }
  return length
}
