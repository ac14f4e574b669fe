public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// Joins under a name that this process has for itself until it leaves or ends.
  ///
  /// One living process has a name, and two openings of a container in one process count as two.
  /// While another has it, this throws ``WormholeError/Code-swift.struct/nameTaken``, and the error
  /// says which. A process that is stopped has its name still. However a process ends, its name is
  /// free at once: killed, crashed or in order.
  ///
  /// The name is this process's until `leave()`, whoever keeps what this returns; see
  /// `withMember(as:info:_:)` for one that leaves by itself.
  ///
  /// On a full disk it joins as far as it can, so that what waits can be received, which makes
  /// room: others see that somebody runs under the name, but not who, and cannot ask it before it
  /// has joined again.
  ///
  /// A process that was killed takes some milliseconds to take itself down, and looks meanwhile as
  /// if it ran. So it is told only after a tenth of a second that a name is taken.
  ///
  /// - Parameters:
  ///   - name: any name; it is who messages are sent to.
  ///   - info: what the others may know of this member; 4096 bytes at most, keys and values
  ///     together.
  public func join(
    as name: String, info: [String: String] = [:]
  ) throws(WormholeError) -> Member {
    try container.checkOwner("join as", name)
    try WormholeError.checkQueues("join as", name)
    try Member.check(info, name)
    // A directory that is removed by hand meanwhile is made anew.
    for _ in 0..<10 {
      let home = try container.member(name)
      guard let presence = try takePresence(home) else { continue }
      let joined = try stampOfJoining()
      let (profile, folder) = try introduce(home, info)
      sweepFiles(of: home)
      let live = LiveMailbox(self, home, folder, profile.incarnation, mark: home.escaped)
      try live.begin()
      let member = Member(hole: self, home: home, presence, profile, live, joined: joined)
      do throws(WormholeError) {
        try begun.keep(member)
        try live.watchEnd { [weak member] error in _ = member?.leave(because: error) }
      } catch {
        member.leave()
        throw error
      }
      return member
    }
    throw WormholeError(
      .conflict, "join as", name, because: "its directory was removed again and again")
  }

  /// Present time; on a full disk, where a new run of the machine cannot be noted, a time in the
  /// next one: then all that was sent before counts as sent in an earlier one.
  private func stampOfJoining() throws(WormholeError) -> MessageStamp {
    do throws(WormholeError) {
      return try MessageStamp(container)
    } catch {
      guard error.code == .full else { throw error }
      return MessageStamp(
        epoch: try container.recordedEpoch() + 1, nanoseconds: options.environment.sinceBoot())
    }
  }

  /// Joins under a name for as long as the body runs, and leaves however that ends.
  ///
  /// As `join(as:info:)` and `leave()`.
  @discardableResult
  public func withMember<Result>(
    as name: String, info: [String: String] = [:], _ body: (Member) throws -> Result
  ) throws -> Result {
    let member = try join(as: name, info: info)
    defer { member.leave() }
    return try body(member)
  }

  /// Takes the name; nil if the directory is no longer there.
  private func takePresence(_ home: MemberDirectory) throws(WormholeError) -> Presence? {
    // One that was killed a moment ago is not quite gone, and looks as if it ran; one that has
    // joined a moment ago may not have said who it is. Only the kernel's word counts.
    let begin = Instant.now
    var pause = Duration.milliseconds(1)
    while true {
      do throws(Errno) {
        if let presence = try home.takePresence() { return presence }
      } catch {
        if home.isStale { return nil }
        throw Self.refusal(error, home)
      }
      let holder = home.presenceHolder()
      // On a busy machine that takes longer; what is known to end may take a second.
      let most = Duration.milliseconds(holder?.isEnding == true ? 1000 : 100)
      let isOver = Instant.now - begin >= most
      if isOver || holder?.staysForSure == true { throw Self.taken(home, by: holder) }
      try OffPool.checkCancellation("join as", home.name)
      let _: Void? = Monitor(()).wait(until: .now + pause) { _ in nil }
      pause = min(pause * 2, .milliseconds(10))
    }
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
      log(
        .warning, "the profile of member '\(home.name)' was damaged (\(reason)); replaced",
        about: LogSubject(member: home.name))
    case .missing, .sound: break
    }
    let profile = MemberProfile(
      name: home.name, info: info, container.options.environment)
    // Whoever reads the profile finds the folder.
    let folder: OpenDirectory
    do throws(WormholeError) {
      folder = try makeLive(home, profile.incarnation)
      try home.write(profile)
    } catch {
      // What waits can be received all the same, which makes room.
      guard error.code == .full else { throw error }
      log(
        .warning,
        "joined as '\(home.name)' on a full disk: until it joins again others are not told who it "
          + "is, and it cannot be asked", about: LogSubject(member: home.name), because: error)
      return (profile, try standIn(for: home))
    }
    return (profile, folder)
  }

  private func makeLive(
    _ home: MemberDirectory, _ incarnation: Incarnation
  ) throws(WormholeError) -> OpenDirectory {
    do throws(Errno) {
      return try home.makeLive(incarnation)
    } catch {
      throw WormholeError(error, "join as", home.name)
    }
  }

  /// A folder in which nothing ever comes for anybody.
  private func standIn(for home: MemberDirectory) throws(WormholeError) -> OpenDirectory {
    do throws(Errno) {
      return try home.part(.live)
    } catch {
      throw WormholeError(error, "join as", home.name)
    }
  }
}

extension LockHolder {
  /// Whether there is no need to wait whether it is about to end: it is this process, or stands
  /// still.
  fileprivate var staysForSure: Bool {
    switch state {
    case .stopped: true
    case .running: process == Processes.current
    case .gone, .unknown: false
    }
  }
}
