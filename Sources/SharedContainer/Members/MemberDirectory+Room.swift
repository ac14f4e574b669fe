internal import Syscalls

/// How much of the room for messages is taken, as all who send keep it together: the size of the
/// file `room` in `files/`, where nobody listens, in units.
///
/// Whoever sends appends as many bytes as it takes units, which needs no lock, holds nobody up who
/// is stopped or killed, and costs two calls for many messages. What leaves is not taken off: that
/// is counted anew when there seems to be no room, and before that the file is replaced by one that
/// seems full, and gets the size that is right then. Nothing depends on it but when that is done,
/// so it need not survive anything.
extension MemberDirectory {
  package static let roomName = "room"

  /// The open file.
  package final class Room: Sendable {
    private let file: Descriptor

    fileprivate init(_ file: consuming Descriptor) { self.file = file }

    /// Takes units; answers how many are taken then, or nil if that is kept elsewhere by now, or
    /// cannot be.
    package func take(_ units: Int) -> Int? {
      let bytes = [UInt8](repeating: 0, count: units)
      let failure: Errno? = bytes.withUnsafeBytes { bytes in
        Errno.of { () throws(Errno) in try file.writeFully(bytes) }
      }
      guard failure == nil, let status = try? file.status(), status.links == 1 else { return nil }
      return status.size
    }

    /// Says how many units are taken, once that is counted.
    ///
    /// If it is kept elsewhere by now, that stays as it is.
    package func note(taken: Int) {
      // Where this fails it goes on to seem full, and is counted anew.
      try? file.truncate(to: taken)
    }
  }

  /// Nil if nobody has counted yet, or it cannot be used.
  package func openRoom() -> Room? {
    let flags: OpenFlags = [.writeOnly, .append, .nonBlocking]
    guard let files = try? existing(.files),
      let file = try? files.descriptor.open(Self.roomName, flags),
      (try? file.status().kind) == .regular
    else { return nil }
    return Room(file)
  }

  /// Begins anew with so many units taken.
  package func makeRoom(taken: Int) -> Room? {
    let staging = container.staging
    do throws(Errno) {
      return try staging.withFile(UnsafeRawBufferPointer(start: nil, count: 0)) {
        staged, file throws(Errno) in
        try file.truncate(to: taken)
        let directory = try staging.directory()
        // By its own name, since another may have that of the room at once.
        let room = Room(try directory.descriptor.open(staged, [.writeOnly, .append]))
        try directory.descriptor.rename(staged, to: part(.files).descriptor, Self.roomName)
        return room
      }
    } catch {
      return nil
    }
  }
}
