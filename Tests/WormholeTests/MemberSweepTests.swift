import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Joining and leaving, killed, suspended and failed at each of their system calls.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.blocking, .notSanitized("a process for each system call"))
struct MemberSweepTests {
  private let seed = TestRun.seed

  enum Beginning: String, CaseIterable, Sendable {
    /// No process has ever joined under the name.
    case first
    /// A process has joined and left.
    case again
  }

  /// One run in a container of its own.
  private struct Run {
    let meeting: Meeting
    let running: Running

    init(_ beginning: Beginning, _ environment: String) throws {
      meeting = try Meeting()
      if beginning == .again { try meeting.container.join(as: "phone").leave() }
      running = try Running(
        .join(meeting.path, "phone"), environment: [environment])
    }

    /// Waits until the process is suspended or has ended.
    func settle() throws {
      try eventually("it stops or ends") {
        try running.hasEnded || Processes.isStopped(running.child.process)
      }
    }
  }

  private func countCalls(_ beginning: Beginning) throws -> Int {
    let folder = try TemporaryDirectory()
    let run = try Run(beginning, "WORMHOLE_FAULT_TRACE=\(folder.path)/trace")
    #expect(try run.running.outcome().output == "joined\nleft\n")
    return try folder.read("trace").split(separator: "\n").count
  }

  /// The name is free, a member can join and be seen, and nothing is left over.
  private func check(_ run: Run, _ place: Comment) throws {
    let shared = run.meeting.container
    let reachability = try shared.peer("phone").reachability
    #expect(reachability != .running, place)
    let member = try shared.join(as: "phone")
    #expect(try shared.peer("phone").reachability == .running, place)
    #expect(try shared.peer("phone").profile?.incarnation == member.incarnation, place)
    member.leave()
    #expect(try shared.peer("phone").reachability == .notRunning, place)
    let container = try run.meeting.another().storage
    let home = try container.root.descriptor.open("members/phone", [.readOnly, .directory])
    let parts = MemberDirectory.Part.parts(in: .members).filter { $0 != .later }.map(\.rawValue)
    let names = parts + ["presence", "profile.plist"]
    #expect(try home.names().sorted() == names.sorted(), place)
    let staging = try container.root.descriptor.open("staging", [.readOnly, .directory])
    #expect(try staging.names() == [], place)
  }

  @Test(arguments: Beginning.allCases)
  func killed(_ beginning: Beginning) throws {
    let count = try countCalls(beginning)
    #expect(count > 30)
    for number in try calls(beginning) {
      let run = try Run(beginning, "WORMHOLE_FAULTS=any@\(number):before:kill")
      let status = try run.running.outcome().status
      // The watcher's thread makes calls of its own, so the last points may not be reached.
      if status == .exited(0), number * 10 > count * 8 { continue }
      #expect(status == .signalled(9), "\(beginning) before call \(number) seed \(seed)")
      try check(run, "\(beginning) before call \(number)")
    }
  }

  @Test(arguments: Beginning.allCases)
  func stopped(_ beginning: Beginning) throws {
    let bound = Duration.milliseconds(500)
    for number in try calls(beginning) {
      let time = try Bystander.leastOfThree(within: bound) { try stop(beginning, before: number) }
      #expect(time < bound, "\(beginning) before call \(number)")
    }
  }

  /// The time that another instance took to check the peer and try to join during the suspension.
  private func stop(_ beginning: Beginning, before number: Int) throws -> Duration {
    let place: Comment = "\(beginning) before call \(number)"
    let run = try Run(beginning, "WORMHOLE_FAULTS=any@\(number):before:stop")
    try run.settle()
    let shared = run.meeting.container
    var other: Member?
    let time = try Bystander.time {
      _ = try shared.peer("phone").reachability
      do throws(WormholeError) {
        other = try shared.join(as: "phone")
      } catch {
        #expect(error.code == .nameTaken, place)
        let who = [
          "a process without a stored identity has the name",
          "'TestPeer' (process \(run.running.child.process), stopped) has the name",
        ]
        #expect(who.contains(error.reason), "\(place) \(error)")
      }
    }
    try? run.running.child.send(.go)  // It may have ended before it came to that call.
    let outcome = try run.running.outcome()
    // The process that joined first has the name.
    if other == nil || outcome.status == .exited(0) {
      #expect(outcome.output == "joined\nleft\n", "\(place) \(outcome.errors)")
    } else {
      #expect(outcome.errors.contains("has the name"), "\(place) \(outcome.errors)")
    }
    other?.leave()
    try check(run, place)
    return time
  }

  /// A seeded third of its calls, or all in a long run.
  private func calls(_ beginning: Beginning) throws -> [Int] {
    let count = try countCalls(beginning)
    if TestRun.isLong { return Array(1...count) }
    var random = SeededRandom(seed: seed)
    return Array((1...count).shuffled(using: &random).prefix(count / 3)).sorted()
  }

  @Test(arguments: Beginning.allCases)
  func failed(_ beginning: Beginning) throws {
    var random = SeededRandom(seed: seed)
    let kinds = ["ENOSPC", "EIO", "EMFILE", "EACCES", "EROFS", "EINTR", "ENOENT"]
    let isLong = TestRun.isLong
    for number in try calls(beginning) {
      for kind in isLong ? kinds : [kinds.randomElement(using: &random)!] {
        let place: Comment = "\(beginning) call \(number) \(kind) seed \(seed)"
        let run = try Run(beginning, "WORMHOLE_FAULTS=any@\(number):before:fail=\(kind)")
        let outcome = try run.running.outcome()
        switch outcome.status {
        case .exited(0): #expect(outcome.output == "joined\nleft\n", place)
        default:
          #expect(outcome.status == .exited(70), place)
          #expect(outcome.output == "", place)
          #expect(outcome.errors.contains("cannot "), "\(place) \(outcome.errors)")
        }
        try check(run, place)
      }
    }
  }
}
