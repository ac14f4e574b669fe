import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Watching the reachability of members.
@Suite struct ReachabilityTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  /// Starts a peer that joins and stays.
  private func be(_ name: String) throws -> Running {
    let running = try Running(.be(meeting.path, name))
    try eventually("'\(name)' has joined") { try running.output.contains("\n") }
    return running
  }

  private func watch(
    _ name: String, _ heard: Heard<Reachability>
  ) throws -> Subscription {
    try container.peer(name).watchReachability { heard.add($0) }
  }

  @Test(.blocking) func eachRealChangeIsHeardOnce() throws {
    let heard = Heard<Reachability>()
    let watch = try watch("phone", heard)
    try heard.waitForLast(.neverJoined)
    let other = try meeting.another()
    for _ in 0..<3 {
      let member = try other.join(as: "phone")
      try heard.waitForLast(.running)
      // No change of reachability.
      try member.update(info: ["a": "b"])
      #expect(throws: WormholeError.self) { try other.join(as: "phone") }
      member.leave()
      try heard.waitForLast(.notRunning)
    }
    watch.stop()
    _ = try other.join(as: "phone")
    #expect(heard.all.count == 7)
    #expect(heard.all.first == .neverJoined)
  }

  /// A watch makes no directory, and is notified when the directory is made.
  @Test(.blocking) func aMemberThatJoinsForTheFirstTimeIsHeard() throws {
    let heard = Heard<Reachability>()
    let watch = try watch("ä/b .c", heard)
    try heard.waitForLast(.neverJoined)
    let members = try container.storage.root.descriptor.open("members", [.readOnly, .directory])
    #expect(try members.names() == [])
    let member = try be("ä/b .c")
    try heard.waitForLast(.running)
    #expect(try members.names() == ["%C3%A4%2Fb%20.c"])
    try member.child.send(.kill)
    try heard.waitForLast(.notRunning)
    #expect(heard.all == [.neverJoined, .running, .notRunning])
    watch.stop()
  }

  /// A sender may have made the directory, without a member that has joined.
  @Test(.blocking) func aDirectoryIsNoMember() throws {
    let heard = Heard<Reachability>()
    let watch = try watch("phone", heard)
    try heard.waitForLast(.neverJoined)
    _ = try container.storage.member("phone")
    #expect(try container.peer("phone").reachability == .neverJoined)
    #expect(try container.members() == [])
    let member = try container.join(as: "phone")
    try heard.waitForLast(.running)
    #expect(heard.all == [.neverJoined, .running])
    member.leave()
    watch.stop()
  }

  @Test(.blocking) func aKillIsHeardWithinMilliseconds() throws {
    let heard = Heard<(Reachability, Instant)>()
    let watch = try container.peer("phone").watchReachability { heard.add(($0, .now)) }
    var delays: [Duration] = []
    for _ in 0..<50 {
      let member = try be("phone")
      try heard.wait("it is there") { $0.last?.0 == .running }
      let (killed, bystander) = (Instant.now, try Bystander())
      try member.child.send(.kill)
      try heard.wait("it is gone") { $0.last?.0 == .notRunning }
      delays.append(heard.all.last!.1 - killed - bystander.allowance())
    }
    watch.stop()
    delays.sort()
    #expect(delays[25] < .milliseconds(100), "\(delays)")
    #expect(delays[49] < .seconds(2), "\(delays)")
  }

  /// The kernel reports a closed file before it releases the lock.
  ///
  /// Here the release takes longer, and no second notice arrives.
  @Test(.blocking) func aPresenceThatEndsAfterTheWordOfItIsSeenToEnd() throws {
    try container.join(as: "phone").leave()
    let home = try #require(try container.storage.existingMember("phone")).home
    let holding = try home.descriptor.open("presence", [.readWrite])
    #expect(try holding.tryPresenceLock())
    let heard = Heard<Reachability>()
    let watch = try watch("phone", heard)
    try heard.waitForLast(.running)
    for _ in 0..<100 {
      let (begun, before) = (Instant.now, watch.wakeUps)
      try home.descriptor.open("presence", [.readWrite]).close()
      try eventually("the word has come") { watch.wakeUps > before }
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(20)) { _ in nil }
      // The watch checks again for a second; on a busy machine this time may be over.
      if Instant.now - begun < .milliseconds(400) { break }
    }
    try holding.releasePresenceLock()
    #expect(throws: Never.self) { try heard.waitForLast(.notRunning) }
    watch.stop()
  }

  @Test(.blocking) func theSecondLooksEnd() throws {
    var rescans = Watcher.shared.rescanCount
    let member = try be("phone")
    let heard = Heard<Reachability>()
    let watch = try watch("phone", heard)
    try heard.waitForLast(.running)
    let home = try #require(try container.storage.existingMember("phone")).home
    try untilNobodyRescans(&rescans) {
      let before = watch.wakeUps
      try home.descriptor.open("presence", [.readWrite]).close()
      // The notice of the close, and nine checks.
      try eventually("it has looked") { watch.wakeUps >= before + 10 }
      // As long as the last pause, and more.
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(700)) { _ in nil }
      return { #expect(watch.wakeUps == before + 10) }
    }
    try member.child.send(.kill)
    try heard.waitForLast(.notRunning)
    #expect(heard.all == [.running, .notRunning])
    watch.stop()
  }

  /// Repeats the body until the kernel has dropped no notices, neither in this round nor in the
  /// round before: another test may make it drop notices, and then all watches rescan.
  ///
  /// - Parameter body: returns the check for such a round.
  private func untilNobodyRescans(
    _ rescans: inout Int, _ body: () throws -> () -> Void
  ) throws {
    let deadline = Instant.now + patience
    while true {
      let start = Watcher.shared.rescanCount
      let check = try body()
      if Watcher.shared.rescanCount == rescans { return check() }
      try #require(.now < deadline, "all are told to look again all the time")
      rescans = start
    }
  }

  @Test(.blocking) func aHundredWatchersDoNotWakeEachOther() throws {
    var rescans = Watcher.shared.rescanCount
    let member = try be("phone")
    let heard = (0..<100).map { _ in Heard<Reachability>() }
    let watches = try heard.map { try watch("phone", $0) }
    for heard in heard { try heard.waitForLast(.running) }
    let first = watches.map(\.wakeUps)
    if Watcher.shared.rescanCount == rescans { #expect(first == Array(repeating: 1, count: 100)) }
    try untilNobodyRescans(&rescans) {
      let before = watches.map(\.wakeUps)
      for _ in 0..<10 {
        let outcome = try run(.ask(meeting.path, "phone"))
        #expect(outcome.output == "running\n")
      }
      // Refused without a notice to watchers.
      #expect(throws: WormholeError.self) { try container.join(as: "phone") }
      // Mutual wake-ups of the watches, if any, have arrived before this.
      try container.join(as: "watch").leave()
      let other = Heard<Reachability>()
      let last = try watch("watch", other)
      try other.waitForLast(.notRunning)
      last.stop()
      let after = watches.map(\.wakeUps)
      return { #expect(after == before) }
    }
    try member.child.send(.kill)
    for heard in heard { try heard.waitForLast(.notRunning) }
    for watch in watches { watch.stop() }
  }

  /// Suspended at each of its calls while it asks: the name belongs only to its holder.
  @Test(.blocking) func aStoppedProberDisturbsNobody() throws {
    let trace = meeting.folder.path + "/trace"
    try container.join(as: "phone").leave()
    _ = try run(
      .ask(meeting.path, "phone"), environment: ["WORMHOLE_FAULT_TRACE=\(trace)"])
    let calls = try meeting.folder.read("trace").split(separator: "\n").count
    #expect(calls > 10)
    let heard = Heard<Reachability>()
    let watch = try watch("phone", heard)
    for number in 1...calls {
      let prober = try Running(
        .ask(meeting.path, "phone"),
        environment: ["WORMHOLE_FAULTS=any@\(number):before:stop"])
      try eventually("it stops or ends") {
        try prober.hasEnded || Processes.isStopped(prober.child.process)
      }
      let member = try container.join(as: "phone")
      try heard.waitForLast(.running)
      member.leave()
      try heard.waitForLast(.notRunning)
      #expect(try container.peer("phone").reachability == .notRunning, "call \(number)")
      if !prober.hasEnded { try prober.child.send(.go) }
      #expect(try prober.outcome().output == "notRunning\n", "call \(number)")
    }
    watch.stop()
  }

  /// Without a free inotify instance, the watcher polls, and reports the polling once.
  @Test(.blocking) func whereTheKernelDoesNotTellItLooksByItself() throws {
    let listener = try Running(
      .watchMember(meeting.path, "phone"),
      environment: ["WORMHOLE_FAULTS=inotifyInit@1+:before:fail=EMFILE"])
    func hears(_ words: String) throws {
      try eventually(words) {
        try listener.output.split(separator: "\n").joined(separator: " ") == words
      }
    }
    try hears("neverJoined")
    let first = try be("phone")
    try hears("neverJoined running")
    try first.child.send(.kill)
    try hears("neverJoined running notRunning")
    #expect(try run("rm", ["-r", meeting.path + "/members/phone"]).status == .exited(0))
    try hears("neverJoined running notRunning neverJoined")
    let second = try be("phone")
    try hears("neverJoined running notRunning neverJoined running")
    try listener.child.send(.kill)
    let warnings = try listener.outcome().errors.split(separator: "\n")
    #expect(warnings.allSatisfy { $0.contains("inotify failed: EMFILE") || $0.contains("many") })
    #expect(warnings.count == 1, "\(warnings)")
    try second.child.send(.kill)
  }

  // MARK: All members

  @Test(.blocking) func membersAreListedByName() throws {
    #expect(try container.members() == [])
    let (watch, phone) = (try container.join(as: "watch"), try container.join(as: "phone"))
    try container.join(as: "ä/b").leave()
    _ = try container.storage.member("mailbox")
    let members = try container.members()
    #expect(members.map(\.name) == ["phone", "watch", "ä/b"])
    #expect(members.map(\.isRunning) == [true, true, false])
    watch.leave()
    phone.leave()
    #expect(try container.members().map(\.isRunning) == [false, false, false])
  }

  @Test(.blocking) func changesOfMembersAreHeard() throws {
    let phone = try container.join(as: "phone")
    let heard = Heard<Profile>()
    let watching = try container.watchMembers { heard.add($0) }
    try heard.wait("phone is there") { $0.last?.name == "phone" && $0.last!.isRunning }
    let watch = try be("watch")
    try heard.wait("watch comes") { $0.last?.name == "watch" && $0.last!.isRunning }
    try phone.update(info: ["battery": "low"])
    try heard.wait("phone tells") { $0.last?.info == ["battery": "low"] }
    try watch.child.send(.kill)
    try heard.wait("watch dies") { $0.last?.name == "watch" && !$0.last!.isRunning }
    phone.leave()
    try heard.wait("phone leaves") { $0.last?.name == "phone" && !$0.last!.isRunning }
    #expect(try run("rm", ["-r", meeting.path + "/members/phone"]).status == .exited(0))
    try heard.wait("it is gone") { $0.last?.reachability == .neverJoined }
    let again = try container.join(as: "phone")
    try heard.wait("it is back") { $0.last?.isRunning == true }
    #expect(heard.all.last?.incarnation == again.incarnation)
    watching.stop()
    again.leave()
  }

  @Test func theSequencesTellTheSame() async throws {
    let phone = container.peer("phone").reachabilities
    var reachabilities = phone.makeAsyncIterator()
    #expect(try await reachabilities.next() == .neverJoined)
    var changes = container.memberChanges.makeAsyncIterator()
    let member = try await container.join(as: "phone")
    #expect(try await reachabilities.next() == .running)
    var change = try await changes.next()
    while change?.isRunning != true { change = try await changes.next() }
    #expect(change?.incarnation == member.incarnation)
    await member.leave()
    #expect(try await reachabilities.next() == .notRunning)
    #expect(try await changes.next()?.isRunning == false)
  }
}
