package import Syscalls

/// The files in a member's directory: placed complete, read, moved and removed, each in one step.
///
/// What is in a file never changes. A message's whole life is one file that is renamed from part
/// to part, so of all who would end it, one does.
extension MemberDirectory {
  /// Puts a new file under a name that is free; EEXIST if it is not.
  ///
  /// What it throws means: not placed. With `.power` the content is on disk before the name
  /// appears, and ``makeDurable(_:_:)`` is to follow.
  package func place(
    _ bytes: [UInt8], as name: String, in part: Part, durability: Durability = .process,
    replacing: Bool = false
  ) throws(Errno) {
    let (staging, syncs) = (container.staging, durability == .power && !Mutants.has(.noFileSync))
    var isSecondTry = false
    while true {
      do throws(Errno) {
        let directory = try self.part(part)
        return try bytes.span.bytes.withUnsafeBytes { bytes throws(Errno) in
          guard replacing else {
            return try staging.place(bytes, sync: syncs, in: directory.descriptor, as: name)
          }
          try staging.withFile(bytes, sync: syncs) { staged, _ throws(Errno) in
            try staging.directory().descriptor.replace(staged, in: directory.descriptor, name)
          }
        }
      } catch {
        // What the kernel could not write it has forgotten: only a new file can be trusted.
        guard !isSecondTry,
          error == .noSuchFile && forgetIfStale(part) || syncs && error == .inputOutput
        else { throw error }
        isSecondTry = true
      }
    }
  }

  /// Makes the names in a part durable; all who ask at the same time share one sync.
  package func makeDurable(_ part: Part) throws(Errno) {
    guard !Mutants.has(.noDirectorySync) else { return }
    let directory = try self.part(part)
    try syncNames(of: directory)
    try directory.sync.sync(directory.descriptor)
  }

  /// Moves a file from part to part; false if it is not there any more.
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

  /// Gives a file a name in another part as well; does nothing if that name is taken.
  package func link(
    _ name: String, from part: Part, to other: MemberDirectory? = nil, _ target: Part,
    as new: String
  ) throws(Errno) {
    do throws(Errno) {
      let to = try (other ?? self).part(target)
      try self.part(part).descriptor.link(name, to: to.descriptor, new)
    } catch {
      guard error == .fileExists else { throw error }
    }
  }

  /// Removes a file; false if it is not there any more.
  package func remove(_ name: String, from part: Part) throws(Errno) -> Bool {
    do throws(Errno) {
      try self.part(part).descriptor.unlink(name)
      return true
    } catch {
      guard error == .noSuchFile else { throw error }
      return false
    }
  }

  /// Removes a dead letter, whatever it is; false if it is not there any more.
  ///
  /// It may be a directory that somebody has put into an inbox, and goes with all that lies in it.
  package func discard(_ name: String) throws(Errno) -> Bool {
    do throws(Errno) {
      return try remove(name, from: .dead)
    } catch {
      guard error == .isADirectory || error == .notPermitted,
        try status(of: name, in: .dead)?.kind == .directory
      else { throw error }
      try removeTree(name, in: part(.dead).descriptor, depth: 100)
      return true
    }
  }

  /// Reads a file as P1 has it.
  package func read(
    _ name: String, in part: Part, _ operation: String
  ) throws(WormholeError) -> FoundFile {
    do {
      let directory = try self.part(part)
      return try container.reading.read(name, in: directory.descriptor)
    } catch let error as FileReading.Refusal {
      throw error.error(operation, self.name, "\(part.rawValue)/\(name)")
    } catch {
      throw WormholeError(error as! Errno, operation, self.name)  // Only these two are thrown.
    }
  }

  /// What the kernel knows of a file; nil if there is none.
  package func status(of name: String, in part: Part) throws(Errno) -> FileStatus? {
    do throws(Errno) {
      return try self.part(part).descriptor.status(of: name)
    } catch {
      guard error == .noSuchFile else { throw error }
      return nil
    }
  }

  /// Hands over the names in a part, in no order, as the kernel has them.
  ///
  /// Each listing has a descriptor of its own, so that several may be under way. A part that is
  /// missing has no names, and is not made for that: somebody may be removing all of them.
  package func list(
    _ part: Part, _ body: (UnsafePointer<CChar>) -> Void
  ) throws(Errno) {
    guard let directory = try existing(part) else { return }
    let listing = try directory.descriptor.open(".", [.readOnly, .directory])
    try listing.forEachName(isFresh: true) { name throws(Errno) in
      body(name)
      return true
    }
  }

  /// Watches the names that come to a part, and goes on with the next of its name when somebody
  /// removes it or moves it away.
  ///
  /// Watching makes a part that is missing, but not one that goes missing later.
  package func watch(
    _ part: Part, _ mask: InotifyMask = .movedTo, pauses: Bool = false,
    _ handler: @escaping @Sendable (Watcher.Signal) -> Void
  ) throws(Errno) -> NamedWatch {
    let title = "\(path)/\(part.rawValue)"
    let watch = try NamedWatch(
      container, [folder.rawValue, escaped, part.rawValue], mask, pauses: pauses,
      ended: { end in
        self.container.log(
          .error, end.error("listen to", title), about: LogSubject(member: self.name))
        handler(.gone)
      }
    ) { signal in
      // From now on the one that has the name is used, whoever has made it.
      if signal == .replaced || signal == .gone { self.renew(part) }
      handler(signal)
    }
    _ = try self.part(part)
    return watch
  }
}

extension Descriptor {
  /// Moves a file of this directory to a name, and removes what had it.
  ///
  /// By exchange where there is something: some file systems write a file out at once that is
  /// renamed over another. What comes out is left under the first name.
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
        // It was taken away between the two.
        tries += 1
        guard error == .noSuchFile, tries < 100 else { throw error }
      }
    }
  }
}
