package import WormholeSyscalls

/// The files in a member's directory: placed complete, read, moved and removed, each in one step.
///
/// The content of a file never changes. A message is a single file, renamed from part to part: if
/// several processes try to settle a message, exactly one succeeds.
extension MemberDirectory {
  /// Puts a new file under a free name; EEXIST if the name is taken.
  ///
  /// Every error means that the file was not placed. With `.power` the content is on disk before
  /// the name appears, and a call of ``makeDurable(_:_:)`` has to follow.
  package func place(
    _ bytes: [UInt8], as name: String, in part: Part, durability: Durability = .process,
    replacing: Bool = false
  ) throws(Errno) {
    let (staging, syncs) = (container.staging, durability == .power && !Mutants.has(.noFileSync))
    var isSecondTry = false
    guard replacing else {
      return try staging.publish(bytes, sync: syncs, as: name) { () throws(Errno) in
        try self.part(part)
      } renewing: { error in
        guard !isSecondTry, isWorthSecondTry(error, in: part, syncs: syncs) else { return false }
        isSecondTry = true
        return true
      }
    }
    var directory = try self.part(part)
    try staging.withFile(
      bytes, sync: syncs,
      renewing: { (error: Errno) throws(Errno) -> Bool in
        guard !isSecondTry, isWorthSecondTry(error, in: part, syncs: syncs) else { return false }
        isSecondTry = true
        directory = try self.part(part)
        return true
      }
    ) { staged, _ throws(Errno) in
      try staging.directory().descriptor.replace(staged, in: directory.descriptor, name)
    }
  }

  /// Whether a new file may be placed although an attempt has failed; forgets a part that is gone.
  private func isWorthSecondTry(_ error: Errno, in part: Part, syncs: Bool) -> Bool {
    // After a failed write the kernel discards the data: only a new file can be trusted.
    error == .noSuchFile && forgetIfStale(part) || syncs && error == .inputOutput
  }

  /// Makes the names in a part durable; concurrent callers share one sync.
  package func makeDurable(_ part: Part) throws(Errno) {
    guard !Mutants.has(.noDirectorySync) else { return }
    let directory = try self.part(part)
    try syncNames(of: directory)
    try directory.sync.sync(directory.descriptor)
  }

  /// Moves a file from part to part; false if it is no longer in the first part.
  package func move(
    _ name: String, from part: Part, to other: MemberDirectory? = nil, _ target: Part,
    as new: String
  ) throws(Errno) -> Bool {
    let other = other ?? self
    var tries = 0
    while true {
      do throws(Errno) {
        let (from, to) = (try self.part(part), try other.part(target))
        try from.descriptor.rename(name, to: to.descriptor, new)
        return true
      } catch {
        guard error == .noSuchFile else { throw error }
        tries += 1
        let isStale = forgetIfStale(part) || other.forgetIfStale(target)
        guard isStale, tries < 3 else { return false }
      }
    }
  }

  /// Moves a file of another directory into a part; false if the file is gone.
  package func move(
    _ name: String, of directory: OpenDirectory, to part: Part, as new: String
  ) throws(Errno) -> Bool {
    try retrying(part) { target throws(Errno) in
      try directory.descriptor.rename(name, to: target.descriptor, new)
    }
  }

  /// Gives a file of another directory a second name in a part; false if the file is gone.
  ///
  /// Does nothing if the name is taken.
  package func link(
    _ name: String, of directory: OpenDirectory, to part: Part, as new: String
  ) throws(Errno) -> Bool {
    try retrying(part) { target throws(Errno) in
      try ignoring(.fileExists, directory.descriptor.link(name, to: target.descriptor, new))
    }
  }

  /// Runs a body that gives a file a name in a part; false if the file is gone.
  ///
  /// If another tool has replaced the directory of the part, the body runs again with the new one.
  private func retrying(
    _ part: Part, _ body: (OpenDirectory) throws(Errno) -> Void
  ) throws(Errno) -> Bool {
    var tries = 0
    while true {
      do throws(Errno) {
        try body(self.part(part))
        return true
      } catch {
        guard error == .noSuchFile, !isStale else { throw error }
        tries += 1
        guard forgetIfStale(part), tries < 3 else { return false }
      }
    }
  }

  /// Gives a file a second name in another part; does nothing if the name is taken.
  package func link(
    _ name: String, from part: Part, to other: MemberDirectory? = nil, _ target: Part,
    as new: String
  ) throws(Errno) {
    let to = try (other ?? self).part(target)
    try ignoring(.fileExists, self.part(part).descriptor.link(name, to: to.descriptor, new))
  }

  /// Removes a file; false if it is no longer in the part.
  package func remove(_ name: String, from part: Part) throws(Errno) -> Bool {
    try ignoring(.noSuchFile, self.part(part).descriptor.unlink(name)) != nil
  }

  /// Removes a dead letter of any kind; false if it is no longer in the part.
  ///
  /// A dead letter may be a directory that another tool has put into an inbox; its content is
  /// removed too.
  package func discard(_ name: String) throws(Errno) -> Bool {
    do throws(Errno) {
      return try remove(name, from: .dead)
    } catch {
      guard error == .isADirectory || error == .notPermitted,
        try status(of: name, in: .dead)?.kind == .directory
      else { throw error }
      try removeTree(name, in: part(.dead).descriptor, depth: 100, container.options.sharing)
      return true
    }
  }

