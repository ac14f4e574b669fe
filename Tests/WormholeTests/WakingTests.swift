import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Members started on demand, by the processes that need a member: real processes on both sides.
@Suite(.notSanitized("many processes at once"))
struct WakingTests {
  /// A container with a member `watch` that can be started.
  struct Scene {
    let meeting: Meeting
    var file: String { meeting.folder.path + "/started" }

    init(
      _ manner: PeerJob.Awakening = .properly, grace: Duration = .seconds(5), register: Bool = true
    ) throws {
      meeting = try Meeting { $0.wakeGrace = grace }
      try meeting.folder.write("", to: "started")
      guard register else { return }
      try meeting.container.registerLaunch(
        of: "watch", program: PeerJob.program,
        arguments: PeerJob.awaken(file, "watch", manner).arguments,
        environment: ["GREETING": "good day", "WORMHOLE_FAULTS": "", "WORMHOLE_FAULT_TRACE": ""])
    }

    var watch: Peer { meeting.container.peer("watch") }

    /// A line for each started process.
    var started: [String] {
      get throws { try meeting.folder.read("started").split(separator: "\n").map(String.init) }
    }

    func processes() throws -> [Int32] {
      try started.map { Int32($0.prefix { $0.isNumber })! }
    }

    func wakers(_ count: Int, within milliseconds: Int) throws -> [Running] {
      try (0..<count).map { _ in
        try Running(
          .wake(meeting.path, "watch", milliseconds: milliseconds))
      }
    }

    /// Ends the started processes by the removal of their file, and waits for their end.
    func end() throws {
      let processes = try processes()
      try meeting.folder.descriptor.unlink("started")
      for process in processes {
        try eventually("\(process) ends") {
          try Processes.state(process).map { $0 == "Z" } ?? true
        }
      }
    }
  }

  // MARK: Once

  @Test(.blocking) func twentyProcessesStartItOnce() throws {
    let scene = try Scene()
    for waker in try scene.wakers(20, within: 60_000) {
      #expect(try waker.outcome(within: .seconds(90)).output == "awake\n")
    }
    #expect(try scene.started.count == 1)
    #expect(try scene.watch.reachability == .running)
    try scene.end()
  }

