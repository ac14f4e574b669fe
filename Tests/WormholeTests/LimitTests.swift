import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Calls that wait, in a process that may have few descriptors or threads: each returns or throws
/// in time, and the process continues.
@Suite(.blocking) struct LimitTests {
  private static let descriptors =
    TestRun.isLong ? Array(3...40) : [3, 5, 7, 9, 11, 13, 16, 20, 40]
  private static let threads = TestRun.isLong ? Array(1...40) : [1, 2, 3, 4, 5, 6, 8, 12, 40]
  /// Descriptors or threads in addition to those of the process after joining.
  private static let more = TestRun.isLong ? Array(0...20) : [0, 1, 2, 3, 4, 6, 8]

  @Test(arguments: descriptors) func callsReturnWithFewDescriptors(_ limit: Int) throws {
    try call(.descriptors(limit), isReady: false, in: Scene())
  }

  @Test(arguments: more) func callsReturnWhenDescriptorsRunOut(_ limit: Int) throws {
    try call(.descriptors(limit), isReady: true, in: Scene())
  }

  /// Also in a program whose tasks have not run yet: Dispatch takes descriptors for the first task.
  @Test(arguments: descriptors) func callsOfTasksReturnWithFewDescriptors(_ limit: Int) throws {
    let scene = try Scene()
    try check(.awaitLimited(scene.container, descriptors: limit, isReady: false), in: scene)
  }

  @Test(arguments: more) func callsOfTasksReturnWhenDescriptorsRunOut(_ limit: Int) throws {
    let scene = try Scene()
    try check(.awaitLimited(scene.container, descriptors: limit, isReady: true), in: scene)
  }

  /// The limit of threads is the user's, and does not bind root.
  @Test(arguments: threads) func callsReturnWithFewThreads(_ limit: Int) throws {
    guard let scene = try Scene(user: 64_300 + UInt32(limit)) else { return }
    try call(.threads(limit), isReady: false, in: scene)
  }

  @Test(arguments: more) func callsReturnWhenThreadsRunOut(_ limit: Int) throws {
    guard let scene = try Scene(user: 64_400 + UInt32(limit)) else { return }
    try call(.threads(limit), isReady: true, in: scene)
  }

  /// Dispatch would end the process if the first thread of a queue got no descriptors.
  @Test func callsOnAQueueAreRefusedWithoutDescriptorsForItsThreads() throws {
    let folder = try TemporaryDirectory()
    let outcome = try run(.listenOnQueue(folder.path + "/c"))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(
      outcome.output == "receive exhausted\ncontexts exhausted\noutcomes exhausted\n")
  }

  /// Replies and requests reach queues by calls that cannot throw.
  @Test func callsOnAQueueAreMadeWithoutDescriptorsForItsThreads() throws {
    let outcome = try run(.callOnQueue)
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output == "[1, 2, 3]\n")
  }

  /// The waiting thread checks the clock itself, and needs no further thread.
  @Test func aRequestEndsInTimeThoughAllThreadsAreBusy() throws {
    let scene = try Scene()
    let bound = Duration.milliseconds(3000)
    let time = try Bystander.leastOfThree(within: bound) {
      let outcome = try scene.run(.requestWhileBusy(scene.container, of: "never"))
      let words = outcome.output.split(whereSeparator: \.isWhitespace)
      try #require(words.count == 3, "\(outcome.output)\(outcome.errors)")
      #expect(words[..<2] == ["busy", "timedOut"])
      let milliseconds = try #require(Int(words[2]))
      return .milliseconds(milliseconds)
    }
    #expect(time < bound)
  }

  private func call(_ limit: PeerJob.Limit, isReady: Bool, in scene: Scene) throws {
    try check(.callLimited(scene.container, limit, isReady: isReady), in: scene)
  }

  /// A call without a limit takes long each time; a busy machine delays a call now and then.
  private func check(_ job: PeerJob, in scene: Scene) throws {
    // The call's own wait, and a busy machine's possible delay.
    let bound = Duration.milliseconds(200 + 3000)
    let time = try Bystander.leastOfThree(within: bound) { try longestCall(of: job, in: scene) }
    #expect(time < bound)
  }

  /// The duration of the longest call that a job makes.
  private func longestCall(of job: PeerJob, in scene: Scene) throws -> Duration {
    let outcome = try scene.run(job)
    if outcome.status == .exited(77) {
      skip("calls with few threads", because: "there is no other user to become")
      return .zero
    }
    #expect(outcome.status == .exited(0), "\(outcome.output)\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.last == "done", "\(outcome.output)")
    var longest = 0
    for line in lines.dropLast() {
      let words = line.split(separator: " ")
      let time = try #require(words.compactMap { Int($0) }.last)
      longest = max(longest, time)
      #expect(words.count > 2, "\(line)")
    }
    return .milliseconds(longest)
  }
}

/// A directory, a user, and two responders.
private struct Scene {
  private let folder: TemporaryDirectory
  private let user: UInt32?
  private let others: [Running]
  var container: String { folder.path + "/c" }

  /// As the user of the tests, with a responder that replies and a responder that does not.
  init() throws {
    (folder, user) = (try TemporaryDirectory(), nil)
    let names: [(String, PeerJob.Responding)] = [("echo", .quietly), ("never", .never)]
    let path = folder.path + "/c"
    others = try names.map { try Running(.respond(path, $0, $1)) }
    for other in others {
      try eventually("it has joined") { try !other.output.isEmpty }
    }
  }

  /// As a user without further processes; nil if the test cannot become another user.
  init?(user: UInt32) throws {
    guard Processes.effectiveUser == 0 else {
      skip("calls with few threads", because: "only root can become another user")
      return nil
    }
    (folder, self.user, others) = (try TemporaryDirectory(), user, [])
    for words in [["chown", "\(user)", folder.path], ["chmod", "755", folder.path]] {
      #expect(try TestSupport.run(words[0], Array(words.dropFirst())).status == .exited(0))
    }
  }

  func run(_ job: PeerJob) throws -> ProcessOutcome {
    let job = user.map { PeerJob.as(user: $0, group: $0, job) } ?? job
    return try TestSupport.run(job, environment: ["WORMHOLE_ROOT=\(folder.path)"])
  }
}
