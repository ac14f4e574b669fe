import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Joining and leaving: at any moment, a name belongs to one running process.
@Suite(.blocking) struct JoiningTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  /// Starts a peer that joins and stays.
  private func be(_ name: String) throws -> Running {
    let running = try Running(.be(meeting.path, name))
    try eventually("'\(name)' has joined") { try running.output.contains("\n") }
    return running
  }

  @Test func whoJoinsIsThereUntilItLeaves() throws {
    let phone = container.peer("phone")
    #expect(try phone.reachability == .neverJoined)
    #expect(try phone.profile == nil)
    let member = try container.join(as: "phone", info: ["role": "screen"])
    #expect(member.name == "phone")
    #expect(member.isJoined)
    #expect(member.incarnation.rawValue.count == 16)
    #expect(try phone.reachability == .running)
    let profile = try #require(try phone.profile)
    #expect(profile.name == "phone")
    #expect(profile.incarnation == member.incarnation)
    #expect(profile.processID == Processes.current)
    #expect(profile.info == ["role": "screen"])
    #expect(profile.isRunning)
    #expect(profile.isStopped == false)
    member.leave()
    member.leave()
    #expect(!member.isJoined)
    #expect(try phone.reachability == .notRunning)
    #expect(try phone.profile?.isRunning == false)
    #expect(try phone.profile?.isStopped == nil)
  }

  @Test func eachJoiningIsAnIncarnationOfItsOwn() throws {
    let first = try container.withMember(as: "phone") { $0.incarnation }
    let second = try container.join(as: "phone").incarnation
    #expect(first != second)
    #expect(try container.peer("phone").profile?.incarnation == second)
  }

  @Test func aMemberThatNobodyKeepsStaysUntilItLeaves() throws {
    weak var member: Member?
    do {
      let other = try meeting.another()
      member = try other.join(as: "phone")
    }
    #expect(try container.peer("phone").reachability == .running)
    #expect(try failure { _ = try container.join(as: "phone") }.code == .nameTaken)
    member?.leave()
    #expect(member == nil)
    #expect(try container.peer("phone").reachability == .notRunning)
    _ = try container.join(as: "phone")
  }

  @Test func aMemberOfAScopeLeavesHoweverThatEnds() throws {
    let name = try container.withMember(as: "phone", info: ["is": "here"]) { member in
      let info = try container.peer("phone").profile?.info
      #expect(info == ["is": "here"])
      return member.name
    }
    #expect(name == "phone")
    #expect(try container.peer("phone").reachability == .notRunning)
    #expect(throws: Missing.self) { try container.withMember(as: "phone") { _ in throw Missing() } }
    #expect(try container.peer("phone").reachability == .notRunning)
  }

  @Test func theSecondIsToldWhoIsTheFirst() throws {
    let first = try be("phone")
    let running = try failure { _ = try container.join(as: "phone") }
    #expect(running.code == .nameTaken)
    #expect(
      "\(running)" == "cannot join as 'phone': 'TestPeer' (process \(first.child.process), "
        + "running) has the name")
    try first.child.send(.stop)
    try first.waitUntilStopped()
    let stopped = try failure { _ = try container.join(as: "phone") }
    #expect(
      "\(stopped)" == "cannot join as 'phone': 'TestPeer' (process \(first.child.process), "
        + "stopped) has the name; resume the process with 'kill -CONT \(first.child.process)', or "
        + "end the process")
    #expect(try container.peer("phone").profile?.isStopped == true)
    #expect(try container.peer("phone").reachability == .running)
  }

  @Test func afterAKillTheNameIsFreeAtOnce() throws {
    for _ in 0..<10 {
      let first = try be("phone")
      try first.child.send(.kill)
      _ = try first.outcome()
      #expect(try container.peer("phone").reachability == .notRunning)
      try container.join(as: "phone").leave()
    }
  }

  /// A killed process still has its process ID, and appears to run, until its exit is complete.
  @Test func whoHasJustBeenKilledIsNotWaitedForInVain() throws {
    var joins = 0
    for _ in 0..<100 where joins < 20 {
      let first = try be("phone")
      let begun = Instant.now
      try first.child.send(.kill)
      let joined = Result { () throws(WormholeError) in try container.join(as: "phone").leave() }
      // A join waits for the name for a second at most; a killed process needs a processor to end.
      if case .failure = joined, Instant.now - begun > .milliseconds(500) {
        // The next process needs the name.
        _ = try first.outcome()
        continue
      }
      try joined.get()
      joins += 1
    }
    #expect(joins == 20)
  }

  @Test func aZombieHoldsNothing() throws {
    let child = try Child.spawn("true")
    try child.waitUntilEnded()
    let status = try #require(ProcessStatus(of: child.process))
    let holder = LockHolder(
      process: child.process, namespace: ProcessIdentity.current.namespace,
      started: status.started, program: "true")
    #expect(holder.state == .gone)
    _ = try child.wait()
  }

  /// The name of a process that was killed a moment ago may be in this state.
  @Test func aNameThatIsAboutToBeFreeIsHad() throws {
    try container.join(as: "phone").leave()
    let home = try #require(try container.storage.existingMember("phone")).home
    for _ in 0..<20 {
      let file = try home.descriptor.open("presence", [.readWrite])
      #expect(try file.tryPresenceLock())
      let holding = OpenDirectory(file)
      let begun = Instant.now
      let releasing = try Thread("releasing") {
        let _: Void? = Monitor(()).wait(until: .now + .milliseconds(5)) { _ in nil }
        try? holding.descriptor.releasePresenceLock()
      }
      let joined = Result { () throws(WormholeError) in try container.join(as: "phone").leave() }
      releasing.join()
      // A join waits for the name for a second at most; on a busy machine the thread may release it
      // later.
      if case .failure = joined, Instant.now - begun > .milliseconds(500) { continue }
      return try joined.get()
    }
    Issue.record("the machine is too slow")
  }

  @Test func twoOpeningsInOneProcessAreTwo() throws {
    let other = try meeting.another()
    let member = try container.join(as: "phone")
    #expect(try failure { _ = try other.join(as: "phone") }.code == .nameTaken)
    #expect(try failure { _ = try container.join(as: "phone") }.code == .nameTaken)
    let watch = try other.join(as: "watch")
    #expect(try watch.peer("phone").reachability == .running)
    #expect(try member.peer("watch").reachability == .running)
    member.leave()
    _ = try other.join(as: "phone")
  }

  @Test(.notSanitized("many processes at once"))
  func ofTenThatJoinAtOnceExactlyOneDoes() throws {
    let rounds = TestRun.isLong ? 100 : 40
    let peers = try (0..<10).map { _ in
      try Running(.joinInTurns(meeting.path, "phone", processes: 10, rounds: rounds))
    }
    let won = try peers.flatMap { peer in
      let outcome = try peer.outcome(within: .seconds(120))
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
      return outcome.output.split(separator: "\n").compactMap { Int($0) }
    }
    #expect(won.sorted() == Array(1...rounds))
  }

  // MARK: Forks and children

  /// Starts a job that prints the ID of another process, and afterwards that the job stays.
  private func start(
    _ job: PeerJob, saysMore: Bool
  ) throws -> (parent: Running, other: Int32) {
    let parent = try Running(job)
    let number = try eventually("it says a number") {
      try parent.output.split(separator: "\n").dropLast(saysMore ? 1 : 0)
        .compactMap { Int32($0) }.first
    }
    return (parent, number)
  }

  @Test(arguments: [true, false])
  func whatTheMemberHasStartedDoesNotKeepTheName(_ isForked: Bool) throws {
    let (parent, other) = try start(
      isForked ? .beForked(meeting.path, "phone") : .beSpawned(meeting.path, "phone"),
      saysMore: true)
    defer { try? Processes.send(.kill, to: other) }
    #expect(try container.peer("phone").reachability == .running)
    try parent.child.send(.kill)
    _ = try parent.outcome()
    // After the forked child has reached its guard, or the spawned program its start.
    #expect(throws: Never.self) {
      try eventually("the name is free") {
        try container.peer("phone").reachability == .notRunning
      }
    }
    try container.join(as: "phone").leave()
    let state = try Processes.state(other)
    #expect(state != nil && state != "Z", "it lives, and that does not matter")
  }

  /// The forked child of a member that has left keeps neither the name nor the notice from other
  /// processes.
  @Test func aCopyDoesNotKeepWhatItsParentLeft() throws {
    let mayLeave = meeting.folder.path + "/may-leave"
    let (parent, copy) = try start(
      .leaveForked(meeting.path, "phone", once: mayLeave), saysMore: false)
    defer { try? Processes.send(.kill, to: copy) }
    let heard = Heard<Reachability>()
    let watch = try container.peer("phone").watchReachability { heard.add($0) }
    try heard.waitForLast(.running)
    try meeting.folder.write("", to: "may-leave")
    try eventually("it has left") { try parent.output.contains("left\n") }
    try heard.waitForLast(.notRunning)
    try container.join(as: "phone").leave()
    watch.stop()
  }

  /// Descriptors bound the number of names of a process; the error says when descriptors run out.
  @Test func aThousandNamesAreNoBound() throws {
    let script = "ulimit -n $2 && exec \"$0\" \"$1\""
    let job = [PeerJob.program] + PeerJob.joinMany(meeting.path, count: 1100).arguments
    let many = try run("sh", ["-c", script] + job + ["20000"], within: .seconds(120))
    #expect(many.output == "1100\n", "\(many.errors)")
    let few = try run("sh", ["-c", script] + job + ["500"], within: .seconds(120))
    let words = few.output.split(separator: " ", maxSplits: 1).map(String.init)
    #expect(Int(words.first ?? "").map { $0 > 50 && $0 < 500 } == true, "\(few.output)")
    #expect(words.last?.hasPrefix("exhausted; ") == true)
    #expect(words.last?.contains("'ulimit -n'") == true)
  }

  /// No fork happens between opening and guarding the file, or between closing and forgetting the
  /// file, however long these calls take.
  @Test(
    .notSanitized("a copy of a process with threads may hang in its code"),
    arguments: [false, true])
  func copiesMadeInTheMiddleKeepNothing(_ leaves: Bool) throws {
    let mayLeave = meeting.folder.path + "/may-leave"
    let parent = try Running(
      .forkWhileJoining(meeting.path, "phone", leaveOnce: mayLeave),
      environment: [
        "WORMHOLE_FAULTS=open~presence@1+:after:delay=20;close~presence@1+:before:delay=20"
      ])
    try eventually("it has joined") { try parent.output.contains("joined\n") }
    defer {
      for line in ((try? parent.output) ?? "").split(separator: "\n") {
        if let number = Int32(line) { try? Processes.send(.kill, to: number) }
      }
    }
    let heard = Heard<Reachability>()
    let watch = try container.peer("phone").watchReachability { heard.add($0) }
    try heard.waitForLast(.running)
    if leaves {
      try meeting.folder.write("", to: "may-leave")
    } else {
      try parent.child.send(.kill)
    }
    try heard.waitForLast(.notRunning)
    try container.join(as: "phone").leave()
    watch.stop()
  }
}
