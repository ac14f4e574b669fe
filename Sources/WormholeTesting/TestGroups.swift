internal import SharedContainer
internal import Syscalls
public import Wormhole

/// Where the groups lie of a process that runs tests, and of those that it starts as
/// ``TestProcess``: in a directory of its own, so that no test touches the account's groups.
///
/// The first ``TemporaryContainer`` or ``TestProcess`` of a process sees to it. A test that opens a
/// group before asks for ``use()``.
public enum TestGroups {
  private static let prefix = "wormhole-testing-groups-"
  private static let made = Monitor<Result<String, WormholeError>?>(nil)
  /// Open, and locked, as long as the process lives.
  private static let kept = Monitor<OpenDirectory?>(nil)

  /// Has the groups of this process lie there from now on; what is open already stays where it is.
  ///
  /// What processes of tests have left that are no more is removed.
  ///
  /// - Returns: the directory. Another one that the process was given, as by `AppGroups.root`,
  /// stays.
  @discardableResult
  public static func use() throws(WormholeError) -> String {
    let result = made.withLock { made in
      if made == nil { made = Result { () throws(WormholeError) in try make() } }
      return made!
    }
    let root = try result.get()
    if let given = ContainerLocation.givenRoot { return given }
    ContainerLocation.givenRoot = root
    return root
  }

  private static func make() throws(WormholeError) -> String {
    // Of a process that a test has started, the groups are the test's.
    if let given = Processes.environment("WORMHOLE_ROOT"),
      given.parts(between: "/").last?.begins(with: prefix) == true
    {
      return given
    }
    let parent = Processes.environment("TMPDIR") ?? "/tmp"
    sweep(parent)
    let own = ProcessIdentity.current
    let path = "\(parent)/\(prefix)\(own.process)-\(own.started)"
    do throws(Errno) {
      try Descriptor.makeDirectory(path: path, mode: 0o700)
    } catch {
      guard error != .fileExists else { return path }
      throw WormholeError(error, "make directory", path)
    }
    if let directory = try? Descriptor.open(path: path, [.readOnly, .directory]),
      (try? directory.tryLock(.shared)) == true
    {
      let open = OpenDirectory(directory)
      kept.withLock { $0 = open }
    }
    return path
  }

  /// Removes those of processes that have ended.
  ///
  /// One that cannot be seen may live in another namespace, and has its directory locked.
  ///
  /// What cannot be removed is left for a person to look at.
  private static func sweep(_ parent: String) {
    guard let folder = try? Descriptor.open(path: parent, [.readOnly, .directory]),
      let names = try? folder.names()
    else { return }
    for name in names where name.begins(with: prefix) {
      let parts = name.dropFirst(prefix.count).split(separator: "-")
      guard parts.count == 2, let process = Int32(parts[0]), let started = UInt64(parts[1]),
        !(ProcessStatus(of: process)?.started(at: started) ?? false)
      else { continue }
      do throws(Errno) {
        let directory = try folder.open(name, [.readOnly, .directory])
        guard try directory.tryLock(.exclusive) else { continue }
        try removeContents(directory)
        try folder.removeDirectory(name)
      } catch {}
    }
  }
}
