import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Accesses killed, suspended and failed at their system calls: a seeded tenth, or all in a long
/// run.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.blocking, .notSanitized("a process for each system call"))
struct CoordinationSweepTests {
  private static let isLong = TestRun.isLong
  private let seed = TestRun.seed

  /// One access in a scene of its own, to a file with the content `old`.
  private struct Run {
    let scene: FileScene
    let peer: Running

    init(_ kind: PeerJob.Coordination, _ environment: String) throws {
      scene = try FileScene(lease: .milliseconds(50))
      try scene.folder.write("old", to: "files/a")
      // Makes the container, so that the peer's calls are only those of the access.
      try scene.another().read(scene.path("a")) { _ in }
      peer = try scene.peer(kind, scene.path("a"), .write("new"), environment: [environment])
    }
  }

  private func countCalls(_ kind: PeerJob.Coordination) throws -> Int {
    let folder = try TemporaryDirectory()
    let run = try Run(kind, "WORMHOLE_FAULT_TRACE=\(folder.path)/trace")
    #expect(try run.peer.outcome().output == "inside\ndone\n")
    return try folder.read("trace").split(separator: "\n").count
  }

  /// The number of calls that an access makes, and a sample of their positions.
  private func points(
    _ kind: PeerJob.Coordination, _ random: inout SeededRandom
  ) throws -> (count: Int, drawn: [Int]) {
    let count = try countCalls(kind)
    #expect(count > 30)
    if Self.isLong { return (count, Array(1...count)) }
    return (count, (1...count).shuffled(using: &random).prefix(count / 10).sorted())
  }

  /// The longest time for which the next access is kept out: the lease, and the time for the rest.
  private static let bound = Duration.milliseconds(50 + 300)

  /// The time until the next access has been inside, and the file's content after it.
  private func lookInside(_ run: Run) throws -> (time: Duration, text: String?) {
    let time = try Bystander.time {
      try run.scene.another().read(run.scene.path("a"), takeOverAfter: .milliseconds(50)) { _ in }
    }
    return (time, try run.scene.read("a"))
  }

  private func expectShort(_ place: Comment, _ body: () throws -> Duration) rethrows {
    let time = try Bystander.leastOfThree(within: Self.bound, body)
    #expect(time < Self.bound, place)
  }

  private func checkNothingIsLeft(_ run: Run, _ place: Comment) throws {
    try run.scene.another().write(run.scene.path("a")) { _ in }
    #expect(try run.scene.leftovers() == [], place)
    let user = "\(run.scene.folder.path)/groups/wormhole.user/.wormhole"
    let staging = try Descriptor.open(path: user + "/staging", [.readOnly, .directory])
    #expect(try staging.names() == [], place)
  }

  @Test(arguments: [PeerJob.Coordination.write, .replace]) func killed(_ kind: PeerJob.Coordination)
    throws
  {
    var random = SeededRandom(seed: seed)
    let (count, points) = try points(kind, &random)
    for point in points {
      let place: Comment = "\(kind) before call \(point) seed \(seed)"
      try expectShort(place) {
        let run = try Run(kind, "WORMHOLE_FAULTS=any@\(point):before:kill")
        let outcome = try run.peer.outcome()
        // The peer's threads make calls of their own, so the last points may not be reached.
        if outcome.status == .exited(0), point > count / 2 { return .zero }
        #expect(outcome.status == .signalled(9), place)
        let (time, text) = try lookInside(run)
        #expect(text == "old" || text == "new" || kind == .write && text == "", place)
        try checkNothingIsLeft(run, place)
        return time
      }
    }
  }

  @Test(arguments: [PeerJob.Coordination.write, .replace]) func stopped(
    _ kind: PeerJob.Coordination
  ) throws {
    var random = SeededRandom(seed: seed)
    for point in try points(kind, &random).drawn {
      let place: Comment = "\(kind) before call \(point) seed \(seed)"
      try expectShort(place) {
        let run = try Run(kind, "WORMHOLE_FAULTS=any@\(point):before:stop")
        try eventually("it stops or ends") {
          try run.peer.hasEnded || Processes.isStopped(run.peer.child.process)
        }
        let (time, text) = try lookInside(run)
        let wasInside = try run.peer.output.hasPrefix("inside\n")
        _ = try run.peer.waitOrGo()
        let outcome = try run.peer.outcome()
        if kind == .replace {
          switch outcome.output {
          case "inside\ndone\n": #expect(try run.scene.read("a") == "new", place)
          default:
            #expect(wasInside || outcome.status != .exited(0), "\(place) \(outcome)")
            #expect(try run.scene.read("a") == text, "\(place) \(outcome)")
          }
        }
        try checkNothingIsLeft(run, place)
        return time
      }
    }
  }

  @Test(arguments: [PeerJob.Coordination.write, .replace]) func failed(_ kind: PeerJob.Coordination)
    throws
  {
    var random = SeededRandom(seed: seed)
    // Not ENOENT: in the protocol this error means that a name is gone, and the system keeps to it.
    let kinds = ["ENOSPC", "EIO", "EMFILE", "EACCES", "EROFS", "EINTR"]
    for point in try points(kind, &random).drawn {
      for error in Self.isLong ? kinds : [kinds.randomElement(using: &random)!] {
        for extent in Self.isLong ? ["", "+"] : [["", "+"].randomElement(using: &random)!] {
          let rule = "any@\(point)\(extent):before:fail=\(error)"
          let place: Comment = "\(kind) \(rule) seed \(seed)"
          try expectShort(place) {
            let run = try Run(kind, "WORMHOLE_FAULTS=" + rule)
            let outcome = try run.peer.outcome()
            let (time, text) = try lookInside(run)
            switch outcome.status {
            case .exited(0): #expect(text == "new", place)
            default:
              #expect(outcome.status == .exited(70), "\(place) \(outcome)")
              let isFile = outcome.errors.contains("cannot ")
              #expect(isFile || outcome.output.hasPrefix("inside"), "\(place) \(outcome)")
              if kind == .replace, !outcome.output.hasPrefix("inside") {
                #expect(text == "old", place)
              }
            }
            try checkNothingIsLeft(run, place)
            return time
          }
        }
      }
    }
  }
}
