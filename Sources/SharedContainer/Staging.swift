package import Syscalls

/// `staging/`: where files and directories are made before they appear under their names.
///
/// Whoever makes one holds its flock until it is visible or given up, so what nobody holds was left
/// by the dead, and is swept. A sweeper may be faster than the maker's flock; the maker then finds
/// the lock taken or the name gone, and makes another.
final class Staging: Sendable {
  let directory: Descriptor
  private let sharing: Sharing
  private let environment: Environment

  init(_ directory: consuming Descriptor, _ sharing: Sharing, _ environment: Environment) {
    self.directory = directory
    self.sharing = sharing
    self.environment = environment
  }

  /// Makes a file, flocked and with this content, and hands it to the body, which gives it its
  /// visible name.
  ///
  /// Whatever is left under the staged name afterwards is removed.
  ///
  /// - Parameter isPrivate: whether nobody but its owner may ever write to it, in a group's
  ///   container either.
  func withFile<Result: ~Copyable>(
    _ bytes: UnsafeRawBufferPointer, sync: Bool = false, isPrivate: Bool = false,
    _ publish: (_ name: String, _ file: borrowing Descriptor) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try retrying { () throws(Errno) in
      let name = freshName()
      let file = try directory.open(name, [.readWrite, .create, .exclusive], mode: 0o600)
      defer { try? directory.unlink(name) }  // A rename has taken the name along; a link has not.
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
      let failure = Errno.of { () throws(Errno) in
        let file = try stage(bytes, name, sync: sync)
        try directory.publish(name, to: target, visible)
        try? file.close()  // Not before: until then it is flocked.
      }
      guard let failure else { return }
      // A sweeper may have taken it for what a dead process left.
      let wasSwept = failure == .noSuchFile && (try? directory.status(of: name)) == nil
      try? directory.unlink(name)
      tries += 1
      guard wasSwept, tries < 10, (try? target.status().links) != 0 else { throw failure }
    }
  }

  private func stage(
    _ bytes: UnsafeRawBufferPointer, _ name: String, sync: Bool
  ) throws(Errno) -> Descriptor {
    let file = try directory.open(name, [.writeOnly, .create, .exclusive], mode: 0o600)
    guard try file.tryLock(.exclusive) else { throw .noSuchFile }
    if sharing == .group { try file.setMode(sharing.fileMode) }
    try file.writeFully(bytes)
    if sync { try file.sync() }
    return file
  }

  /// Makes a directory, flocked, lets `fill` put in what belongs there, and `publish` move it.
  func withDirectory<Result>(
    _ fill: (borrowing Descriptor) throws(Errno) -> Void,
    _ publish: (_ name: String) throws(Errno) -> Result
  ) throws(Errno) -> Result {
    try retrying { () throws(Errno) in
      let name = freshName()
      try directory.makeDirectory(name, mode: 0o700)
      defer { try? removeTree(name, in: directory) }
      let made = try directory.open(name, [.readOnly, .directory])
      guard try made.tryLock(.exclusive) else { throw .noSuchFile }
      defer { try? made.unlock() }
      if sharing == .group { try made.setMode(sharing.directoryMode) }
      try fill(made)
      return try publish(name)
    }
  }

  /// Removes what the dead left, and nothing else; answers how many.
  func sweep() throws(Errno) -> Int {
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
        // socket; or another user's, who has not yet opened it to the group.
        let harmless: Set<Errno> = [.noSuchFile, .tooManyLinks, .noDevice, .accessDenied]
        guard harmless.contains(error) else { throw error }
      }
    }
    return swept
  }

  /// Whether nobody holds it any more; nil if it is gone, or no file or directory.
  func isAbandoned(_ name: String) throws(Errno) -> Bool? {
    do throws(Errno) {
      let left = try directory.open(name, [.readOnly, .nonBlocking])
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
  // Removing while listing may hide names, so list again until nothing is left.
  var isEmpty = false
  var passes = 0
  while !isEmpty {
    isEmpty = true
    passes += 1
    guard passes <= 1000 else { throw .directoryNotEmpty }
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
