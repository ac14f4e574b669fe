internal import Synchronization
public import Wormhole
internal import WormholeSyscalls

/// A container of one test's own, in a new directory below `TMPDIR`, or `/tmp`.
///
/// The directory and its content are removed when the test releases this object. Before the
/// removal, all activities started through its instances end, as after `SharedContainer.close()`.
/// Release all other objects of the container too, or they lose their files.
public final class TemporaryContainer: Sendable {
  /// The directory, which also has space for a test's own files beside the container.
  public let directory: String

  /// The path of the container, for `WORMHOLE_CONTAINER` and `SharedContainer(directory:)`.
  public var path: String { directory + "/container" }

  /// The activities of the opened instances.
  private let begun = Monitor<[ActiveSubscriptions]>([])

  /// Creates the directory; the first opening creates the container.
  public init() throws(WormholeError) {
    try TestGroups.use()
    let parent = temporaryParent
    let number = made.add(1, ordering: .relaxed).newValue
    // The clock distinguishes the directory from the remains of a process with the same process ID.
    let name = "wormhole-testing-\(Processes.current)-\(number)-\(Clocks.sinceBoot)"
    directory = parent + "/" + name
    try naming(
      "create directory", directory, Descriptor.makeDirectory(path: directory, mode: 0o700))
  }

  deinit {
    for begun in begun.withLock({ $0 }) { begun.close() }
    // A file that cannot be removed remains for a person to inspect.
    do throws(Errno) {
      try removeContents(Descriptor.open(path: directory, .readOnlyDirectory))
      try Descriptor.removeDirectory(path: directory)
    } catch {}
  }

  /// Opens the container; each instance is independent, as if it were in another process.
  public func open(
    _ options: Options = Options()
  ) throws(WormholeError) -> SharedContainer {
    keeping(try SharedContainer(directory: path, options: options))
  }

  /// Opens the container; each instance is independent, as if it were in another process.
  ///
  /// As the overload without `await`, off the task's thread.
  public func open(
    _ options: Options = Options()
  ) async throws(WormholeError) -> SharedContainer {
    keeping(try await SharedContainer(directory: path, options: options))
  }

  private func keeping(_ container: SharedContainer) -> SharedContainer {
    begun.withLock { $0.append(container.subscriptions) }
    return container
  }
}

private let made = Atomic<Int>(0)

/// The parent of temporary directories: `TMPDIR`, or `/tmp` if the variable is empty or not set.
var temporaryParent: String {
  Processes.environment("TMPDIR").flatMap { $0.isEmpty ? nil : $0 } ?? "/tmp"
}

/// Removes the content of a directory, whatever bytes the names contain.
func removeContents(_ directory: borrowing Descriptor) throws(Errno) {
  for name in try directory.names(most: .max) {
    if try directory.status(of: name).kind == .directory {
      try removeContents(directory.open(name, .readOnlyDirectory))
      try directory.removeDirectory(name)
    } else {
      try directory.unlink(name)
    }
  }
}
