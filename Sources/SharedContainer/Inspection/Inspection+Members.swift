internal import Syscalls

/// Members and guests: their directories, who they are, and whether they live.
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
        // It may have gone meanwhile.
        guard let home = try inspection.container.existingMember(name, in: folder) else { return }
        try inspection.inspect(home)
        try inspection.inspectContents(of: directory, path)
      }
    }
  }

  private mutating func inspect(_ home: MemberDirectory) throws(Errno) {
    let (isPresent, found) = (try home.isPresent(), try home.readProfile())
    let profile = "\(home.path)/\(MemberDirectory.profileName)"
    switch found {
    case .missing, .sound: break
    case .damaged(let reason):
      add(
        Finding(
          .problem, profile, "damaged (\(reason)): nobody knows who the member is",
          advice: "it is written anew when a program joins as '\(home.name)'"))
    case .foreign(let reason):
      add(
        Finding(
          .problem, profile, "not a profile: \(reason)",
          advice: "look who put it there; while it is there nobody can join"))
    }
    inspectStart(of: home)
    guard isPresent else { return }
    let presence = "\(home.path)/\(MemberDirectory.presenceName)"
    let holder = home.presenceHolder()
    let who = holder.map { "\($0)" } ?? "a process that has not said who it is"
    add(
      Finding(
        holder?.state == .stopped ? .problem : .note, presence, "held by \(who)",
        advice: holder?.advice))
  }

  /// What would be run, and whether it would.
  private mutating func inspectStart(of home: MemberDirectory) {
    let path = "\(home.path)/\(MemberDirectory.startName)"
    if home.hasForeignStart {
      add(
        Finding(
          .problem, path, "nothing believes it here, where others of the group may have put it",
          advice: "remove it, and register with 'wormhole wake' what is to be started"))
    }
    let start: MemberStart?
    do throws(WormholeError) {
      start = try home.readStart("inspect the start of")
    } catch {
      add(Finding(.problem, path, error.reason, advice: error.hint))
      return
    }
    guard let start else { return }
    do throws(Errno) {
      try Processes.checkProgram(start.program)
    } catch {
      add(
        Finding(
          .problem, path, "its program '\(start.program)' cannot be run: \(error)",
          advice: "say anew how '\(home.name)' is started, with 'wormhole wake'"))
    }
  }

  private mutating func inspectContents(
    of directory: OpenDirectory, _ path: String
  ) throws(Errno) {
    let files = [
      MemberDirectory.presenceName, MemberDirectory.profileName, MemberDirectory.progressName,
      MemberDirectory.startName, MemberDirectory.roomName,
    ]
    for name in try directory.descriptor.names().sorted() {
      let path = "\(path)/\(name)"
      if files.contains(name) {
        // What kind the profile is was told when it was read. The others are replaced whatever they
        // are, which the first is not, nor a directory.
        let isDirectory = (try? directory.descriptor.status(of: name).kind) == .directory
        let stays = name == MemberDirectory.presenceName
        if stays || isDirectory && name == MemberDirectory.progressName {
          _ = isFile(name, in: directory, path, otherwise: "nobody can join")
        }
      } else if MemberDirectory.Part(rawValue: name) != nil {
        // What lies in the parts is for those to tell who know messages.
        look(at: path) { _ = try $0.open(name, in: directory.descriptor) }
      } else {
        addForeign(path)
      }
    }
  }
}
