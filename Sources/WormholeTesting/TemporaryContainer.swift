internal import Synchronization
internal import Syscalls
public import Wormhole

/// A container of one test's own, in a fresh directory below `TMPDIR`, or `/tmp`.
///
/// The directory is removed, with all that is in it, when the test lets go of this object. Let go
/// of what was opened before, or it finds its files gone.
public final class TemporaryContainer: Sendable {
  /// The directory, in which there is room for a test's own files beside the container.
  public let directory: String

  /// The path of the container, as `WORMHOLE_CONTAINER` and `Wormhole(directory:)` take it.
  public var path: String { directory + "/container" }

  /// Makes the directory; the container comes with the first opening.
  public init() throws(WormholeError) {
    let parent = Processes.environment("TMPDIR") ?? "/tmp"
    let number = made.add(1, ordering: .relaxed).newValue
    // The clock keeps apart what a process of the same number may have left behind.
    let name = "wormhole-testing-\(Processes.current)-\(number)-\(Clocks.sinceBoot)"
    directory = parent + "/" + name
    do throws(Errno) {
      try Descriptor.makeDirectory(path: directory, mode: 0o700)
    } catch {
      throw WormholeError(error, "make directory", directory)
    }
  }

  deinit {
    // What cannot be removed is left for a person to look at.
    do throws(Errno) {
      try remove(Descriptor.open(path: directory, [.readOnly, .directory]))
      try Descriptor.removeDirectory(path: directory)
    } catch {}
  }

  /// Opens the container; each opening stands for itself, as if it were another process.
  public func open(
    _ options: Wormhole.Options = Wormhole.Options()
  ) throws(WormholeError) -> Wormhole {
    try Wormhole(directory: path, options: options)
  }
}

private let made = Atomic<Int>(0)

/// Removes all that is in a directory, whatever the names are made of.
private func remove(_ directory: borrowing Descriptor) throws(Errno) {
  var names: [[CChar]] = []
  try directory.forEachName { name throws(Errno) in
    var length = 0
    while name[length] != 0 { length += 1 }
    names.append(Array(UnsafeBufferPointer(start: name, count: length + 1)))
    return true
  }
  for name in names {
    if try directory.status(of: name).kind == .directory {
      try remove(directory.open(name, [.readOnly, .directory]))
      try directory.removeDirectory(name)
    } else {
      try directory.unlink(name)
    }
  }
}
