internal import WormholeSyscalls

extension Slot {
  /// The path below the container's directory.
  var path: String { "\(folder.rawValue)/\(escaped)" }

  /// Replaces a damaged value by the previous one, and empties the staging directory, under the
  /// lock.
  ///
  /// - Parameter renew: makes the new file, as for ``Container/repair(_:renewing:)``.
  func tidy(renewing renew: (Slot, [UInt8]) throws -> [UInt8]) throws {
    try change("heal") { content in
      guard case .value(let kept, recovered: true) = content else { return .none }
      let bytes = try renew(self, kept)
      // Without this folder, the damaged value would stay in the staging directory and be removed
      // with it.
      _ = try container.openFolder(.damaged)
      return .put(bytes)
    }
    var executor = LockExecutor(self, container.policy, .unlimited, "tidy \(title)")
    guard turns.take(.unlimited) else { return }
    defer { turns.giveBack() }
    guard executor.advance(.begin) == .run else { return }
    defer { _ = executor.advance(.unchanged) }
    let failure = Errno.of { () throws(Errno) in
      try empty(executor.staging.descriptor, container.options.sharing)
    }
    if let failure { throw WormholeError(failure, "tidy", self) }
  }
}

extension Inspection {
  mutating func inspectSlots(
    in listing: OpenDirectory, _ folder: Container.Folder
  ) throws(Errno) {
    for file in try listing.descriptor.names().sorted() {
      let path = "\(folder.rawValue)/\(file)"
      guard slots?.contains(path[...]) != false, hasTime() else { continue }
      look(at: path) { inspection in
        let allowance = folder.allowance(for: file)
        guard EscapedName.unescape(file, allowance: allowance) != nil,
          let directory = try inspection.openIfDirectory(file, in: listing.descriptor)
        else { return inspection.addForeign(path) }
        try inspection.inspectSlot(directory, path)
      }
    }
  }

