internal import PropertyLists
internal import Syscalls

/// Something about a container that somebody should know.
package struct Finding: Hashable, Sendable {
  package enum Severity: String, Sendable {
    /// As it is meant to be.
    case fine
    /// Good to know.
    case note
    /// Something to be done.
    case problem
  }

  package let severity: Severity
  /// What it is about: a path within the container, or a part of the system.
  package let subject: String
  package let what: String
  /// What can be done about it.
  package let advice: String?
  /// Whether ``Container/repair()`` does it.
  package let isRepairable: Bool

  package init(
    _ severity: Severity, _ subject: String, _ what: String, advice: String? = nil,
    isRepairable: Bool = false
  ) {
    self.severity = severity
    self.subject = subject
    self.what = what
    self.advice = advice
    self.isRepairable = isRepairable
  }
}

/// A walk through a container that changes nothing.
///
/// It takes each lock for a moment to see whether somebody holds it.
struct Inspection {
  let container: Container
  private(set) var findings: [Finding] = []

  init(_ container: Container) { self.container = container }

  mutating func add(_ finding: Finding) { findings.append(finding) }

  /// One of the container's own directories; nil if it is missing: nothing is made here.
  func folder(_ folder: Container.Folder) throws(Errno) -> OpenDirectory? {
    try openIfDirectory(folder.rawValue, in: container.root)
  }

  mutating func run() throws(Errno) {
    try inspectRoot()
    try inspectFileSystem()
    inspectLimits()
    inspectProcesses()
    try inspectStaging()
    for folder in [Container.Folder.channels, .system] { try inspectSlots(in: folder) }
    for folder in [Container.Folder.members, .guests] { try inspectMembers(in: folder) }
    try inspectDeadGuests()
    try inspectAccesses()
    try inspectDamaged()
  }

  // MARK: The container itself

  private mutating func inspectRoot() throws(Errno) {
    let status = try container.root.status()
    let mode = String(status.mode, radix: 8)
    let epoch =
      (try? container.recordedEpoch()).map { "epoch \($0)" } ?? "of an epoch that cannot be read"
    add(
      Finding(
        .fine, "container",
        "format \(ContainerMarker.format), \(epoch), "
          + "owner \(status.owner), mode \(mode)"))
    if container.options.sharing == .owner, status.mode & 0o077 != 0 {
      add(
        Finding(
          .note, "container", "others may look into it (mode \(mode))",
          advice: "chmod 700 '\(container.path)'"))
    }
    let ours = Set(
      Container.Folder.allCases.map(\.rawValue)
        // The last is what programs with watches keep for each of them.
        + [ContainerOpening.markerName, "lost+found", "watches"])
    for name in try container.root.names().sorted() where !ours.contains(name) {
      addForeign(name)
    }
  }

  mutating func addForeign(_ path: String) {
    let name = path.split(separator: "/").last ?? ""
    if name.hasPrefix(".fuse_hidden") || name.hasPrefix(".nfs") {
      add(
        Finding(
          .note, path, "a removed file that somebody has open still",
          advice: "the file system removes it when it is closed"))
      return
    }
    add(
      Finding(
        .note, path, "a foreign file: nothing here made it, and it is left alone",
        advice: "move it elsewhere if it is not wanted"))
  }

  private mutating func inspectFileSystem() throws(Errno) {
    let status = try container.root.fileSystem()
    if status.isReadOnly {
      add(
        Finding(
          .problem, "file system", "it is mounted read-only: values can be read but not changed",
          advice: "mount it for writing"))
    }
    if FileSystemStatus.withoutNotices[status.type] != nil {
      add(
        Finding(
          .note, "file system",
          "\(status.name) does not tell of all changes, so watchers look every "
            + "\(Watcher.pollInterval); its locks may be unknown to who comes another way",
          advice: "reach it from one machine and through one mount only, or use a local file system"
        ))
    } else if status.type == FileSystemStatus.tmpfs {
      add(
        Finding(
          .note, "file system", "it lies in memory: a restart of the machine empties it",
          advice: "use a file system on a disk where values must outlive that"))
    } else {
      add(Finding(.fine, "file system", "local; changes are told by inotify"))
    }
    if status.freeBytes < 16 << 20 || status.freeFiles ?? .max < 1000 {
      let files = status.freeFiles.map { " and \($0) files" } ?? ""
      add(
        Finding(
          .problem, "file system", "\(status.freeBytes >> 20) MiB\(files) are left",
          advice: "make room"))
    }
  }