  @Test func twentyTasksStartItOnce() async throws {
    let scene = try Scene()
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 0..<20 {
        group.addTask {
          try await scene.watch.wake(within: .seconds(30))
        }
      }
      try await group.waitForAll()
    }
    #expect(try scene.started.count == 1)
    try scene.end()
  }

  @Test(.blocking) func oneThatIsThereIsNotStarted() throws {
    let scene = try Scene()
    let member = try scene.meeting.another().join(as: "watch")
    try scene.watch.wake(within: .zero)
    #expect(try scene.started == [])
    member.leave()
  }

  /// After a successful start, a member that has left again is started without a pause.
  @Test(.blocking) func oneThatHasGoneAgainIsStartedAgain() throws {
    let scene = try Scene(.leaving, grace: .seconds(60))
    for count in 1...3 {
      try scene.watch.wake(within: .seconds(30))
      #expect(try scene.started.count == count)
      try eventually("it has left") { try scene.watch.reachability == .notRunning }
    }
    try scene.end()
  }

  @Test func whoAsksWakesIt() async throws {
    let scene = try Scene(.answering)
    let peer = scene.watch
    #expect(try await peer.request(21, as: Int.self, within: .seconds(300), waking: true) == 42)
    #expect(try await peer.request(4, as: Int.self, waking: true) == 8)
    try await peer.sendImmediately(1, waking: true)
    #expect(try scene.started.count == 1)
    try scene.end()
    let error = await #expect(throws: WormholeError.self) {
      try await peer.request(21, as: Int.self)
    }
    #expect(error?.code == .unreachable)
  }

  // MARK: The started member

  /// The member continues when its waker ends, and holds none of the waker's locks.
  @Test(.blocking) func itOutlivesItsWaker() throws {
    let scene = try Scene()
    let waker = try Running(
      .wake(scene.meeting.path, "watch", milliseconds: 30_000, stays: true))
    try eventually("it is awake") { try waker.output == "awake\n" }
    try waker.child.send(.kill)
    _ = try waker.outcome()
    #expect(try scene.watch.reachability == .running)
    try scene.end()
    #expect(try scene.watch.reachability == .notRunning)
  }

  /// The waker reaps the started process, so no zombie stays in the table of processes.
  @Test(.blocking) func itLeavesNoZombie() throws {
    let scene = try Scene()
    try scene.watch.wake(within: .seconds(30))
    let process = try #require(try scene.processes().first)
    try scene.end()
    try eventually("it is gone") { try Processes.state(process) == nil }
  }

  // MARK: Failures

  @Test(.blocking) func nobodyHasSaidHow() throws {
    let scene = try Scene(register: false)
    for _ in 1...2 {
      let error = try failure { try scene.watch.wake(within: .seconds(30)) }
      #expect(error.code == .notFound)
      #expect(error.reason == "no launch command is registered")
      try scene.meeting.another().join(as: "watch").leave()
    }
  }

  private static let advice = "; check the launch command with 'wormhole wake watch --show'"

  @Test(.blocking) func theProgramIsMissing() throws {
    let scene = try Scene()
    let program = scene.meeting.folder.path + "/program"
    _ = try run("cp", [PeerJob.program, program])
    try scene.meeting.container.registerLaunch(of: "watch", program: program)
    try scene.meeting.folder.descriptor.unlink("program")
    let start = Instant.now
    for waker in try scene.wakers(5, within: 60_000) {
      let reason = "the program '\(program)' could not be started: no such file or directory"
      #expect(
        try waker.outcome().output
          == "unreachable: cannot wake 'watch': \(reason)\(Self.advice)\n")
    }
    // A process that might still join would cost a wait of a minute.
    #expect(Instant.now - start < .seconds(40))
    let error = try failure {
      try scene.meeting.container.registerLaunch(of: "watch", program: program)
    }
    #expect(error.code == .notFound)
  }

  @Test(
    .blocking,
    arguments: [
      (PeerJob.Awakening.crashing, "the program ended with exit code 3"),
      (.dying, "the program was ended by signal 9"),
    ])
  func itCrashesAtOnce(_ manner: PeerJob.Awakening, _ how: String) throws {
    let scene = try Scene(manner)
    let start = Instant.now
    for waker in try scene.wakers(20, within: 60_000) {
      #expect(
        try waker.outcome().output
          == "unreachable: cannot wake 'watch': \(how) before joining as 'watch'\(Self.advice)\n")
    }
    #expect(Instant.now - start < .seconds(40))
    // Callers that had begun already share a start; later callers try once more.
    #expect(try scene.started.count <= 20)
  }

  /// Callers that had begun before the failure do not each try again.
  @Test(.blocking) func aFailureIsForAllWhoAsked() throws {
    let scene = try Scene(.crashing)
    // All calls have begun before any continues.
    let wakings = try (0..<20).map { _ in try WakeCall(scene.watch, .seconds(60)) }
    let codes = Monitor<[WormholeError.Code?]>([])
    let threads = try wakings.map { waking in
      try Thread("waking") {
        let end = Result { () throws(WormholeError) in try waking.run() }
        codes.withLock { codes in
          if case .failure(let error) = end { codes.append(error.code) } else { codes.append(nil) }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(codes.withLock { $0 } == Array(repeating: .unreachable, count: 20))
    #expect(try scene.started.count == 1)
    // A call after the failure makes one more try.
    #expect(try failure { try scene.watch.wake(within: .seconds(60)) }.code == .unreachable)
    #expect(try scene.started.count == 2)
  }

  @Test(.blocking) func eachFailedStartInARowIsCounted() throws {
    let scene = try Scene(.crashing)
    let slot = try WakeRecord.slot(of: "watch", in: scene.meeting.container.storage)
    for failed in 0..<3 {
      #expect(try failure { try scene.watch.wake(within: .seconds(60)) }.code == .unreachable)
      #expect(try WakeRecord(slot.read())?.failed == failed)
    }
    let error = try failure { try scene.watch.wake(within: .zero) }
    #expect(error.reason.contains("started 3 times in a row without success"), "\(error)")
  }

  @Test(.blocking) func itNeverJoins() throws {
    let scene = try Scene(.neverJoining, grace: .seconds(1))
    let start = Instant.now
    let error = try failure { try scene.watch.wake(within: .milliseconds(2500)) }
    #expect(error.code == .timedOut)
    #expect(Instant.now - start >= .milliseconds(2500))
    try eventually("it has begun") { try scene.started.count == 1 }
    let process = try scene.processes()[0]
    #expect(
      error.reason == "'\(PeerJob.program)' (process \(process)) was started, "
        + "and no process has joined within 2.5 seconds")
    // The first process still lives, so no second process is started.
    #expect(try failure { try scene.watch.wake(within: .milliseconds(300)) }.code == .timedOut)
    #expect(try scene.started.count == 1)
    // Its end is known at once.
    let waker = try scene.wakers(1, within: 60_000)[0]
    try eventually("the waker is told") {
      // Also the processes that the waker starts if it has begun later.
      for process in try scene.processes() { try? Processes.send(.kill, to: process) }
      return waker.hasEnded
    }
    #expect(try waker.outcome().output.contains("the program was ended by signal 9 before joining"))
  }

  @Test func aCancelledTaskWaitsNoLonger() async throws {
    let scene = try Scene(.neverJoining)
    let waking = Task {
      try await scene.watch.wake(within: .seconds(300))
    }
    try await eventuallyAsync("it is started") { try scene.started.count == 1 }
    waking.cancel()
    let error = await #expect(throws: WormholeError.self) { try await waking.value }
    #expect(error?.code == .cancelled)
    try scene.end()
  }

  /// The member was awake when it was checked, and was killed directly afterwards.
  @Test(.blocking) func oneThatHasJustBeenKilledIsStartedAgain() throws {
    let scene = try Scene(.answering)
    for round in 1...15 {
      let answer = try scene.watch.request(
        round, as: Int.self, within: .seconds(60), waking: true)
      #expect(answer == 2 * round)
      #expect(try scene.started.count == round)
      try Processes.send(.kill, to: scene.processes().last!)
    }
  }

  @Test(.blocking) func whatCrashesIsNotStartedWithoutEnd() throws {
    let scene = try Scene(.crashing)
    let begin = Instant.now
    // A busy machine may take longer for the first two starts.
    while try Instant.now - begin < .milliseconds(1200) || scene.started.count < 2,
      Instant.now - begin < patience
    {
      let error = try failure { try scene.watch.wake(within: .milliseconds(300)) }
      #expect([.unreachable, .timedOut].contains(error.code))
    }
    // After 0, 100, 300, 700 and 1500 ms, and so on, and the last may be late.
    let passed = Instant.now - begin
    let most = 2 + (0..<20).count { passed > .milliseconds(100 * ((2 << $0) - 1)) }
    #expect(try (2...max(5, most)).contains(scene.started.count))
    let words = "times in a row without success; the last time, the program ended with exit code 3"
    // A busy machine may not have ended the program that was started last.
    var error = try failure { try scene.watch.wake(within: .zero) }
    while !error.reason.contains(words), Instant.now - begin < patience {
      error = try failure { try scene.watch.wake(within: .milliseconds(100)) }
    }
    #expect(error.reason.contains(words))
  }

  // MARK: The waker is killed or suspended

  @Test(
    .blocking, arguments: ["spawn:before:kill", "spawn:before:stop", "spawn:before:fail=EAGAIN"])
  func whoeverStartsItIsDisturbed(_ rule: String) throws {
    let scene = try Scene(grace: .seconds(2))
    let first = try Running(
      .wake(scene.meeting.path, "watch", milliseconds: 60000),
      environment: ["WORMHOLE_FAULTS=\(rule)"])
    try eventually("it is disturbed") {
      try first.hasEnded || Processes.isStopped(first.child.process)
    }
    let others = try scene.wakers(3, within: 60_000)
    for other in others { #expect(try other.outcome().output == "awake\n") }
    #expect(try scene.started.count == 1)
    if rule.hasSuffix("stop") {
      try first.child.send(.go)
      #expect(try first.outcome().output == "awake\n")
    }
    if rule.hasSuffix("EAGAIN") {
      #expect(try first.outcome().output.hasPrefix("unreachable: "))
    }
    // If a waker was suspended right before the start, its process finds the name taken.
    try eventually("one is left") {
      try scene.processes().filter { try Processes.state($0) ?? "Z" != "Z" }.count == 1
    }
    try scene.end()
  }

  // MARK: Permission to name the program

  private func start(of scene: Scene) -> String {
    scene.meeting.path + "/members/watch/start.plist"
  }

  @Test(.blocking) func theFileIsForItsOwnerAlone() throws {
    let meeting = try Meeting()
    try meeting.container.registerLaunch(
      of: "watch", program: "sh", arguments: ["-c", "exit"], environment: ["A": "b"],
      directory: "/")
    let path = meeting.path + "/members/watch/start.plist"
    let status = try Descriptor.open(path: path, [.readOnly]).status()
    #expect(status.mode == 0o600)
    let start = try #require(try meeting.container.launchCommand(of: "watch"))
    #expect(start.program.hasPrefix("/") && start.program.hasSuffix("/sh"))
    #expect(start.arguments == ["-c", "exit"])
    #expect(start.environment == ["A": "b"])
    #expect(start.directory == "/")
    #expect(try meeting.container.removeLaunch(of: "watch"))
    #expect(try !meeting.container.removeLaunch(of: "watch"))
    #expect(try meeting.container.launchCommand(of: "watch") == nil)
    #expect(try meeting.container.peer("watch").reachability == .neverJoined)
  }

  @Test(.blocking) func aMemberRegistersItsOwnLaunch() throws {
    let meeting = try Meeting()
    try meeting.container.join(as: "watch").registerLaunch(
      program: "sh", arguments: ["-c", "exit"], environment: ["A": "b"], directory: "/")
    let start = try #require(try meeting.container.launchCommand(of: "watch"))
    #expect(start.program.hasSuffix("/sh") && start.arguments == ["-c", "exit"])
    #expect(start.environment == ["A": "b"] && start.directory == "/")
  }

  /// The record of the start has a name of its own, which the caller does not know.
  @Test(.blocking, arguments: [Call.rename, .open])
  func anErrorOfTheStartNamesTheMember(_ call: Call) throws {
    let scene = try Scene()
    let rule = FaultRule(call, path: "wake.watch", persistent: true, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      let error = try failure { try scene.watch.wake(within: .seconds(30)) }
      #expect(error.operation == "wake" && error.subject == "watch", "\(error)")
    }
    try scene.end()
  }

  @Test(.blocking) func oneThatOthersMayWriteToIsRefused() throws {
    let scene = try Scene()
    for mode: FileMode in [0o620, 0o602, 0o666] {
      try Descriptor.open(path: start(of: scene), [.readOnly]).setMode(mode)
      let error = try failure { try scene.watch.wake(within: .seconds(30)) }
      #expect(error.code == .refused)
      #expect(error.reason.hasPrefix("unauthorized users may write to its start.plist"))
      #expect(
        try failure { _ = try scene.meeting.container.launchCommand(of: "watch") }.code == .refused)
    }
    try Descriptor.open(path: start(of: scene), [.readOnly]).setMode(0o600)
    let home = try Descriptor.open(path: scene.meeting.path + "/members/watch", [.readOnly])
    try home.setMode(0o720)
    #expect(try failure { try scene.watch.wake(within: .seconds(30)) }.code == .refused)
    try home.setMode(0o700)
    #expect(try scene.started == [])
  }

  @Test(.blocking) func oneOfAnotherOwnerIsRefused() throws {
    guard Processes.effectiveUser == 0 else {
      skip("a start.plist of another user", because: "only root can make one")
      return
    }
    let meeting = try Meeting()
    try meeting.container.registerLaunch(of: "watch", program: "true")
    let path = meeting.path + "/members/watch/start.plist"
    #expect(try run("chown", ["12345", path]).status == .exited(0))
    let error = try failure { try meeting.container.peer("watch").wake(within: .seconds(30)) }
    #expect(error.code == .refused)
    #expect(error.reason == "its start.plist belongs to user 12345")
  }

  @Test(.blocking) func oneOfAnotherMemberOrFormIsRefused() throws {
    let scene = try Scene()
    let members = try Descriptor.open(path: scene.meeting.path + "/members", [.readOnly])
    try scene.meeting.container.registerLaunch(of: "phone", program: "true")
    let phone = try members.open("phone", [.readOnly, .directory])
    let watch = try members.open("watch", [.readOnly, .directory])
    try phone.rename("start.plist", to: watch, "start.plist")
    #expect(try failure { try scene.watch.wake(within: .seconds(30)) }.code == .damaged)
    for words in ["", "bplist00junk", "words"] {
      try watch.open("start.plist", [.writeOnly, .truncate]).write(words)
      #expect(try failure { try scene.watch.wake(within: .seconds(30)) }.code == .damaged)
    }
    try watch.unlink("start.plist")
    try watch.makeSymbolicLink("start.plist", to: "/dev/null")
    #expect(try failure { try scene.watch.wake(within: .seconds(30)) }.code == .refused)
    try scene.meeting.container.registerLaunch(of: "watch", program: "true")
    #expect(try scene.meeting.container.launchCommand(of: "watch") != nil)
    #expect(try scene.started == [])
  }

  @Test(.blocking) func whatCannotBeRunIsNotRegistered() throws {
    let container = try Meeting().container
    #expect(throws: WormholeError.self) {
      try container.registerLaunch(of: "a", program: "/dev/null")
    }
    #expect(throws: WormholeError.self) { try container.registerLaunch(of: "", program: "true") }
    for variable in ["", "A=B", "A\0"] {
      let error = try failure {
        try container.registerLaunch(of: "a", program: "true", environment: [variable: "b"])
      }
      #expect(error.code == .invalidValue)
    }
    #expect(
      try failure { try container.registerLaunch(of: "a", program: "true", directory: "here") }.code
        == .invalidValue)
    #expect(try container.launchCommand(of: "a") == nil)
  }
}
