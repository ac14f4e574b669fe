import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// The programs that a wake starts: their environment, and the record of the start.
@Suite(.blocking) struct AwakenedTests {
  private let meeting: Meeting
  private var watch: Peer { meeting.container.peer("watch") }

  init() throws {
    meeting = try Meeting { $0.wakeGrace = .seconds(1) }
    try meeting.folder.write("", to: "started")
  }

  private func register(
    _ manner: PeerJob.Awakening = .properly, environment: [String: String] = [:],
    directory: String? = nil
  ) throws {
    var settings = ["WORMHOLE_FAULTS": "", "WORMHOLE_FAULT_TRACE": ""]
    settings.merge(environment) { $1 }
    try meeting.container.registerLaunch(
      of: "watch", program: PeerJob.program,
      arguments: PeerJob.awaken(meeting.folder.path + "/started", "watch", manner).arguments,
      environment: settings, directory: directory)
  }

  private func started() throws -> [Int32] {
    try meeting.folder.read("started").split(separator: "\n").map { line in
      try #require(Int32(line.prefix { $0.isNumber }))
    }
  }

  /// Lets the started programs end, and waits until the starting process has reaped them.
  private func end() throws {
    let processes = try started()
    try meeting.folder.descriptor.unlink("started")
    for process in processes {
      try eventually("\(process) is gone") { try Processes.state(process) == nil }
    }
  }

  // MARK: Environment

  /// The woken program uses the waking process's container, whatever the environment contains.
  @Test func aWokenProgramGetsItsContainerAndNoGroup() throws {
    try register(
      environment: ["GREETING": "good day", "WORMHOLE_CONTAINER": "/elsewhere"],
      directory: meeting.folder.path)
    let waker = try Running(
      .wake(meeting.path, "watch", milliseconds: 30_000),
      environment: ["WORMHOLE_GROUP=group.test", "WORMHOLE_CONTAINER=/anywhere", "MOOD=fine"])
    #expect(try waker.outcome().output == "awake\n")
    let process = try #require(try started().first)
    let bytes = try Descriptor.open(path: "/proc/\(process)/environ", [.readOnly]).contents()
    let settings = bytes.split(separator: 0).map { String(decoding: $0, as: UTF8.self) }
    #expect(
      settings.filter { $0.hasPrefix("WORMHOLE_CONTAINER=") }
        == ["WORMHOLE_CONTAINER=\(meeting.path)"])
    #expect(!settings.contains { $0.hasPrefix("WORMHOLE_GROUP=") })
    #expect(settings.contains("GREETING=good day"))
    #expect(settings.contains("MOOD=fine"))
    let proc = try Descriptor.open(path: "/proc/\(process)", [.readOnly, .directory])
    #expect(try proc.readSymbolicLink("cwd") == Array(meeting.folder.path.utf8))
    try meeting.folder.descriptor.unlink("started")
    try eventually("it has left") { try watch.reachability == .notRunning }
  }

  // MARK: Record

  @Test func theExitOfAJoinedProgramIsNoFailure() throws {
    try register()
    try watch.wake(within: .seconds(30))
    let slot = try WakeRecord.slot(of: "watch", in: meeting.container.storage)
    try end()
    // A failure would be recorded immediately.
    #expect(throws: TooLate.self) {
      try eventually("a failure is noted", within: .milliseconds(300)) {
        try WakeRecord(slot.read())?.failure != nil
      }
    }
    #expect(try WakeRecord(slot.read()) != nil)
  }

  /// A waking process is suspended between its record and the start.
  ///
  /// Another process starts the program after the grace time. The suspended process starts no
  /// second program when it resumes.
  @Test func aProcessSuspendedBeforeTheStartStartsNothingLater() throws {
    try register()
    let first = try Running(
      .wake(meeting.path, "watch", milliseconds: 60_000),
      environment: ["WORMHOLE_FAULTS=rename~wake.watch/value.plist:after:stop"])
    try first.waitUntilStopped()
    let other = try run(.wake(meeting.path, "watch", milliseconds: 60_000))
    #expect(other.output == "awake\n")
    #expect(try started().count == 1)
    try first.child.send(.go)
    #expect(try first.outcome().output == "awake\n")
    // A second program would report its start immediately.
    #expect(throws: TooLate.self) {
      try eventually("another is started", within: .milliseconds(500)) { try started().count > 1 }
    }
    try meeting.folder.descriptor.unlink("started")
    try eventually("it has left") { try watch.reachability == .notRunning }
  }

  // MARK: Requests

  /// The member ran at the time of the check, and died before it read the request.
  @Test func aRequestThatADeadMemberDidNotReadWakesTheNext() throws {
    try register(.answering)
    let dying = try Running(.respond(meeting.path, "watch"))
    let incarnation = try eventually("it has joined") {
      try dying.output.split(separator: "\n").first.map(String.init)
    }
    try dying.child.send(.stop)
    try dying.waitUntilStopped()
    let watch = watch
    let end = Monitor<Result<Int, any Error>?>(nil)
    let asking = try Thread("asking") {
      let result = Result {
        try watch.request(21, as: Int.self, within: .seconds(60), waking: true)
      }
      end.withLock { $0 = result }
    }
    try eventually("the question lies there") {
      try !meeting.names("members/watch/live/\(incarnation)").isEmpty
    }
    try dying.child.send(.kill)
    asking.join()
    #expect(try end.withLock { $0 }?.get() == 42)
    #expect(try started().count == 1)
    try self.end()
  }
}