  /// What cannot be done without /proc.
  private mutating func inspectProcesses() {
    guard ProcessIdentity.current.namespace == 0 else { return }
    add(
      Finding(
        .problem, "/proc",
        "it is not there: who holds a lock, and whether that one is stopped, cannot be told, a "
          + "restart of the machine is not noticed, and watchers look every "
          + "\(Watcher.pollInterval)",
        advice: "mount it with 'mount -t proc proc /proc'"))
  }

  private mutating func inspectLimits() {
    // It is asked through /proc: where that is missing, this is what is told.
    guard ProcessIdentity.current.namespace != 0 else { return }
    do throws(Errno) {
      let inotify = try Inotify()
      _ = try inotify.watch(container.root, .movedTo)
      add(Finding(.fine, "inotify", "an instance and a watch can be had"))
    } catch {
      add(
        Finding(
          .problem, "inotify", "no watch can be had: \(error)",
          advice: "raise fs.inotify.max_user_instances or fs.inotify.max_user_watches"))
    }
  }

  // MARK: What lies about

  private mutating func inspectStaging() throws(Errno) {
    for (place, directory) in try container.staging.places() {
      try inspectStaging(directory, place)
    }
  }

  private mutating func inspectStaging(_ directory: OpenDirectory, _ place: String) throws(Errno) {
    for name in try directory.descriptor.names().sorted() {
      let path = "\(place)/\(name)"
      guard Staging.isOurs(name) else {
        // In a group's container each user has a folder there.
        if container.options.sharing == .owner || UInt32(name) == nil { addForeign(path) }
        continue
      }
      switch try Staging.isAbandoned(name, in: directory.descriptor) {
      case true?:
        add(
          Finding(
            .problem, path, "a process that has ended left it unfinished",
            advice: "the next program that opens the container removes it", isRepairable: true))
      case false?:
        add(Finding(.note, path, "being written"))
      case nil:
        break
      }
    }
  }

  private mutating func inspectDamaged() throws(Errno) {
    guard let damaged = try folder(.damaged) else { return }
    for name in try damaged.descriptor.names().sorted() where name.hasSuffix(".plist") {
      let reason = String(name.dropLast(".plist".count)) + ".reason"
      let bytes = try? damaged.descriptor.open(reason, [.readOnly, .nonBlocking]).readAll(size: 512)
      let words = bytes.map { String(decoding: $0.filter { $0 >= 0x20 }, as: UTF8.self) }
      add(
        Finding(
          .problem, "damaged/\(name)",
          "a value that could not be read: \(words ?? "no reason given")",
          advice: "look whether anything in it is missed, then delete it"))
    }
  }
}

extension FileSystemStatus {
  static let tmpfs: UInt32 = 0x0102_1994

  /// What people call it.
  var name: String {
    Self.withoutNotices[type] ?? Self.local[type] ?? "type 0x\(String(type, radix: 16))"
  }

  private static let local: [UInt32: String] = [
    tmpfs: "tmpfs", 0xEF53: "ext4", 0x5846_5342: "XFS", 0x9123_683E: "btrfs",
    0x794C_7630: "overlayfs",
  ]
}

extension Container {
  /// Looks through the whole container and changes nothing.
  package func inspect() throws(WormholeError) -> [Finding] {
    var inspection = Inspection(self)
    do throws(Errno) {
      try inspection.run()
    } catch {
      throw WormholeError(error, "inspect container", path)
    }
    return inspection.findings
  }

  /// Does what can be done without losing anything: sweeps what the dead left, and puts kept values
  /// in the place of damaged ones, which go to `damaged/`.
  ///
  /// - Parameter tell: is given what knows of the writers whose accesses were removed.
  /// - Returns: what it has repaired.
  package func repair(_ tell: (AccessRoom) -> Void = { _ in }) throws -> [Finding] {
    let findings = try inspect().filter(\.isRepairable)
    do throws(Errno) {
      let swept = try staging.sweep() + sweepGuests()
      count { $0.swept += swept }
    } catch {
      throw WormholeError(error, "sweep", path + "/staging")
    }
    let accesses = try sweepAccesses(tell)
    count { $0.swept += accesses }
    for folder in [Folder.channels, .system] {
      for name in try names(in: folder) {
        let slot = try slot(folder, name)
        if findings.contains(where: { $0.subject.hasPrefix(slot.path + "/") }) { try slot.tidy() }
      }
    }
    return findings
  }
}
