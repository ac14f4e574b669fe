internal import Syscalls

/// A walk through a container that changes nothing.
///
/// It takes each lock for a moment to see whether somebody holds it.
struct Inspection {
  let container: Container
  private(set) var findings: [Finding] = []

  init(_ container: Container) { self.container = container }

  mutating func add(_ finding: Finding) { findings.append(finding) }

  /// Looks at something; where it cannot, that is a finding.
  mutating func look(at path: String, _ body: (inout Inspection) throws -> Void) {
    if let obstacle = Finding.obstacle(at: path, { try body(&self) }) { add(obstacle) }
  }

  /// Looks through one of the container's own directories, if it is there: nothing is made here.
  private mutating func look(
    through folder: Container.Folder,
    _ body: (inout Inspection, OpenDirectory) throws -> Void
  ) {
    look(at: folder.rawValue) { inspection in
      try body(&inspection, inspection.open(folder.rawValue, in: inspection.container.root))
    }
  }

  mutating func run() throws(Errno) {
    try inspectRoot()
    look(at: "file system") { try $0.inspectFileSystem() }
    inspectLimits()
    inspectProcesses()
    look(at: "staging") { try $0.inspectStaging() }
    for folder in [Container.Folder.channels, .system] {
      look(through: folder) { try $0.inspectSlots(in: $1, folder) }
    }
    for folder in [Container.Folder.members, .guests] {
      look(through: folder) { try $0.inspectMembers(in: $1, folder) }
    }
    look(through: .guests) { inspection, _ in try inspection.inspectDeadGuests() }
    look(at: "system/\(AccessRoom.slotName)") { try $0.inspectAccesses() }
    look(through: .notices) { try $0.inspectNotices(in: $1) }
    look(through: .damaged) { try $0.inspectDamaged(in: $1) }
  }

  func open(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> OpenDirectory {
    OpenDirectory(try parent.open(name, [.readOnly, .directory]))
  }

  /// Whether a name is that of a plain file; where it is something else, that is a finding.
  mutating func isFile(
    _ name: String, in directory: OpenDirectory, _ path: String, otherwise consequence: String
  ) -> Bool {
    var isFile = false
    look(at: path) { inspection in
      isFile = try directory.descriptor.status(of: name).kind == .regular
      guard !isFile else { return }
      inspection.add(
        Finding(
          .problem, path, "not a plain file",
          advice: "look who put it there; while it is there \(consequence)"))
    }
    return isFile
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
    let name = path.parts(between: "/").last ?? ""
    if name.begins(with: ".fuse_hidden") || name.begins(with: ".nfs") {
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

  private mutating func inspectNotices(in notices: OpenDirectory) throws(Errno) {
    for name in try notices.descriptor.names().sorted() {
      let path = "\(Container.Folder.notices.rawValue)/\(name)"
      guard EscapedName.unescape(name) != nil else {
        addForeign(path)
        continue
      }
      _ = isFile(name, in: notices, path, otherwise: "it cannot be posted")
    }
  }

  private mutating func inspectDamaged(in damaged: OpenDirectory) throws(Errno) {
    for name in try damaged.descriptor.names().sorted() where !name.ends(with: ".reason") {
      guard name.ends(with: ".plist") else {
        addForeign("damaged/\(name)")
        continue
      }
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
  ///
  /// What a program is just making or removing looks for a moment as if a dead one had left it. So
  /// such things are told only if a second look finds them still.
  ///
  /// - Parameter between: is called between the two, when some time has passed.
  package func inspect(between: () -> Void = {}) throws(WormholeError) -> [Finding] {
    let findings = try look()
    guard findings.contains(where: \.isRepairable) else { return findings }
    let _: Void? = Monitor(()).wait(until: .now + .milliseconds(100)) { _ in nil }
    between()
    let again = Set(try look())
    return findings.filter { !$0.isRepairable || again.contains($0) }
  }

  private func look() throws(WormholeError) -> [Finding] {
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
  /// - Returns: what it has repaired. What stood in the way of the rest goes to the log.
  package func repair(
    _ tell: (AccessRoom) -> Void = { _ in }
  ) throws(WormholeError) -> [Finding] {
    let findings = try inspect().filter(\.isRepairable)
    repair("staging") { try count(swept: staging.sweep()) }
    repair("guests") { try count(swept: sweepGuests()) }
    repair("system/\(AccessRoom.slotName)") { try count(swept: sweepAccesses(tell)) }
    for folder in [Folder.channels, .system] {
      for name in (try? names(in: folder)) ?? [] {
        let slot = try slot(folder, name)
        guard findings.contains(where: { $0.subject.begins(with: slot.path + "/") }) else {
          continue
        }
        repair(slot.path) { try slot.tidy() }
      }
    }
    let left = Set(try look())
    return findings.filter { !left.contains($0) }
  }

  private func count(swept: Int) { count { $0.swept += swept } }

  /// Goes on with the rest where something cannot be repaired.
  package func repair(_ path: String, _ body: () throws -> Void) {
    guard let obstacle = Finding.obstacle(at: path, to: "repaired", body) else { return }
    log(.error, "'\(path)': \(obstacle.what)")
  }
}
