internal import Synchronization
internal import Syscalls
public import Wormhole

/// A container of one test's own, in a fresh directory below `TMPDIR`, or `/tmp`.
///
/// The directory is removed, with all that is in it, when the test lets go of this object. What was
/// begun through its openings is ended before, as by `Wormhole.close()`; let go of the rest, or it
/// finds its files gone.
public final class TemporaryContainer: Sendable {
  /// The directory, in which there is room for a test's own files beside the container.
  public let directory: String

  /// The path of the container, as `WORMHOLE_CONTAINER` and `Wormhole(directory:)` take it.
  public var path: String { directory + "/container" }

  /// What goes on in those that were opened.
  private let begun = Monitor<[Begun]>([])

  /// Makes the directory; the container comes with the first opening.
  public init() throws(WormholeError) {
    try TestGroups.use()
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
    for begun in begun.withLock({ $0 }) { begun.close() }
    // What cannot be removed is left for a person to look at.
    do throws(Errno) {
      try removeContents(Descriptor.open(path: directory, [.readOnly, .directory]))
      try Descriptor.removeDirectory(path: directory)
    } catch {}
  }

  /// Opens the container; each opening stands for itself, as if it were another process.
  public func open(
    _ options: Wormhole.Options = Wormhole.Options()
  ) throws(WormholeError) -> Wormhole {
    keeping(try Wormhole(directory: path, options: options))
  }

  /// Opens the container; each opening stands for itself, as if it were another process.
  ///
  /// As the one without `await`, off the task's thread.
  public func open(
    _ options: Wormhole.Options = Wormhole.Options()
  ) async throws(WormholeError) -> Wormhole {
    keeping(try await Wormhole(directory: path, options: options))
  }

  private func keeping(_ hole: Wormhole) -> Wormhole {
    begun.withLock { $0.append(hole.begun) }
    return hole
  }
}

private let made = Atomic<Int>(0)

/// Removes all that is in a directory, whatever the names are made of.
func removeContents(_ directory: borrowing Descriptor) throws(Errno) {
  var names: [[CChar]] = []
  try directory.forEachName { name throws(Errno) in
    var length = 0
    while name[length] != 0 { length += 1 }
    names.append(Array(UnsafeBufferPointer(start: name, count: length + 1)))
    return true
  }
  for name in names {
    if try directory.status(of: name).kind == .directory {
      try removeContents(directory.open(name, [.readOnly, .directory]))
      try directory.removeDirectory(name)
    } else {
      try directory.unlink(name)
    }
  }
}