  func openIfDirectory(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> OpenDirectory? {
    // A file or a link may have the name, or the directory may be gone already.
    try parent.directory(name, container.options.sharing)
  }

  private mutating func inspectSlot(_ directory: OpenDirectory, _ path: String) throws(Errno) {
    var known: Set<String> = [Slot.valueName, Slot.keptName, "lock"]
    if path == "system/\(AccessDirectory.slotName)" { known.formUnion(AccessDirectory.folders) }
    if path.begins(with: "channels/") { known.insert(ChannelHome.fileName) }
    let names = try directory.descriptor.names()
    try inspectHome(of: directory, path)
    for name in names.sorted() where !known.contains(name) { addForeign("\(path)/\(name)") }
    inspectValue(directory, path)
    guard names.contains("lock") else {
      add(.note, "\(path)/lock", "missing; the next change creates the directory")
      return
    }
    look(at: "\(path)/lock") { inspection in
      try inspection.inspectLocks(inspection.open("lock", in: directory.descriptor), path)
    }
  }

  private mutating func inspectValue(_ directory: OpenDirectory, _ path: String) {
    let reader = container.reader
    do throws(ReadRefusal) {
      guard
        case .damaged(let reason, _) = try reader.read(
          Slot.valueName, in: directory.descriptor)
      else { return }
      let previous: [UInt8]? =
        switch try reader.read(Slot.keptName, in: directory.descriptor) {
        case .sound(let bytes, _): bytes
        case .missing: container.pastValue(in: directory.descriptor)
        case .damaged: nil
        }
      addDamage("damaged (\(reason))", previous, path)
    } catch {
      let meaning = error.error("read", path, Slot.valueName)
      add(.problem, "\(path)/value.plist", meaning.reason, advice: meaning.hint)
    }
  }

  private mutating func addDamage(_ damage: String, _ previous: [UInt8]?, _ path: String) {
    let subject = "\(path)/value.plist"
    guard path != Container.removedPath else {
      return add(
        .problem, subject, "\(damage); new channels begin with a version above all earlier ones",
        advice: "the next removal of a channel or suite writes the file again", isRepairable: true)
    }
    guard let previous else {
      return add(
        .problem, subject, "\(damage), and there is no previous value",
        advice: Self.advice(for: path))
    }
    guard !hasExpired(path, previous) else {
      return add(
        .problem, subject, "\(damage), and the previous value has expired",
        advice: Self.advice(for: path))
    }
    add(
      .problem, subject, "\(damage); readers get the previous value",
      advice: "the next change repairs the value", isRepairable: true)
  }

  /// The remedy for a value that cannot be recovered.
  private static func advice(for path: String) -> String {
    if path == "system/epoch" {
      return "end all programs of the container, and move \(path) away"
    }
    if let suite = suite(at: path) {
      return "remove all settings with 'wormhole defaults delete \(suite.shellWord)'; "
        + "the file moves to damaged/"
    }
    return "put a new value; the damaged file moves to damaged/"
  }

  /// The suite whose settings are in the directory; nil for another directory.
  ///
  /// The file name is the escaped form of the prefix and the suite together: a suite that begins
  /// with a dot has no escaped dot there.
  private static func suite(at path: String) -> String? {
    let (folder, prefix) = ("\(Container.Folder.system.rawValue)/", Container.Folder.suitePrefix)
    guard path.begins(with: folder + prefix) else { return nil }
    let file = String(path.dropFirst(folder.count))
    return EscapedName.unescape(file, allowance: prefix.utf8.count).map { name in
      String(Substring(name.utf8.dropFirst(prefix.utf8.count)))
    }
  }

  private mutating func inspectLocks(_ locks: OpenDirectory, _ path: String) throws(Errno) {
    let names = try locks.descriptor.names()
    let generations = Slot.generations(of: names)
    for name in names.sorted() where generations[name] == nil {
      addForeign("\(path)/lock/\(name)")
    }
    let highest = generations.filter { "\($0.value)" == $0.key }.values.max() ?? 0
    guard highest > 0 else { return }
    let lock = "\(path)/lock/\(highest)"
    guard
      isFile("\(highest)", in: locks, lock, otherwise: "the value cannot be changed")
    else { return }
    var isHeld = false
    look(at: lock) { isHeld = try $0.inspectHolder(locks, highest, path) }
    guard !isHeld else { return }
    look(at: "\(lock).d") { inspection in
      let staging = try inspection.open("\(highest).d", in: locks.descriptor)
      for name in try staging.descriptor.names() {
        inspection.add(
          .problem, "\(lock).d/\(name)", "left by an ended process",
          advice: "the next change removes the file", isRepairable: true)
      }
    }
  }

  private func openLock(
    _ name: String, in locks: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try locks.open(name, [.readWrite, .nonBlocking])
    } catch {
      // Some file systems give the lock only for writing; if they are read-only, no process has the
      // lock.
      guard error == .readOnlyFileSystem else { throw error }
      return try locks.open(name, .readOnlyNonBlocking)
    }
  }

  /// Tries to take the lock for a moment; if a process holds it, reports the holder.
  private mutating func inspectHolder(
    _ locks: OpenDirectory, _ generation: Int, _ path: String
  ) throws(Errno) -> Bool {
    let file = try openLock("\(generation)", in: locks.descriptor)
    if try file.tryLock(.exclusive) {
      try file.unlock()
      return false
    }
    add(LockHolder(try HolderMark(in: file)), of: "\(path)/lock/\(generation)")
    return true
  }
}

extension Inspection {
  /// Reports the home of a copy.
  fileprivate mutating func inspectHome(of directory: OpenDirectory, _ path: String) throws(Errno) {
    guard let home = try ChannelHome.read(in: directory.descriptor, container) else { return }
    add(
      home.machine == nil ? .problem : .note, "\(path)/\(ChannelHome.fileName)", home.reason,
      advice: home.machine == nil
        ? "start the bridge, which writes the file again" : "the value is a copy")
  }
}
