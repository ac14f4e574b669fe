import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// P4 among processes that are killed and suspended.
@Suite(.serialized, .blocking, .notSanitized("many processes at once"))
struct MailProcessesTests {
  private let meeting: Meeting
  private let isLong = TestRun.isLong

  init() throws {
    meeting = try Meeting()
    try meeting.folder.write("", to: "log")
  }

  private var log: String { meeting.folder.path + "/log" }

  private func send(
    _ from: String, _ numbers: Range<Int>, batch: Int, faults: String = ""
  ) throws -> Running {
    try Running(
      .send(meeting.path, from: from, to: "watch", numbers, batch: batch, waits: true),
      environment: ["WORMHOLE_FAULTS=\(faults)"])
  }

  private func receive(until last: Int, poison: Int? = nil, faults: String = "") throws -> Running {
    try Running(
      .receive(meeting.path, "watch", log: log, until: last, poison: poison),
      environment: ["WORMHOLE_FAULTS=\(faults)"])
  }

  /// The deliveries, in order, and the numbers of the acknowledged messages.
  private func record() throws -> (handed: [Handed], done: [Int]) {
    var (handed, done) = ([Handed](), [Int]())
    for line in try meeting.folder.read("log").split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count > 1, let number = Int(words[0]) else { continue }
      if words[1] == "done" {
        done.append(number)
      } else if words.count == 3 {
        handed.append(Handed(number, Int(words[1])!, marked: words[2] == "true"))
      }
    }
    return (handed, done)
  }

  /// First deliveries alone; fails the test if a redelivery is not marked.
  private func firsts(_ handed: [Handed], _ place: String = "") -> [Int] {
    var seen: Set<Int> = []
    var firsts: [Int] = []
    for one in handed {
      if seen.insert(one.number).inserted {
        firsts.append(one.number)
      } else if !one.isMarked {
        Issue.record("\(one) came before and is not marked \(place)")
      }
    }
    return firsts
  }

  @Test(arguments: [1, 64])
  func inOrderAndExactlyOnce(_ batch: Int) throws {
    let count = isLong ? 100_000 : batch > 1 ? 4_000 : 1_600
    let receiver = try receive(until: count)
    let sender = try send("phone", 1..<count + 1, batch: batch)
    let outcome = try receiver.outcome(within: .seconds(isLong ? 1200 : 120))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(try sender.outcome().status == .exited(0))
    let (handed, done) = try record()
    #expect(handed == (1...count).map { Handed($0) })
    #expect(done == Array(1...count))
  }

  /// Killed and suspended at random: no acknowledged send is lost, the order of first deliveries is
  /// kept, each duplicate is marked, and acknowledged messages are never redelivered.
  @Test func killedAndStoppedAtRandom() throws {
    let seed = TestRun.seed
    let line = "WORMHOLE_SEED=\(seed) swift test --filter killedAndStoppedAtRandom"
    try StandardStream.output.write("messages: replay: \(line)\n")
    var random = SeededRandom(seed: seed)
    let end = Instant.now + (isLong ? .seconds(60) : .seconds(3))
    var senders: [(first: Int, process: Running)] = []
    var sure: Set<Int> = []
    // Each sender has numbers of its own, a million apart, and continues where its last run ended.
    var next = [1: 1_000_001, 2: 2_000_001]
    func start(_ index: Int) throws {
      let first = next[index]!
      let process = try Running(
        .send(
          meeting.path, from: "phone\(index)", to: "watch", first..<first + 500_000,
          batch: index == 1 ? 1 : 7, waits: true))
      if senders.count < index { senders.append((first, process)) }
      senders[index - 1] = (first, process)
    }
    func kill(_ process: Running) throws -> ProcessOutcome {
      try? process.child.send(.kill)
      return try process.outcome()
    }
    /// The printed numbers were sent; numbers that the process had no time to print may have been,
    /// too.
    func endSender(_ index: Int) throws {
      let (first, process) = senders[index - 1]
      let output = try kill(process).output
      let whole = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      guard let last = whole.last.flatMap({ Int($0) }) else { return }
      sure.formUnion(first...last)
      next[index] = last
    }
    for index in 1...2 { try start(index) }
    var receiver = try receive(until: -1)
    let pause = Monitor(())
    func wait(_ milliseconds: ClosedRange<Int>) {
      let length = Duration.milliseconds(Int.random(in: milliseconds, using: &random))
      let _: Void? = pause.wait(until: .now + length) { _ in nil }
    }
    var kills = 0
    while Instant.now < end || kills <= 2 {
      wait(10...150)
      switch Int.random(in: 0..<5, using: &random) {
      case 0, 1:
        _ = try kill(receiver)
        receiver = try receive(until: -1)
        kills += 1
      case 2:
        let index = Int.random(in: 1...2, using: &random)
        try endSender(index)
        // Numbers that were sent and not printed would be sent again: continue after these numbers.
        next[index]! += 100
        try start(index)
        kills += 1
      default:
        let victims = senders.map(\.process) + [receiver]
        let victim = victims.randomElement(using: &random)!
        try? victim.child.send(.stop)
        wait(5...60)
        try? victim.child.send(.go)
      }
    }
    for index in 1...2 {
      let process = senders[index - 1].process
      try eventually("it sends") { try process.output.split(separator: "\n").count > 10 }
      try endSender(index)
    }
    // A last message shows the receiver that all messages have arrived.
    let member = try meeting.another().join(as: "last")
    _ = try kill(receiver)
    receiver = try receive(until: 9_999_999)
    try member.peer("watch").send(9_999_999, .quick())
    let outcome = try receiver.outcome(within: .seconds(isLong ? 600 : 60))
    #expect(outcome.status == .exited(0), "\(outcome.errors) \(line)")
    try check(sure, kills, line)
  }

  private func check(_ sure: Set<Int>, _ kills: Int, _ line: String) throws {
    let (handed, done) = try record()
    let firsts = firsts(handed, line)
    var acknowledged: Set<Int> = []
    for number in done { #expect(acknowledged.insert(number).inserted, "\(number) twice: \(line)") }
    for index in 1...2 {
      let mine = firsts.filter { $0 / 1_000_000 == index }
      #expect(mine == mine.sorted(), "\(line)")
    }
    // A killed receiver may have acknowledged a message that it had no time to log.
    #expect(Set(firsts).subtracting(acknowledged).count <= kills, "\(line)")
    #expect(try meeting.names("members/watch/inbox") == [])
    #expect(try meeting.names("members/watch/claimed") == [])
    #expect(try meeting.names("members/watch/dead") == [])
    #expect(sure.subtracting(firsts) == [], "lost: \(line)")
  }

  /// Of four senders the first is suspended and the second killed, anywhere in a send; the messages
  /// of the remaining two arrive.
  ///
  /// The first file that a sender stages is its profile.
  @Test(arguments: ["rename~inbox/@2", "write~staging@3", "write~files/room@2"])
  func aStoppedAndAKilledSenderHoldUpNobody(_ place: String) throws {
    // The directory is made first, so that all senders make the same calls.
    _ = try meeting.container.join(as: "watch").leave()
    let stopped = try send("stopped", 1_000..<1_050, batch: 1, faults: "\(place):before:stop")
    // The file of the queue's size exists before the second sender begins: the sender that makes
    // the file writes to it once more.
    try stopped.waitUntilStopped()
    let killed = try send("killed", 2_000..<2_050, batch: 3, faults: "\(place):before:kill")
    let end = try killed.outcome()
    #expect(end.status == .signalled(9))
    let last = try #require(end.output.split(separator: "\n").last.flatMap { Int($0) })
    let others = [
      try send("third", 3_000..<3_080, batch: 1), try send("fourth", 4_000..<4_080, batch: 7),
    ]
    for other in others { #expect(try other.outcome().status == .exited(0)) }
    let receiver = try receive(until: 9_999)
    try eventually("the others' have come") {
      let numbers = Set(try record().done)
      return numbers.isSuperset(of: 3_000..<3_080) && numbers.isSuperset(of: 4_000..<4_080)
    }
    _ = try stopped.waitOrGo()
    _ = try send("last", 9_999..<10_000, batch: 1).outcome()
    #expect(try receiver.outcome().status == .exited(0))
    let firsts = firsts(try record().handed)
    for sender in [1_000..<2_000, 2_000..<3_000, 3_000..<4_000, 4_000..<5_000] {
      let mine = firsts.filter { sender.contains($0) }
      #expect(mine == mine.sorted())
    }
    #expect(firsts.filter { $0 < 2_000 }.count == 50, "it goes on where it was stopped")
    #expect(Set(2_000...last).subtracting(firsts) == [], "what was sent before it was killed")
  }

  /// The message kills its receiver each time, and its neighbours are not dead-lettered with it.
  @Test func aPoisonousMessageGoesToTheDeadLettersAlone() throws {
    _ = try send("phone", 1..<6, batch: 5).outcome()
    _ = try send("phone", 6..<7, batch: 1).outcome()
    var lives = 0
    var isOver = false
    while !isOver, lives < 10 {
      isOver = try receive(until: 6, poison: 3).outcome().status == .exited(0)
      lives += 1
    }
    #expect(lives == 6, "five attempts, and one life to give it up")
    let (handed, done) = try record()
    #expect(done == [1, 2, 4, 5, 6])
    let expected =
      [1, 2].map { Handed($0) } + (1...5).map { Handed(3, $0) } + [4, 5, 6].map { Handed($0) }
    #expect(handed == expected)
    let dead = try meeting.names("members/watch/dead")
    #expect(dead.count == 2, "\(dead)")
    #expect(dead.allSatisfy { $0.contains(".2,") }, "the third of its batch: \(dead)")
  }

  /// The same for a message that was sent alone.
  @Test func aPoisonousSingleMessageIsGivenUp() throws {
    _ = try send("phone", 1..<4, batch: 1).outcome()
    var lives = 0
    while lives < 10, try receive(until: 3, poison: 2).outcome().status != .exited(0) { lives += 1 }
    #expect(lives == 5)
    #expect(try record().done == [1, 3])
    #expect(try meeting.names("members/watch/dead").count == 2)
  }

  /// A child that is being started has copies of all descriptors of its parent, and so of the file
  /// that locks an id while the id's message is enqueued.
  @Test func anIdIsFreeThoughACopyHasItsFileOpen() throws {
    let sender = try Running(
      .sendForked(meeting.path),
      environment: ["WORMHOLE_FAULTS=rename~inbox/:before:delay=1000"])
    let output = try sender.outcome(within: .seconds(120)).output
    let words = output.split(separator: "\n")
    let copy = try #require(words.first.flatMap { Int32($0) })
    defer { try? Processes.send(.kill, to: copy) }
    #expect(words.dropFirst() == ["sent"])
  }
}
