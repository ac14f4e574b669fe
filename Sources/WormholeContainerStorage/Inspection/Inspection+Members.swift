internal import WormholeSyscalls

/// Members and guests: their directories, identities, and whether their processes live.
extension Inspection {
  mutating func inspectMembers(
    in listing: OpenDirectory, _ folder: Container.Folder
  ) throws(Errno) {
    for file in try listing.descriptor.names().sorted() {
      let path = "\(folder.rawValue)/\(file)"
      look(at: path) { inspection in
        guard let name = EscapedName.unescape(file),
          let directory = try inspection.openIfDirectory(file, in: listing.descriptor)
        else { return inspection.addForeign(path) }
        // The directory may have been removed in the meantime.
        guard let home = try inspection.container.existingMember(name, in: folder) else { return }
        try inspection.inspect(home)
        try inspection.inspectContents(of: directory, path, MemberDirectory.Part.parts(in: folder))
      }
    }
  }

  private mutating func inspect(_ home: MemberDirectory) throws(Errno) {
    try inspectWorkers(of: home)
    let (isPresent, found) = (try home.isPresent(), try home.readProfile())
    let profile = "\(home.path)/\(MemberDirectory.profileName)"
    switch found {
    case .missing, .sound: break
    case .damaged(let reason):
      add(
        .problem, profile, "damaged (\(reason)): the profile of the member is unknown",
        advice: "the next program that joins as '\(home.name)' replaces the profile")
    case .foreign(let reason):
      add(
        .problem, profile, "not a profile: \(reason)",
        advice: "move the file away, and check its origin; until the move no program can join")
    }
    inspectStart(of: home)
    if let elsewhere = try home.elsewhere {
      add(
        elsewhere.machine == nil ? .problem : .note,
        "\(home.path)/\(MemberDirectory.elsewhereName)", elsewhere.reason,
        advice: "the messages wait here until they are carried there")
    }
    guard isPresent else { return }
    add(home.presenceHolder(), of: "\(home.path)/\(MemberDirectory.presenceName)")
  }

  private mutating func inspectWorkers(of home: MemberDirectory) throws(Errno) {
    for worker in try home.workers() {
      look(at: worker.path) { try $0.inspect(worker: worker) }
      let claimed = MemberDirectory.Part.claimed.rawValue
      look(at: "\(worker.path)/\(claimed)") { inspection in
        _ = try inspection.open(claimed, in: worker.home.descriptor)
      }
    }
    guard home.folder == .queues, let workers = try home.existing(.workers) else { return }
    for name in try home.workerNames().map(\.text).sorted() {
      // The entries that `workers()` leaves out.
      look(at: "\(home.path)/\(MemberDirectory.Part.workers.rawValue)/\(name)") { inspection in
        _ = try inspection.open(name, in: workers.descriptor)
      }
    }
  }

  /// Reports a worker of a queue.
  private mutating func inspect(worker: MemberDirectory) throws(Errno) {
    guard try worker.isPresent() else {
      return add(
        .note, worker.path, "left by a worker whose process has ended",
        advice: "the next worker of '\(worker.name)' returns its messages to the queue")
    }
    add(worker.presenceHolder(), of: worker.path, "a worker:")
  }

  /// Reports a launch command that cannot run or is not trusted.
  private mutating func inspectStart(of home: MemberDirectory) {
    let path = "\(home.path)/\(MemberDirectory.startName)"
    if home.hasForeignStart {
      add(
        .problem, path, "not trusted in a directory that the whole group can write to",
        advice: "remove the file, and register the launch command again with "
          + "'wormhole wake \(home.name.shellWord) --register'")
    }
    let start: MemberStart?
    do throws(WormholeError) {
      start = try home.readStart("inspect the launch command of")
    } catch {
      add(.problem, path, error.reason, advice: error.hint)
      return
    }
    guard let start else { return }
    do throws(Errno) {
      try Processes.checkProgram(start.program)
    } catch {
      add(
        .problem, path,
        "cannot execute program '\(start.program)' of the launch command: \(error)",
        advice: "register again with 'wormhole wake \(home.name.shellWord) --register'")
    }
  }

  private mutating func inspectContents(
    of directory: OpenDirectory, _ path: String, _ parts: [MemberDirectory.Part]
  ) throws(Errno) {
    let files = [
      MemberDirectory.presenceName, MemberDirectory.profileName, MemberDirectory.progressName,
      MemberDirectory.startName, MemberDirectory.roomName, MemberDirectory.elsewhereName,
    ]
    for name in try directory.descriptor.names().sorted() {
      let path = "\(path)/\(name)"
      if files.contains(name) {
        // A profile of the wrong kind was reported when it was read. A join replaces the other
        // files whatever their kind, except for the presence file and for directories.
        let isDirectory = (try? directory.descriptor.status(of: name).kind) == .directory
        let stays = name == MemberDirectory.presenceName
        if stays || isDirectory && name == MemberDirectory.progressName {
          _ = isFile(name, in: directory, path, otherwise: "no program can join")
        }
      } else if let part = MemberDirectory.Part(rawValue: name), parts.contains(part) {
        // The content of the parts is inspected by the module that knows messages.
        look(at: path) { inspection in
          _ = try inspection.open(name, in: directory.descriptor)
          inspection.addDenial(of: path)
        }
      } else {
        addForeign(path)
      }
    }
  }

  /// Reports a directory that this user can read, and may not write to; root may write anywhere.
  private mutating func addDenial(of path: String) {
    let (sharing, root) = (container.options.sharing, container.root)
    // A directory that too many users may write to is used nevertheless.
    guard Processes.effectiveUser != 0, let status = try? root.descriptor.status(of: path),
      status.mode & sharing.foreignWriters == 0,
      let denial = sharing.denial(of: path, in: root.descriptor, at: container.path)
    else { return }
    add(
      .problem, path, "not writable for this user: messages or outcomes wait until it is",
      advice: denial)
  }
}

extension Inspection {
  mutating func inspectDeadGuests() throws(Errno) {
    for name in try container.guestNames().sorted() {
      // The directory may have been removed meanwhile; its wrong kind has been reported already.
      try ignoring([.noSuchFile, .notADirectory, .tooManyLinks, .notPermitted]) {
        () throws(Errno) in
        let home = try container.openMember(name, name, .guests)
        guard try home.isGuests(), try !home.isPresent(), try home.elsewhere == nil else { return }
        add(
          .problem, "\(Container.Folder.guests.rawValue)/\(name)",
          "left by a guest whose process has ended",
          advice: "the next program to open the container removes the guest", isRepairable: true)
      }
    }
  }
}