  /// Reads a file as promise P1 requires.
  ///
  /// - Parameter open: the part, for a caller that reads many files: threads that read side by side
  ///   would otherwise take the same lock for each file. Nil to look the part up.
  package func read(
    _ name: String, in part: Part, _ operation: String, of open: OpenDirectory? = nil
  ) throws(WormholeError) -> FoundFile {
    do {
      let directory = if let open { open } else { try self.part(part) }
      return try name.withCName { path throws(ReadRefusal) in
        try container.reader.read(path, in: directory.descriptor)
      }
    } catch let error as ReadRefusal {
      throw error.error(operation, self.name, "\(part.rawValue)/\(name)")
    } catch {
      // The body throws only these two types.
      throw WormholeError(error as! Errno, operation, self.name, at: self)
    }
  }

  /// Returns the kernel's status of a file; nil if there is none.
  package func status(of name: String, in part: Part) throws(Errno) -> FileStatus? {
    try ignoring(.noSuchFile, self.part(part).descriptor.status(of: name))
  }

  /// Reads some bytes of a file, fewer at its end; nil if there is no file that may be read.
  package func read(
    _ name: String, in part: Part, at offset: Int, count: Int
  ) throws(Errno) -> [UInt8]? {
    // A link, a socket or nothing may have the name.
    guard
      let file = try ignoring(
        [.noSuchFile, .tooManyLinks, .noDevice],
        { () throws(Errno) in
          try self.part(part).descriptor.open(name, .readOnlyNonBlocking)
        })
    else { return nil }
    let status = try file.status()
    guard status.kind == .regular,
      container.options.sharing == .group || status.owner == Processes.effectiveUser
    else { return nil }
    return try file.bytes(at: offset, count: count)
  }

  /// Passes the names in a part to the body, unordered, as the kernel reports them.
  ///
  /// Each listing has its own descriptor, because several listings may run at once. A missing part
  /// has no names and is not made, because another process may be removing all parts.
  package func list(
    _ part: Part, _ body: (UnsafePointer<CChar>) -> Void
  ) throws(Errno) {
    _ = try contains(part) { name in
      body(name)
      return false
    }
  }

  /// Returns the names in a part in a parsed form, unordered; foreign names are left out.
  ///
  /// - Parameter name: reads a name; nil for a foreign one.
  package func names<Name>(
    in part: Part, _ name: (UnsafePointer<CChar>) -> Name?
  ) throws(Errno) -> [Name] {
    var names: [Name] = []
    try list(part) { if let name = name($0) { names.append(name) } }
    return names
  }

  /// Lists a part as ``list(_:_:)`` does, up to the first name that satisfies the condition.
  package func contains(
    _ part: Part, where isWanted: (UnsafePointer<CChar>) -> Bool
  ) throws(Errno) -> Bool {
    while let directory = try existing(part) {
      do throws(Errno) {
        let listing = try directory.descriptor.open(".", .readOnlyDirectory)
        var isFound = false
        try listing.forEachName(isFresh: true) { name throws(Errno) in
          isFound = isWanted(name)
          return !isFound
        }
        return isFound
      } catch {
        // Another process may have removed the directory since it was opened, as a worker that
        // leaves does.
        guard error == .noSuchFile, forgetIfStale(part) else { throw error }
      }
    }
    return false
  }

  /// Watches the names that are added to a part.
  ///
  /// If the part is removed or moved away, the watch continues with the next directory of its name.
  /// Starting a watch makes a missing part, but not a part that goes missing later.
  ///
  /// - Parameter makes: false to wait for a part that another process makes.
  package func watch(
    _ part: Part, _ mask: InotifyMask = .movedTo, pauses: Bool = false, makes: Bool = true,
    _ handler: @escaping @Sendable (WatchSignal) -> Void
  ) throws(Errno) -> NamedWatch {
    let title = "\(path)/\(part.rawValue)"
    let watch = try NamedWatch(
      container, steps + [part.rawValue], mask, pauses: pauses,
      ended: { end in
        self.container.log(
          .error, end.error("listen to", title), about: LogSubject(member: self.name))
        handler(.gone)
      }
    ) { signal in
      // From now on the directory with the name is used, whichever process has made it.
      if signal == .replaced || signal == .gone { self.renew(part) }
      handler(signal)
    }
    if makes { _ = try self.part(part) }
    return watch
  }
}

extension Descriptor {
  /// Moves a file of this directory to a name, and replaces a file that has the name.
  ///
  /// An existing file is replaced by an exchange, because some file systems write a file to disk at
  /// once if it is renamed over another. The old file remains under the first name.
  func replace(
    _ name: UnsafePointer<CChar>, in directory: borrowing Descriptor,
    _ visible: UnsafePointer<CChar>
  ) throws(Errno) {
    var tries = 0
    while true {
      do throws(Errno) {
        try rename(name, to: directory, visible, .notReplacing)
        return
      } catch {
        if error.meansUnsupportedRename { return try rename(name, to: directory, visible) }
        guard error == .fileExists else { throw error }
      }
      do throws(Errno) {
        return try rename(name, to: directory, visible, .exchanging)
      } catch {
        if error.meansUnsupportedRename { return try rename(name, to: directory, visible) }
        // The old file was removed between the two calls.
        tries += 1
        guard error == .noSuchFile, tries < 100 else { throw error }
      }
    }
  }
}
