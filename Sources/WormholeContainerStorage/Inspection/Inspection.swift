internal import WormholeSyscalls

/// An inspection of a container that changes nothing.
///
/// An inspection tries to take each lock for a moment, to find its holder.
struct Inspection {
  let container: Container
  private(set) var findings: [Diagnosis] = []
  /// When to stop checking values; nil for never.
  let deadline: Instant?
  /// The paths of the slots to check; nil for all.
  let slots: Set<Substring>?
  /// The number of values that were not checked, because the deadline had passed.
  private(set) var unchecked = 0
  /// Whether the previous value of the slot with this path has expired.
  let hasExpired: ExpiryCheck

  typealias ExpiryCheck = (_ path: String, _ previous: [UInt8]) -> Bool

  init(
    _ container: Container, until deadline: Instant? = nil, slots: Set<Substring>? = nil,
    expiry hasExpired: @escaping ExpiryCheck
  ) {
    self.container = container
    self.deadline = deadline
    self.slots = slots
    self.hasExpired = hasExpired
  }

  /// Whether there is time to check one more value; counts the value otherwise.
  mutating func hasTime() -> Bool {
    guard let deadline, Instant.now >= deadline else { return true }
    unchecked += 1
    return false
  }

  mutating func add(
    _ severity: Diagnosis.Severity, _ subject: String, _ what: String, advice: String? = nil,
    isRepairable: Bool = false
  ) {
    findings.append(
      Diagnosis(severity, subject, what, advice: advice, isRepairable: isRepairable))
  }

  /// Tells who holds a file; a suspended holder is a problem.
  mutating func add(_ holder: LockHolder?, of path: String, _ words: String = "held by") {
    let who = holder.map { "\($0)" } ?? "an unknown process"
    add(
      holder?.state == .stopped ? .problem : .note, path, "\(words) \(who)",
      advice: holder?.advice)
  }

  /// Runs a step of the inspection; a failure becomes a finding.
  mutating func look(at path: String, _ body: (inout Inspection) throws -> Void) {
    if let obstacle = container.obstacle(at: path, { try body(&self) }) {
      findings.append(obstacle)
    }
  }

