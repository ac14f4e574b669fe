import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Senders and receivers of files, killed at their system calls: a seeded tenth of the calls, all
/// calls in a long run.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.blocking, .serialized, .notSanitized("a process for each system call"))
struct FileSweepTests {
  private let seed = TestRun.seed

  @Test(arguments: [false, true], [Durability.process, .power])
  func theSenderIsKilled(_ moves: Bool, _ durability: Durability) throws {
    let whole = try Run()
    try atEachPoint(whole.sending(moves, durability)) { rule in
      let run = try Run()
      let outcome = try run.start(run.sending(moves, durability), faults: rule).outcome()
      let place: Comment = "moves \(moves) \(durability) \(rule) seed \(seed): \(outcome.errors)"
      let isThere = (try? Digest(run.source)) != nil
      let files = try run.receiveWhatCame()
      #expect(files.allSatisfy { $0 == run.digest }, place)
      if outcome.output == "sent\n" {
        #expect(files.count == 1, place)
        #expect(isThere == !moves, place)
      } else {
        #expect(files.count <= 1, place)
        // A file that was not sent was not removed either.
        #expect(isThere || (moves && files.count == 1), place)
      }
      #expect(try run.leftovers() == [], place)
      return outcome
    }
  }

  @Test(arguments: ["take", "leave", "take elsewhere"])
  func theReceiverIsKilled(_ what: String) throws {
    let other = what == "take elsewhere" ? try AnotherFileSystem() : nil
    if what == "take elsewhere", other == nil { return }
    var number = 0
    func receiving(_ run: Run) -> (job: PeerJob, target: String) {
      number += 1
      let target = (other?.path ?? run.folder.path) + "/taken-\(number)"
      return (.receiveFile(run.path, to: target, takes: what != "leave"), target)
    }
    func prepared() throws -> Run {
      let run = try Run()
      try run.container().peer("watch").send(file: run.source, metadata: "it")
      return run
    }
    let whole = try prepared()
    try atEachPoint(receiving(whole).job) { rule in
      let run = try prepared()
      let (job, target) = receiving(run)
      let outcome = try run.start(job, faults: rule).outcome()
      let place: Comment = "\(what) \(rule) seed \(seed): \(outcome.errors)"
      let taken = try? Digest(target)
      #expect(taken == nil || taken == run.digest, place)
      let files = try run.receiveWhatCame()
      if outcome.output == "acknowledged\n" { #expect(files.isEmpty, place) }
      // A redelivered message brings its file, unless the file was taken.
      for file in files { #expect((file ?? taken) == run.digest, place) }
      if files.isEmpty, what != "leave" { #expect(taken == run.digest, place) }
      #expect(files.count <= 1, place)
      #expect(try run.leftovers() == [], place)
      return outcome
    }
  }

  /// The rest of an unfinished copy on another file system is removed by the next take to that
  /// folder.
  @Test func whatAKilledTakerHasLeftGoesWithTheNext() throws {
    guard let other = try AnotherFileSystem() else { return }
    for point in 1... {
      let run = try Run()
      try run.container().peer("watch").send(file: run.source, metadata: "it")
      let job = PeerJob.receiveFile(run.path, to: other.path + "/taken", takes: true)
      _ = try run.start(job, faults: "pwrite@\(point):before:kill").outcome()
      guard try other.names().contains(where: { $0.hasPrefix(".wormhole-") }) else {
        #expect(point < 50, "it is killed while it copies")
        guard point < 50 else { return }
        continue
      }
      #expect(try run.start(job, faults: "").outcome().output == "acknowledged\n")
      #expect(try other.names() == ["taken"])
      return
    }
  }

  /// Counts the calls of an undisturbed job, and kills the job at some of these calls.
  ///
  /// - Parameter body: returns the outcome of the killed process.
  private func atEachPoint(
    _ job: PeerJob, _ body: (_ rule: String) throws -> ProcessOutcome
  ) throws {
    let folder = try TemporaryDirectory()
    let whole = try Running(
      job, environment: ["WORMHOLE_FAULT_TRACE=\(folder.path)/trace"])
    let outcome = try whole.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let count = try folder.read("trace").split(separator: "\n").count
    var random = SeededRandom(seed: seed)
    let all = Array(1...count)
    let points = FileTests.isLong ? all : Array(all.shuffled(using: &random).prefix(count / 10))
    for point in points.sorted() {
      // The job's threads make calls of their own, so the last points may not be reached.
      let status = try body("any@\(point):before:kill").status
      #expect(status == .signalled(9) || point > count / 2, "call \(point) seed \(seed)")
    }
    _ = try body("any@\(count):after:kill")
  }

  /// A run's own container and file.
  private final class Run {
    let folder: TemporaryDirectory
    let path: String
    let source: String
    let digest: Digest

    init() throws {
      folder = try TemporaryDirectory()
      path = folder.path + "/c"
      source = folder.path + "/source"
      try makeFile(source, size: 300_000)
      digest = try Digest(source)
      try SharedContainer(directory: path).join(as: "watch").leave()
    }

    func container() throws -> SharedContainer { try SharedContainer(directory: path) }

    func sending(_ moves: Bool, _ durability: Durability) -> PeerJob {
      .sendFile(path, source, moves: moves, durability: durability)
    }

    func start(_ job: PeerJob, faults: String) throws -> Running {
      try Running(job, environment: ["WORMHOLE_FAULTS=\(faults)"])
    }

    /// Returns the digests of all messages' files, nil for a taken file; acknowledges the messages.
    func receiveWhatCame() throws -> [Digest?] {
      let member = try container().join(as: "watch")
      let heard = Heard<Digest?>()
      let receiving = try member.receive { message in
        guard let file = message.file else { throw Missing() }
        heard.add(try file.exists ? Digest(file.path) : nil)
      }
      try eventually("all messages are received") {
        try names("inbox").isEmpty && names("claimed").isEmpty
      }
      receiving.stop()
      member.leave()
      return heard.all
    }

    private func names(_ part: String) throws -> [String] {
      try Descriptor.open(path: "\(path)/members/watch/\(part)", [.readOnly, .directory]).names()
    }

    /// The remaining files, messages and dead letters after the member has joined.
    func leftovers() throws -> [String] {
      let staging = try Descriptor.open(path: path + "/staging", [.readOnly, .directory])
      return try staging.names()
        + ["inbox", "claimed", "dead", "files"].flatMap { part in
          // The file `room` records the taken space as long as senders use the queue.
          try names(part).filter { $0 != "room" }.map { "\(part)/\($0)" }
        }
    }
  }
}

/// Files of any size take the same memory.
@Suite(.blocking, .notSanitized("its bounds on time and memory are for full speed"))
struct FileMemoryTests {
  @Test func sendingAndReceivingTakesConstantMemory() throws {
    let folder = try TemporaryDirectory()
    try makeFile(folder.path + "/film", size: 256 << 20)
    let other = try AnotherFileSystem()
    let outcome = try run(
      .fileMemory(
        folder.path + "/c", folder.path + "/film", to: other.map { $0.path + "/taken" }))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let grown = try #require(Int(outcome.output.split(separator: "\n").first ?? ""))
    #expect(grown < 64 << 10, "\(grown) kB")
    if let other { #expect(try Digest(other.path + "/taken").size == 256 << 20) }
  }
}
