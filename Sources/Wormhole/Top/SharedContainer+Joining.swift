public import WormholeContainerStorage
internal import WormholeSyscalls

extension SharedContainer {
  /// Joins under a name, which this process holds exclusively until it leaves or ends.
  ///
  /// A name has one living process; two instances of a container in one process count as two
  /// processes. While another holder has the name, the call throws
  /// ``WormholeError/Code-swift.struct/nameTaken``, and the error names the holder. A suspended
  /// process keeps its name. Any end of a process releases its name at once: a kill, a crash or an
  /// orderly exit.
  ///
  /// This process holds the name until `leave()`, even if the program retains the returned object
  /// no longer. `withMember(as:info:_:)` leaves automatically.
  ///
  /// On a full disk, the member joins as far as possible: receiving waiting messages works, and
  /// frees space. Other processes see that the name is held but not by which process, and cannot
  /// send requests to the member before it has joined again.
  ///
  /// The end of a killed process takes some milliseconds, and until then the process appears to
  /// run. So the call reports a taken name only after a tenth of a second.
  ///
  /// - Parameters:
  ///   - name: any name; the address for messages to the member.
  ///   - info: information about the member for other processes; 4096 bytes at most, keys and
  ///     values together.
  public func join(
    as name: String, info: [String: String] = [:]
  ) throws(WormholeError) -> Member {
    try storage.checkOwner("join as", name)
    try WormholeError.checkNoCopy("join as", name)
    try Member.check(info, name)
    // If another tool removes the directory in the meantime, make it again.
    for _ in 0..<10 {
      let home = try storage.member(name)
      // Whoever carries its messages may hold the name, and must not appear to be the member.
      try checkHome(of: home)
      guard let presence = try takePresence(home) else { continue }
      do throws(WormholeError) {
        // The file is made under the presence.
        try checkHome(of: home)
      } catch {
        presence.release()
        throw error
      }
      let joined = try stampOfJoining()
      let (profile, folder) = try introduce(home, info)
      sweepFiles(of: home)
      let member = Member(container: self, home: home, presence, profile, folder, joined: joined)
      do throws(WormholeError) {
        let live = member.live
        try live.begin()
        try subscriptions.keep(member)
        try live.watchEnd { [weak member] error in _ = member?.leave(because: error) }
      } catch {
        member.leave()
        throw error
      }
      return member
    }
    throw WormholeError(
      .conflict, "join as", name, because: "other processes removed its directory repeatedly",
      hint: "find the program that removes the directory")
  }

  /// Returns the present time.
  ///
  /// On a full disk, the epoch of a restarted machine cannot be recorded; then returns a time in
  /// the next epoch, so that all earlier messages count as sent in an earlier epoch.
  private func stampOfJoining() throws(WormholeError) -> MessageStamp {
    do throws(WormholeError) {
      return try MessageStamp(storage)
    } catch {
      guard error.code == .full else { throw error }
      return MessageStamp(
        epoch: try storage.recordedEpoch() + 1, nanoseconds: options.environment.sinceBoot())
    }
  }

  /// Joins under a name for as long as the body runs, and leaves however the body ends.
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

  private func checkHome(of home: MemberDirectory) throws(WormholeError) {
    try home.checkHome(
      "join as", .nameTaken,
      hint: "join under another name, or move the member's home to this machine")
  }

  /// Takes the name; returns nil if the directory no longer exists.
  private func takePresence(_ home: MemberDirectory) throws(WormholeError) -> Presence? {
    // A process that was killed a moment ago still appears to run; a process that has joined a
    // moment ago may not have written its process ID yet. Only the kernel's lock counts.
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
      // On a busy machine the end of a process takes longer; wait up to a second for a holder that
      // is known to be ending.
      let most = Duration.milliseconds(holder?.isEnding == true ? 1000 : 100)
      let isOver = Instant.now - begin >= most
      if isOver || holder?.staysForSure == true { throw Self.taken(home, by: holder) }
      try OffPool.checkCancellation("join as", home.name)
      Thread.pause(pause)
      pause = min(pause * 2, .milliseconds(10))
    }
  }

  private static func taken(_ home: MemberDirectory, by holder: LockHolder?) -> WormholeError {
    let who = holder.map { "\($0)" } ?? "a process without a stored identity"
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
        hint: "find the program that made this file, and move the file away", errno: error)
    default: WormholeError(error, "join as", home.name, at: home)
    }
  }

  /// Writes the profile of the joining member.
  private func introduce(
    _ home: MemberDirectory, _ info: [String: String]
  ) throws(WormholeError) -> (MemberProfile, OpenDirectory) {
    let before = try naming("join as", home.name, at: home, home.readProfile())
    switch before {
    case .foreign(let reason):
      throw WormholeError(
        .refused, "join as", home.name,
        because: "'\(MemberDirectory.profileName)' in its directory is not a profile that may be "
          + "replaced: \(reason)",
        hint: "find the program that made this file, and move the file away")
    case .damaged(let reason):
      log(
        .warning, "the profile of member '\(home.name)' was damaged (\(reason)); replaced",
        about: LogSubject(member: home.name))
    case .missing, .sound: break
    }
    let profile = MemberProfile(
      name: home.name, info: info, storage.options.environment)
    // Make the folder before the profile: a reader of the profile must find the folder.
    let folder: OpenDirectory
    do throws(WormholeError) {
      folder = try naming("join as", home.name, at: home, home.makeLive(profile.incarnation))
      try home.write(profile)
    } catch {
      // Join nevertheless: the member can receive waiting messages, which frees space.
      guard error.code == .full else { throw error }
      log(
        .warning,
        "joined as '\(home.name)' on a full disk: until the next join, peers cannot identify this "
          + "member or send requests", about: LogSubject(member: home.name), because: error)
      // No file ever arrives in this folder.
      return (profile, try naming("join as", home.name, at: home, home.part(.live)))
    }
    return (profile, folder)
  }
}

extension LockHolder {
  /// Whether waiting for the holder's end is useless: the holder is this process, or is suspended.
  fileprivate var staysForSure: Bool {
    switch state {
    case .stopped: true
    case .running: process == Processes.current
    case .gone, .unknown: false
    }
  }
}
