public import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The directory of the groups of a test process, and of each ``TestProcess`` that it starts: a
/// separate directory, to keep tests away from the account's groups.
///
/// The first ``TemporaryContainer`` or ``TestProcess`` of a process sets the directory. A test that
/// opens a group earlier must call ``use()``.
public enum TestGroups {
  private static let prefix = "wormhole-testing-groups-"
  private static let made = Monitor<String?>(nil)
  /// Open and locked for the lifetime of the process.
  private static let kept = Monitor<OpenDirectory?>(nil)

  /// Moves the groups of this process to the directory from now on; open groups stay in place.
  ///
  /// The directories of test processes that have ended are removed.
  ///
  /// - Returns: the directory. If the process was given another directory, for example by
  ///   `AppGroups.root`, that directory stays in use.
  @discardableResult
  public static func use() throws(WormholeError) -> String {
    let root = try made.withLock { made throws(WormholeError) -> String in
      if let made { return made }
      // After a failure the next call tries again: the disk may have been full.
      let root = try make()
      made = root
      return root
    }
    if let given = ContainerLocation.givenRoot { return given }
    ContainerLocation.givenRoot = root
    return root
  }

  private static func make() throws(WormholeError) -> String {
    // A process that a test has started uses the groups of the test.
    if let given = Processes.environment("WORMHOLE_ROOT"),
      given.parts(between: "/").last?.begins(with: prefix) == true
    {
      return given
    }
    let parent = temporaryParent
    sweep(parent)
    let own = ProcessIdentity.current
    let path = "\(parent)/\(prefix)\(own.process)-\(own.started)"
    let directory = try makeLocked(path)
    kept.withLock { $0 = directory }
    return path
  }

  /// Makes a directory if it is missing, and locks it.
  ///
  /// The sweep of a process that cannot see this one may remove the directory before this process
  /// has locked the directory, which is made again then.
  ///
  /// - Returns: the open directory; nil if it cannot be locked.
  static func makeLocked(_ path: String) throws(WormholeError) -> OpenDirectory? {
    let end = Instant.now + .seconds(10)
    while true {
      // The process may have made it before it became another program by exec.
      _ = try naming(
        "create directory", path,
        ignoring(.fileExists, Descriptor.makeDirectory(path: path, mode: 0o700)))
      do throws(Errno) {
        let directory = try OpenDirectory(Descriptor.open(path: path, .readOnlyDirectory))
        if try directory.descriptor.tryLock(.shared), !directory.isStale { return directory }
      } catch {
        guard error == .noSuchFile else { return nil }
      }
      guard Instant.now < end else { return nil }
      Thread.pause(.milliseconds(1))
    }
  }

  /// Removes the directories of processes that have ended.
  ///
  /// A process that cannot be seen may run in another namespace, and then has its directory locked.
  ///
  /// A directory that cannot be removed remains for a person to inspect.
  private static func sweep(_ parent: String) {
    guard let folder = try? Descriptor.open(following: parent, .readOnlyDirectory),
      let names = try? folder.names()
    else { return }
    for name in names where name.begins(with: prefix) {
      let parts = name.dropFirst(prefix.count).split(separator: "-")
      guard parts.count == 2, let process = Int32(parts[0]), let started = UInt64(parts[1]),
        !(ProcessStatus(of: process)?.started(at: started) ?? false)
      else { continue }
      do throws(Errno) {
        let directory = try folder.open(name, .readOnlyDirectory)
        guard try directory.tryLock(.exclusive) else { continue }
        try removeContents(directory)
        try folder.removeDirectory(name)
      } catch {}
    }
  }
}
