import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// One request and its reply, with the requester or the responder killed, suspended and failed at
/// its system calls: at a seeded part of the calls, or at all in a long run.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.blocking, .notSanitized("a process for each system call"))
struct RequestSweepTests {
  private let seed = TestRun.seed
  private let isLong = TestRun.isLong

  enum Side: String, CaseIterable, Sendable {
    case asker, guest, responder
  }

  /// A container of its own; the member that is not disturbed is in this process.
  private final class Run: Sendable {
    let meeting: Meeting
    let running: Running
    let other: Member
    private let responding: Subscription?
    private let side: Side

    init(_ side: Side, _ environment: String, milliseconds: Int = 2000) throws {
      self.side = side
      meeting = try Meeting()
      let job: PeerJob =
        switch side {
        case .asker:
          .request(meeting.path, of: "watch", 21...21, as: "phone", milliseconds: milliseconds)
        case .guest: .request(meeting.path, of: "watch", 21...21, milliseconds: milliseconds)
        case .responder: .respondOnce(meeting.path, "watch")
        }
      other = try meeting.container.join(as: side == .responder ? "phone" : "watch")
      responding = side == .responder ? nil : other.respond(to: Int.self) { $0 * 2 }
      running = try Running(job, environment: [environment])
      if side == .responder {
        try eventually("it has joined, stands or has ended") {
          try running.hasEnded || running.output.contains("joined")
            || Processes.isStopped(running.child.process)
        }
      }
    }

    /// Sends a request to the disturbed process; returns the result.
    func ask(within timeout: Duration = .seconds(2)) throws -> Result<Int, WormholeError> {
      let begin = Instant.now
      let bystander = try Bystander()
      let result = Result { () throws(WormholeError) in
        try other.peer("watch").request(21, as: Int.self, within: timeout)
      }
      // Never later than the deadline, whatever happens to the disturbed process.
      #expect(Instant.now - begin < timeout + .seconds(2) + bystander.allowance())
      return result
    }

    func settle() throws {
      try eventually("it stops or ends") {
        try running.hasEnded || Processes.isStopped(running.child.process)
      }
    }

    /// Everything works, and nothing is left over.
    func check(_ place: Comment) throws {
      responding?.stop()
      other.leave()
      let container = try meeting.another()
      let (watch, phone) = (
        try container.join(as: "watch"), try meeting.another().join(as: "phone")
      )
      let responding = watch.respond(to: Int.self) { $0 * 2 }
      #expect(try phone.peer("watch").request(4, as: Int.self) == 8, place)
      let root = try Descriptor.open(path: meeting.path, [.readOnly, .directory])
      for member in [watch, phone] {
        let live = try root.open("members/\(member.name)/live", [.readOnly, .directory])
        #expect(try live.names() == [member.incarnation.rawValue], place)
        let folder = try live.open(member.incarnation.rawValue, [.readOnly, .directory])
        try eventually("all is read") { try folder.names().isEmpty }
      }
      responding.stop()
      watch.leave()
      phone.leave()
      // The new instance has swept the remains of dead processes.
      #expect(try root.open("guests", [.readOnly, .directory]).names() == [], place)
      #expect(try root.open("staging", [.readOnly, .directory]).names() == [], place)
    }
  }

  /// The number of calls that a side makes, and a sample of their positions.
  private func points(_ side: Side) throws -> (count: Int, drawn: [Int]) {
    let folder = try TemporaryDirectory()
    // An undisturbed run may take any time.
    let run = try Run(
      side, "WORMHOLE_FAULT_TRACE=\(folder.path)/trace", milliseconds: 60_000)
    if side == .responder {
      #expect(try run.ask(within: .seconds(60)).get() == 42)
      #expect(try run.running.outcome().output == "joined\nleft\n")
    } else {
      #expect(try run.running.outcome().output == "asking\ndone\n")
    }
    try run.check("undisturbed")
    let count = try folder.read("trace").split(separator: "\n").count
    #expect(count > 50)
    if isLong { return (count, Array(1...count)) }
    var random = SeededRandom(seed: seed)
    return (count, (1...count).shuffled(using: &random).prefix(max(4, count / 24)).sorted())
  }

  private func check(_ result: Result<Int, WormholeError>, _ place: Comment) {
    switch result {
    case .success(let answer): #expect(answer == 42, place)
    case .failure(let error):
      #expect([.unreachable, .timedOut, .rejected].contains(error.code), "\(place) \(error)")
    }
  }

  @Test(arguments: Side.allCases)
  func killed(_ side: Side) throws {
    let (count, points) = try points(side)
    for number in points {
      let place: Comment = "\(side) before call \(number), seed \(seed)"
      let run = try Run(side, "WORMHOLE_FAULTS=any@\(number):before:kill")
      if side == .responder { check(try run.ask(within: .seconds(20)), place) }
      // The threads make calls of their own, so the last points may not be reached.
      let status = try run.running.outcome().status
      #expect(status == .signalled(9) || number > count / 2, place)
      try run.check(place)
    }
  }

  @Test(arguments: Side.allCases)
  func stopped(_ side: Side) throws {
    for number in try points(side).drawn {
      let place: Comment = "\(side) before call \(number), seed \(seed)"
      let run = try Run(side, "WORMHOLE_FAULTS=any@\(number):before:stop")
      if side == .responder {
        check(try run.ask(within: .milliseconds(300)), place)
      } else {
        try run.settle()
        // Further requesters get replies in the meantime.
        let guest = try run.meeting.another().guest()
        #expect(try guest.peer("watch").request(3, as: Int.self) == 6, place)
        guest.leave()
      }
      try? run.running.child.send(.go)
      // The process may be suspended only later.
      try eventually("it ends") {
        if try Processes.isStopped(run.running.child.process) {
          try? run.running.child.send(.go)
        }
        return run.running.hasEnded
      }
      try run.check(place)
    }
  }

  @Test(arguments: Side.allCases)
  func failed(_ side: Side) throws {
    var random = SeededRandom(seed: seed)
    let kinds = ["ENOSPC", "EIO", "EMFILE", "EACCES", "EROFS", "EINTR", "ENOENT"]
    for number in try points(side).drawn {
      for kind in isLong ? kinds : [kinds.randomElement(using: &random)!] {
        let place: Comment = "\(side) call \(number) \(kind), seed \(seed)"
        let run = try Run(side, "WORMHOLE_FAULTS=any@\(number):before:fail=\(kind)")
        if side == .responder { check(try run.ask(), place) }
        let outcome = try run.running.outcome()
        switch outcome.status {
        case .exited(0):
          let said = side == .responder ? "joined\nleft\n" : "asking\ndone\n"
          #expect(outcome.output == said, place)
        default:
          #expect(outcome.status == .exited(70), "\(place) \(outcome.status)")
          #expect(outcome.errors.contains("cannot "), "\(place) \(outcome.errors)")
        }
        try run.check(place)
      }
    }
  }
}
