internal import WormholeSyscalls

/// The used space for messages, as counted by all senders together: the size of the file `room` in
/// `files/`, where no process watches, in units.
///
/// A sender appends as many bytes as it uses units. This needs no lock, delays no sender that is
/// suspended or killed, and costs two calls for many messages. Settled messages are not subtracted:
/// the units are counted again when there seems to be no space. Before the count, a file of full
/// size replaces the old one; after the count, the new file gets the right size. The file only
/// decides the time of a count, so its loss in a crash is harmless.
extension MemberDirectory {
  package static let roomName = "room"

  /// The open file.
  package final class Room: Sendable {
    private let file: Descriptor

    fileprivate init(_ file: consuming Descriptor) { self.file = file }

    /// Adds units; returns the number of used units, or nil if the file was replaced or cannot be
    /// written.
    package func take(_ units: Int) -> Int? {
      let bytes = [UInt8](repeating: 0, count: units)
      guard (try? file.writeFully(bytes)) != nil, let status = try? file.status(),
        status.links == 1
      else { return nil }
      return status.size
    }

    /// Sets the number of used units after a count.
    ///
    /// If the file was replaced in the meantime, the new file stays as it is.
    package func note(taken: Int) {
      // If this fails, the file still seems full, and the next sender counts again.
      try? file.truncate(to: taken)
    }
  }

  /// Nil if no sender has counted yet, or the file cannot be used.
  package func openRoom() -> Room? {
    let flags: OpenFlags = [.writeOnly, .append, .nonBlocking]
    guard let files = try? existing(.files),
      let file = try? files.descriptor.open(Self.roomName, flags),
      (try? file.status().kind) == .regular
    else { return nil }
    return Room(file)
  }

  /// Starts a new file with this number of used units.
  package func makeRoom(taken: Int) -> Room? {
    let staging = container.staging
    do throws(Errno) {
      return try staging.withFile([]) {
        staged, file throws(Errno) in
        try file.truncate(to: taken)
        let directory = try staging.directory()
        // Opened by its own name, since another sender may replace the room file at once.
        let room = Room(try directory.descriptor.open(staged, [.writeOnly, .append]))
        try directory.descriptor.rename(staged, to: part(.files).descriptor, Self.roomName)
        return room
      }
    } catch {
      return nil
    }
  }
}
