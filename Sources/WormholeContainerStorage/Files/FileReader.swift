internal import WormholePropertyLists
package import WormholeSyscalls

/// The result of reading a property list.
package enum FoundFile: Sendable {
  case missing
  case sound([UInt8], FileStatus)
  /// The file is not a property list, or its checksum is wrong. The same inode was read twice.
  case damaged(String, FileStatus)
}

/// Reading as promise P1 requires: open, read, close; never a wait, never half a file.
///
/// The content of a visible file never changes. A bad file was therefore either replaced between
/// opening and reading its name (then the name leads to another inode now, which is read next), or
/// it is damaged. Errors of the system are thrown: they prove nothing about the file.
struct FileReader {
  var largest: Int
  let owner: UInt32?
  /// Forbidden write permissions: users with write permission could change the file during the
  /// read.
  var foreignWriters: FileMode = 0
  /// Whether a replaced name may be missing for a moment, as through FUSE.
  var isRelayed = false

  func read(_ name: UnsafePointer<CChar>, in directory: borrowing Descriptor)
    throws(ReadRefusal) -> FoundFile
  {
    var suspect: FileStatus?
    var looks = 0
    while true {
      guard let (bytes, status) = try readOnce(name, in: directory) else {
        guard try isListed(name, in: directory) else { return .missing }
        looks += 1
        guard looks <= 1000 else { throw .system(.noSuchFile) }
        Processes.yield()
        continue
      }
      guard let damage = damage(in: bytes) else { return .sound(bytes, status) }
      looks += 1
      // Only a writer of damaged files could make this loop run on.
      if looks > 100 || suspect?.isSameFile(as: status) == true {
        return .damaged(damage, status)
      }
      suspect = status
    }
  }

  /// Reads a file of at most a size; nil if the file may not be used.
  ///
  /// For files whose existence alone decides, and for optional files: only errors of the system are
  /// thrown.
  func readUsable(
    _ name: UnsafePointer<CChar>, in directory: borrowing Descriptor, atMost size: Int? = nil
  ) throws(Errno) -> FoundFile? {
    var reader = self
    reader.largest = size ?? largest
    do throws(ReadRefusal) {
      return try reader.read(name, in: directory)
    } catch {
      if case .system(let error) = error { throw error }
      return nil
    }
  }

  /// Whether a missing name is in the listing, which comes from the server of the file system.
  private func isListed(
    _ name: UnsafePointer<CChar>, in directory: borrowing Descriptor
  ) throws(ReadRefusal) -> Bool {
    guard isRelayed else { return false }
    var isListed = false
    do throws(Errno) {
      let wanted = String(cString: name)
      let listing = try directory.open(".", .readOnlyDirectory)
      try listing.forEachName(isFresh: true) { name throws(Errno) in
        isListed = String(cString: name) == wanted
        return !isListed
      }
    } catch {
      // A directory that has been removed has no names.
      guard error == .noSuchFile else { throw .system(error) }
    }
    return isListed
  }

  private func readOnce(
    _ name: UnsafePointer<CChar>, in directory: borrowing Descriptor
  ) throws(ReadRefusal) -> ([UInt8], FileStatus)? {
    do {
      let file = try open(name, in: directory)
      let status = try file.status()
      guard status.kind == .regular else { throw ReadRefusal.kind(status.kind) }
      if let owner, status.owner != owner { throw ReadRefusal.owner(status.owner) }
      guard status.mode & foreignWriters == 0 else { throw ReadRefusal.mode(status.mode) }
      guard status.size <= largest else { throw ReadRefusal.tooLarge(status.size) }
      return (try file.readAll(size: status.size), status)
    } catch let error as Errno {
      if error == .noSuchFile { return nil }
      if error == .tooManyLinks { throw .kind(.symbolicLink) }
      if error == .noDevice { throw .kind(.socket) }
      throw .system(error)
    } catch {
      throw error as! ReadRefusal  // The calls above throw only these two types.
    }
  }

  /// Opens a file for reading.
  ///
  /// Most systems record the first read after a change in the file's inode, and nearly every read
  /// here is such a read. On ext4 the record takes a sixth of the read, and the inode is written to
  /// disk again.
  private func open(
    _ name: UnsafePointer<CChar>, in directory: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    // A file in a group's container may belong to another user.
    guard owner != nil else { return try directory.open(name, .readOnlyNonBlocking) }
    do throws(Errno) {
      return try directory.open(name, .readOnlyKeepingTime)
    } catch {
      // Another user's file is refused by its status, as before.
      guard error == .notPermitted else { throw error }
      return try directory.open(name, .readOnlyNonBlocking)
    }
  }

  /// Returns the damage in a file's bytes; nil if there is none.
  private func damage(in bytes: [UInt8]) -> String? {
    if bytes.isEmpty { return "the file is empty" }
    if Mutants.has(.noChecksum) { return nil }
    switch BinaryPropertyList.seal(of: bytes) {
    case .checked: return nil
    case .broken: return "its checksum is wrong"
    case nil: return "the file is not a binary property list"
    case .believed:
      do {
        try BinaryPropertyList.validate(bytes)
        return nil
      } catch {
        return "\(error)"
      }
    }
  }
}

/// The reason why a file was not read at all.
enum ReadRefusal: Error {
  case system(Errno)
  case kind(FileStatus.Kind)
  case owner(UInt32)
  case mode(FileMode)
  case tooLarge(Int)
}

extension Descriptor {
  /// Reads all bytes of a file whose size is known and does not change.
  func readAll(size: Int) throws(Errno) -> [UInt8] {
    if size <= 1024 { return try readSmall(size: size) }
    return try bytes(at: 0, count: size)
  }

  /// Reads bytes at an offset; returns fewer at the end of the file.
  func bytes(at offset: Int, count: Int) throws(Errno) -> [UInt8] {
    var failure: Errno?
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, count in
      failure = Errno.of { () throws(Errno) in
        count = try self.readFully(into: UnsafeMutableRawBufferPointer(buffer), at: offset)
      }
    }
    if let failure { throw failure }
    return bytes
  }

  /// Uses the stack: filling an array during its initialization costs more than all other steps.
  private func readSmall(size: Int) throws(Errno) -> [UInt8] {
    try withUnsafeTemporaryAllocation(byteCount: size, alignment: 8) { buffer throws(Errno) in
      let count = try self.readFully(into: buffer)
      return [UInt8](UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }
}