  /// Inspects an existing directory of the container: no directory is made here.
  private mutating func look(
    through folder: Container.Folder,
    _ body: (inout Inspection, OpenDirectory) throws -> Void
  ) {
    look(at: folder.rawValue) { inspection in
      try body(
        &inspection, inspection.open(folder.rawValue, in: inspection.container.root.descriptor))
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
    if (try? container.root.descriptor.status(of: Container.Folder.queues.rawValue)) != nil {
      look(through: .queues) { try $0.inspectMembers(in: $1, .queues) }
    }
    look(through: .guests) { inspection, _ in try inspection.inspectDeadGuests() }
    look(at: "system/\(AccessDirectory.slotName)") { try $0.inspectAccesses() }
    look(through: .notices) { try $0.inspectNotices(in: $1) }
    look(through: .damaged) { try $0.inspectDamaged(in: $1) }
  }

  func open(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> OpenDirectory {
    OpenDirectory(try container.options.sharing.openExisting(name, in: parent))
  }

  /// Whether a name leads to a plain file; anything else becomes a finding.
  mutating func isFile(
    _ name: String, in directory: OpenDirectory, _ path: String, otherwise consequence: String
  ) -> Bool {
    var isFile = false
    look(at: path) { inspection in
      isFile = try directory.descriptor.status(of: name).kind == .regular
      guard !isFile else { return }
      inspection.add(
        .problem, path, "not a plain file",
        advice: "move the file away, and check its origin; until the move \(consequence)")
    }
    return isFile
  }

  // MARK: The container itself

  private mutating func inspectRoot() throws(Errno) {
    let status = try container.root.descriptor.status()
    let mode = String(status.mode, radix: 8)
    let epoch =
      (try? container.recordedEpoch()).map { "epoch \($0)" } ?? "unreadable epoch"
    add(
      .fine, "container",
      "format \(ContainerMarker.format), \(epoch), "
        + "owner \(status.owner), mode \(mode)")
    if container.options.sharing == .owner, status.mode & 0o077 != 0 {
      add(
        .note, "container", "readable by more users than its owner (mode \(mode))",
        advice: "chmod 700 '\(container.path)'")
    }
    let ours = Set(
      Container.Folder.allCases.map(\.rawValue)
        // `watches` contains the directories of paired watches.
        + [ContainerMarker.fileName, "lost+found", "watches", Container.bridgeName])
    for name in try container.root.descriptor.names().sorted() where !ours.contains(name) {
      addForeign(name)
    }
    look(at: Container.bridgeName) { try $0.inspectBridge() }
  }

  /// Reports the state of the program that carries messages between machines, if others can read or
  /// change it.
  private mutating func inspectBridge() throws(Errno) {
    guard
      let status = try ignoring(
        .noSuchFile, container.root.descriptor.status(of: Container.bridgeName))
    else { return }
    guard status.kind == .directory else {
      return add(
        .problem, Container.bridgeName, "not a directory",
        advice: "move it away, and check its origin; no bridge can start before")
    }
    let root = try container.root.descriptor.status()
    if container.options.sharing == .owner, status.owner != root.owner {
      add(
        .problem, Container.bridgeName,
        "owned by user \(status.owner), and the container by \(root.owner)",
        advice: "find the program that made the directory; no bridge of the owner uses it")
    }
    if status.mode & 0o077 != 0 {
      add(
        .problem, Container.bridgeName,
        "open to more users than its owner (mode \(String(status.mode & 0o777, radix: 8)))",
        advice: "chmod 700 '\(container.path)/\(Container.bridgeName)'")
    }
    // Another user cannot look into it.
    guard status.owner == Processes.effectiveUser else { return }
    let directory = OpenDirectory(
      try container.root.descriptor.open(Container.bridgeName, .readOnlyDirectory))
    if try !container.isBridge(directory) {
      add(
        .problem, Container.bridgeName, "not made by a bridge of this container",
        advice: "move it away, and check its origin; no bridge can start before")
    }
  }

  mutating func addForeign(_ path: String) {
    let name = path.parts(between: "/").last ?? ""
    if name.begins(with: ".fuse_hidden") || name.begins(with: ".nfs") {
      add(
        .note, path, "a removed file that a process still has open",
        advice: "the file system removes the file after the last close")
      return
    }
    if name.begins(with: Sharing.hiddenPrefix),
      Randomness.isName(String(name.dropFirst(Sharing.hiddenPrefix.utf8.count)))
    {
      add(
        .note, path, "probably left by a process that was killed while creating a directory",
        advice: "run 'rmdir' if the directory is empty")
      return
    }
    add(
      .note, path, "a foreign file: ignored, because the library does not use the name",
      advice: "move the file elsewhere if no program needs the file")
  }

  private mutating func inspectFileSystem() throws(Errno) {
    let status = try container.root.descriptor.fileSystem()
    if status.isReadOnly {
      add(
        .problem, "file system", "mounted read-only: values can be read but not changed",
        advice: "mount the file system for writing")
    }
    if FileSystemStatus.nameWithoutNotices(status.type) != nil {
      add(
        .note, "file system",
        "\(status.name) does not report all changes, and watchers poll every "
          + "\(Watcher.pollInterval); its locks may not exclude processes on another mount",
        advice: "use a single host and a single mount for all programs, or a local file system")
    } else if status.type == FileSystemStatus.tmpfs {
      add(
        .note, "file system", "stored in memory: a reboot removes all values",
        advice: "use a file system on a disk for values that must survive a reboot")
    } else {
      add(.fine, "file system", "local; inotify reports changes")
    }
    if status.freeBytes < 16 << 20 || status.freeFiles ?? .max < 1000 {
      let files = status.freeFiles.map { " and \($0) files" } ?? ""
      add(
        .problem, "file system", "\(status.freeBytes >> 20) MiB\(files) are left",
        advice: "free space on the file system")
    }
  }

  /// Reports the limitations without /proc.
  private mutating func inspectProcesses() {
    guard ProcessIdentity.current.namespace == 0 else { return }
    add(
      .problem, "/proc",
      "not mounted: the holder of a lock and its suspension cannot be determined, a reboot is "
        + "not detected, and watchers poll every \(Watcher.pollInterval)",
      advice: "run 'mount -t proc proc /proc'")
  }

  private mutating func inspectLimits() {
    // Inotify is used through /proc: without /proc, its absence has been reported already.
    guard ProcessIdentity.current.namespace != 0 else { return }
    do throws(Errno) {
      let inotify = try Inotify()
      _ = try inotify.watch(container.root.descriptor, .movedTo)
      add(.fine, "inotify", "an instance and a watch are available")
    } catch {
      add(
        .problem, "inotify", "no watch is available: \(error)",
        advice: "raise fs.inotify.max_user_instances or fs.inotify.max_user_watches")
    }
  }

  // MARK: Remaining files

  private mutating func inspectStaging() throws(Errno) {
    for (place, directory) in container.staging.directories() {
      try inspectStaging(directory, place)
    }
    // Other users have their own folders in `staging/`.
    guard container.options.sharing == .group else { return }
    look(at: "staging/\(Staging.ownName)") { try $0.container.staging.checkOwn() }
  }

  private mutating func inspectStaging(_ directory: OpenDirectory, _ place: String) throws(Errno) {
    for name in try directory.descriptor.names().sorted() {
      let path = "\(place)/\(name)"
      guard container.staging.isSwept(name) else {
        // In a group's container each user has a folder there.
        if container.options.sharing == .owner || UInt32(name) == nil { addForeign(path) }
        continue
      }
      guard container.options.sharing == .owner || place != "staging" else {
        addForeign(path)
        continue
      }
      switch try Staging.isAbandoned(name, in: directory.descriptor) {
      case true?:
        add(
          .problem, path, "left unfinished by an ended process",
          advice: "the next program to open the container removes the file", isRepairable: true)
      case false?:
        add(.note, path, "being written")
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
      _ = isFile(name, in: notices, path, otherwise: "the notice cannot be posted")
    }
  }

  private mutating func inspectDamaged(in damaged: OpenDirectory) throws(Errno) {
    for name in try damaged.descriptor.names().sorted() where !name.ends(with: ".reason") {
      guard name.ends(with: ".plist") else {
        addForeign("damaged/\(name)")
        continue
      }
      let reason = String(name.dropLast(".plist".count)) + ".reason"
      let bytes = try? damaged.descriptor.open(reason, .readOnlyNonBlocking).readAll(size: 512)
      let words = bytes.map { String(decoding: $0.filter { $0 >= 0x20 }, as: UTF8.self) }
      add(
        .problem, "damaged/\(name)",
        "a value that could not be read: \(words ?? "no reason given")",
        advice: "check whether the content is still needed, then delete the file")
    }
  }
}

extension Diagnosis {
  /// The path of the slot that has the subject; nil for a subject that is not below a directory.
  fileprivate var slot: Substring? {
    let parts = subject.split(separator: "/", maxSplits: 2)
    return parts.count == 3 ? subject[..<parts[1].endIndex] : nil
  }
}

extension FileSystemStatus {
  static let tmpfs: UInt32 = 0x0102_1994

  /// The usual name of the file system.
  var name: String {
    Self.nameWithoutNotices(type) ?? Self.local[type] ?? "type 0x\(String(type, radix: 16))"
  }

  private static let local: [UInt32: String] = [
    tmpfs: "tmpfs", 0xEF53: "ext4", 0x5846_5342: "XFS", 0x9123_683E: "btrfs",
    0x794C_7630: "overlayfs",
  ]
}

extension Container {
  /// Inspects the whole container and changes nothing.
  ///
  /// A file that a program is just making or removing looks for a moment like a dead process's
  /// file. Repairable findings are therefore reported only after a second, confirming inspection.
  ///
  /// - Parameters:
  ///   - between: called between the two inspections, after a short wait.
  ///   - hasExpired: whether readers find the previous value of a slot expired: they refuse it.
  package func inspect(
    between: () -> Void = {},
    expiry hasExpired: @escaping (_ path: String, _ previous: [UInt8]) -> Bool = { _, _ in false }
  ) throws(WormholeError) -> [Diagnosis] {
    let findings = try look(hasExpired)
    guard findings.contains(where: \.isRepairable) else { return findings }
    Thread.pause(.milliseconds(100))
    between()
    let again = Set(try look(hasExpired))
    return findings.filter { !$0.isRepairable || again.contains($0) }
  }

  /// Inspects the container for a limited time, and changes nothing.
  ///
  /// - Parameters:
  ///   - time: the time after which no further value is checked; a value with a repairable finding
  ///     is checked again nevertheless.
  ///   - hasExpired: whether readers find the previous value of a slot expired: they refuse it.
  /// - Returns: the findings, and the number of values that were not checked.
  package func inspect(
    within time: Duration,
    expiry hasExpired: @escaping (_ path: String, _ previous: [UInt8]) -> Bool = { _, _ in false }
  ) throws(WormholeError) -> (findings: [Diagnosis], unchecked: Int) {
    let deadline = Instant.now + time
    let (findings, unchecked) = try look(until: deadline, hasExpired)
    guard findings.contains(where: \.isRepairable) else { return (findings, unchecked) }
    Thread.pause(.milliseconds(50))
    // Only the slots with a finding are checked again, and all of them: with a deadline, a finding
    // that was not confirmed in time would be left out. This takes no longer than the first time.
    let slots = Set(findings.filter(\.isRepairable).compactMap(\.slot))
    let again = Set(try look(until: nil, slots: slots, hasExpired).findings)
    return (findings.filter { !$0.isRepairable || again.contains($0) }, unchecked)
  }

  private func look(
    _ hasExpired: @escaping Inspection.ExpiryCheck
  ) throws(WormholeError) -> [Diagnosis] {
    try look(until: nil, hasExpired).findings
  }

  private func look(
    until deadline: Instant?, slots: Set<Substring>? = nil,
    _ hasExpired: @escaping Inspection.ExpiryCheck
  ) throws(WormholeError) -> (findings: [Diagnosis], unchecked: Int) {
    var inspection = Inspection(self, until: deadline, slots: slots, expiry: hasExpired)
    try naming("inspect container", path, inspection.run())
    return (inspection.findings, inspection.unchecked)
  }

  /// Repairs without losing data: sweeps the files of dead processes, and replaces damaged values
  /// by their previous values; the damaged ones move to `damaged/`.
  ///
  /// - Parameters:
  ///   - tell: receives the access directory, which has recorded the removed writers.
  ///   - renew: returns the file that replaces a slot's damaged value, made from the file of the
  ///     previous value; throws if the previous value cannot stand in for the damaged one.
  ///   - hasExpired: whether readers find the previous value of a slot expired: they refuse it.
  /// - Returns: the repaired findings. Obstacles to other repairs are logged.
  package func repair(
    _ tell: (AccessDirectory) -> Void = { _ in },
    renewing renew: (Slot, [UInt8]) throws -> [UInt8] = { $1 },
    expiry hasExpired: @escaping (_ path: String, _ previous: [UInt8]) -> Bool = { _, _ in false }
  ) throws(WormholeError) -> [Diagnosis] {
    let findings = try inspect(expiry: hasExpired).filter(\.isRepairable)
    repair("staging") { try count(swept: staging.sweep()) }
    repair("guests") { try count(swept: sweepGuests()) }
    repair("system/\(AccessDirectory.slotName)") { try count(swept: sweepAccesses(tell)) }
    for folder in [Folder.channels, .system] {
      for name in (try? names(in: folder)) ?? [] {
        let slot = try slot(folder, name)
        guard findings.contains(where: { $0.subject.begins(with: slot.path + "/") }) else {
          continue
        }
        repair(slot.path) {
          // The previous record would let versions repeat.
          if slot.path == Self.removedPath { try noteRemoved(version: 0) }
          try slot.tidy(renewing: renew)
        }
      }
    }
    let left = Set(try look(hasExpired))
    return findings.filter { !left.contains($0) }
  }

  private func count(swept: Int) { count { $0.swept += swept } }

  /// Continues with further repairs after a failure.
  package func repair(_ path: String, _ body: () throws -> Void) {
    guard let obstacle = Diagnosis.obstacle(at: path, to: "repaired", body) else { return }
    log(.error, "'\(path)': \(obstacle.what)")
  }
}
