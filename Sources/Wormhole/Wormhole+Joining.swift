public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// Joins under a name that this process has for itself until it leaves or ends.
  ///
  /// One living process has a name, and two openings of a container in one process count as two.
  /// While another has it, this throws ``WormholeError/Code-swift.enum/nameTaken``, and the error
  /// says which. A process that is stopped has its name still. However a process ends, its name is
  /// free at once: killed, crashed or in order.
  ///
  /// - Parameters:
  ///   - name: any name; it is who messages are sent to.
  ///   - info: what the others may know of this member; 4096 bytes at most, keys and values
  ///     together.
  public func join(
    as name: String, info: [String: String] = [:]
  ) throws(WormholeError) -> Member {
    try Member.check(info, name)
    // A directory that is removed by hand meanwhile is made anew.
    for _ in 0..<10 {
      let home = try container.member(name)
      guard let presence = try takePresence(home) else { continue }
      let joinedAt = container.options.environment.sinceBoot()
      let (profile, folder) = try introduce(home, info)
      sweepFiles(of: home)
      let live = Live(self, home, folder, profile.incarnation, mark: home.escaped)
      try live.begin()
      return Member(hole: self, home: home, presence, profile, live, joinedAt: joinedAt)
    }
    throw WormholeError(
      .conflict, "join as", name, because: "its directory was removed again and again")
  }

  /// Takes the name; nil if the directory is no longer there.
  private func takePresence(_ home: MemberDirectory) throws(WormholeError) -> Presence? {
    // One that has died a moment ago may not be quite gone, and one that has joined a moment ago
    // may not have said who it is.
    for pause in [1, 2, 5, 10, 20, 50, 100, 0] {
      do throws(Errno) {
        if let presence = try home.takePresence() { return presence }
      } catch {
        if home.isStale { return nil }
        throw Self.refusal(error, home)
      }
      let holder = home.presenceHolder()
      guard holder == nil, pause > 0 else { throw Self.taken(home, by: holder) }
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(pause)) { _ in nil }
    }
    return nil
  }

  private static func taken(_ home: MemberDirectory, by holder: LockHolder?) -> WormholeError {
    let who = holder.map { "\($0)" } ?? "a process that has not said who it is"
    return WormholeError(
      .nameTaken, "join as", home.name, because: "\(who) has the name",
      hint: holder?.advice)
  }

  private static func refusal(_ error: Errno, _ home: MemberDirectory) -> WormholeError {
    switch error {
    case .noDevice, .tooManyLinks, .isADirectory:
      WormholeError(
        .refused, "join as", home.name,
        because: "'\(MemberDirectory.presenceName)' in its directory is not a plain file",
        hint: "look who put it there, and move it away", errno: error)
    default: WormholeError(error, "join as", home.name)
    }
  }

  /// Writes down who has joined.
  private func introduce(
    _ home: MemberDirectory, _ info: [String: String]
  ) throws(WormholeError) -> (MemberProfile, OpenDirectory) {
    let before: FoundProfile
    do throws(Errno) {
      before = try home.readProfile()
    } catch {
      throw WormholeError(error, "join as", home.name)
    }
    switch before {
    case .foreign(let reason):
      throw WormholeError(
        .refused, "join as", home.name,
        because: "'\(MemberDirectory.profileName)' in its directory cannot be replaced: \(reason)",
        hint: "look who put it there, and move it away")
    case .damaged(let reason):
      log(.warning, "the profile of member '\(home.name)' was damaged (\(reason)); replaced")
    case .missing, .sound: break
    }
    let profile = MemberProfile(
      name: home.name, info: info, container.options.environment)
    // Whoever reads the profile finds the folder.
    let folder: OpenDirectory
    do throws(Errno) {
      folder = try home.makeLive(profile.incarnation)
    } catch {
      throw WormholeError(error, "join as", home.name)
    }
    try home.write(profile)
    return (profile, folder)
  }
}
