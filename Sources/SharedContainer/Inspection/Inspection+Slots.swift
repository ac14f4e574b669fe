internal import Syscalls

extension Slot {
  /// From the container's directory.
  var path: String { "\(folder.rawValue)/\(escaped)" }

  /// Heals a damaged value from the kept one, and empties the staging directory, under the lock.
  func tidy() throws {
    try change("heal") { content in
      if case .value(let bytes, recovered: true) = content { return .put(bytes) }
      return .none
    }
    var executor = LockExecutor(
      self, LockPolicy(lease: container.options.lease, cap: container.options.cap), .unlimited,
      "tidy \(title)")
    guard turns.take(.unlimited, now: container.options.environment.now) else { return }
    defer { turns.giveBack() }
    guard executor.advance(.begin) == .run else { return }
    defer { _ = executor.advance(.unchanged) }
    if let failure = Errno.of({ () throws(Errno) in try empty(executor.staging.descriptor) }) {
      throw WormholeError(failure, "tidy", path)
    }
  }
}

extension Inspection {
  mutating func inspectSlots(in folder: Container.Folder) throws(Errno) {
    guard let listing = try self.folder(folder) else { return }
    for file in try listing.descriptor.names().sorted() {
      let path = "\(folder.rawValue)/\(file)"
      guard EscapedName.unescape(file) != nil,
        let directory = try openIfDirectory(file, in: listing.descriptor)
      else {
        addForeign(path)
        continue
      }
      try inspectSlot(directory, path)
    }
  }

  func openIfDirectory(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> OpenDirectory? {
    do throws(Errno) {
      return OpenDirectory(try parent.open(name, [.readOnly, .directory]))
    } catch {
      // A file or a link in its place, or it is gone already.
      guard [.notADirectory, .tooManyLinks, .noSuchFile].contains(error) else { throw error }
      return nil
    }
  }

  private mutating func inspectSlot(_ directory: OpenDirectory, _ path: String) throws(Errno) {
    var known: Set<String> = [Slot.valueName, Slot.keptName, "lock"]
    if path == "system/\(AccessRoom.slotName)" { known.formUnion(Self.accessFolders) }
    for name in try directory.descriptor.names().sorted() where !known.contains(name) {
      addForeign("\(path)/\(name)")
    }
    inspectValue(directory, path)
    guard let locks = try openIfDirectory("lock", in: directory.descriptor) else {
      add(Finding(.note, "\(path)/lock", "missing; the next change makes it"))
      return
    }
    try inspectLocks(locks, path)
  }

  private mutating func inspectValue(_ directory: OpenDirectory, _ path: String) {
    let reading = container.reading
    do throws(FileReading.Refusal) {
      guard
        case .damaged(let reason, _) = try reading.read(
          Slot.valueName, in: directory.descriptor)
      else { return }
      if case .sound = try reading.read(Slot.keptName, in: directory.descriptor) {
        add(
          Finding(
            .problem, "\(path)/value.plist", "damaged (\(reason)); readers get the value before it",
            advice: "the next change heals it", isRepairable: true))
      } else {
        add(
          Finding(
            .problem, "\(path)/value.plist", "damaged (\(reason)), and no earlier value is kept",
            advice: "put a new value; the damaged one goes to damaged/"))
      }
    } catch {
      let meaning = error.error("read", path, Slot.valueName)
      add(Finding(.problem, path, meaning.reason, advice: meaning.hint))
    }
  }

  private mutating func inspectLocks(_ locks: OpenDirectory, _ path: String) throws(Errno) {
    let names = try locks.descriptor.names()
    guard let highest = names.compactMap({ Int($0) }).max() else { return }
    for name in names.sorted() {
      let number = Int(name.hasSuffix(".d") ? String(name.dropLast(2)) : name)
      guard let number, "\(number)" == name || "\(number).d" == name else {
        addForeign("\(path)/lock/\(name)")
        continue
      }
    }
    let isHeld = try inspectHolder(locks, highest, path)
    guard !isHeld, let staging = try openIfDirectory("\(highest).d", in: locks.descriptor)
    else { return }
    for name in try staging.descriptor.names() {
      add(
        Finding(
          .problem, "\(path)/lock/\(highest).d/\(name)", "left by a process that has ended",
          advice: "the next change removes it", isRepairable: true))
    }
  }

  private func openLock(
    _ name: String, in locks: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    do throws(Errno) {
      return try locks.open(name, [.readWrite, .nonBlocking])
    } catch {
      // Some file systems give the lock only for writing; where nothing is written, nobody has it.
      guard error == .readOnlyFileSystem else { throw error }
      return try locks.open(name, [.readOnly, .nonBlocking])
    }
  }

  /// Takes the lock for a moment; if somebody has it, tells who.
  private mutating func inspectHolder(
    _ locks: OpenDirectory, _ generation: Int, _ path: String
  ) throws(Errno) -> Bool {
    let name = "\(path)/lock/\(generation)"
    do throws(Errno) {
      let file = try openLock("\(generation)", in: locks.descriptor)
      if try file.tryLock(.exclusive) {
        try file.unlock()
        return false
      }
      let holder = LockHolder(try HolderMark(in: file))
      let who = holder.map { "\($0)" } ?? "a process that left no name"
      if holder?.state == .stopped {
        add(
          Finding(
            .problem, name, "held by \(who)",
            advice: holder?.advice))
      } else {
        add(Finding(.note, name, "held by \(who)"))
      }
      return true
    } catch {
      guard [.noDevice, .tooManyLinks, .isADirectory].contains(error) else { throw error }
      add(
        Finding(
          .problem, name, "not a plain file: \(error)",
          advice: "look who put it there; while it is there the value cannot be changed"))
      return true
    }
  }
}
