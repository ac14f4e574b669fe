import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Messages between two containers, and the processes that send, receive and carry them are killed.
@Suite(.serialized, .blocking, .notSanitized("many processes, one after the other"))
struct CarryingTests {
  private let here: Meeting
  private let there: Meeting
  private let isLong = TestRun.isLong

  init() throws {
    (here, there) = (try Meeting(), try Meeting())
    try there.folder.write("", to: "log")
    // As a process of the second container would have.
    try there.container.join(as: "watch").leave()
  }

  /// Who carries: the library, or a program written from the description of the directory.
  enum Kind: Sendable {
    case library, python, inTurns

    /// In a short run Python carries by turns only.
    static var tried: [Kind] {
      TestRun.isLong ? [.library, .python, .inTurns] : [.library, .inTurns]
    }
  }

  /// Starts a carrier that is to die at its change with this number; 0 for never.
  private func carrier(_ kind: Kind, diesAt point: Int, _ turn: Int) throws -> Running? {
    let isOurs = kind == .library || kind == .inTurns && turn % 2 == 0
    guard !isOurs else {
      return try Running(
        .carry(here.path, there.path, members: ["watch"]),
        environment: ["WORMHOLE_FAULTS=\(point > 0 ? "any@\(point):before:kill" : "")"])
    }
    guard let python = Programs.installed("python3") else { return nil }
    return try Running(
      python, [Programs.source + "/Fixtures/python/carry.py", here.path, there.path, "watch"],
      environment: ["DIES_AT=\(point)"])
  }

  private func record() throws -> [Handed] {
    try there.folder.read("log").split(separator: "\n").compactMap { line in
      let words = line.split(separator: " ")
      guard words.count == 3, let number = Int(words[0]) else { return nil }
      return Handed(number, Int(words[1])!, marked: words[2] == "true")
    }
  }

  /// A sender, a receiver and a carrier, each started again after it was killed, the next time a
  /// few calls later: no message is lost, none comes twice unmarked or out of order, and the sender
  /// learns each outcome.
  @Test(arguments: Kind.tried)
  func nothingIsLostWhereverOneIsKilled(_ kind: Kind) throws {
    guard kind == .library || Programs.installed("python3") != nil else {
      return skip("carrying in Python", missing: "python3")
    }
    let count = isLong ? 5000 : 150
    var (next, kills, turn) = (1, 0, 0)
    var sure: Set<Int> = []
    func sender(_ point: Int) throws -> Running {
      try Running(
        .send(here.path, from: "phone", to: "watch", next..<count + 1),
        environment: ["WORMHOLE_FAULTS=\(point > 0 ? "any@\(point):before:kill" : "")"])
    }
    func receiver(_ point: Int) throws -> Running {
      try Running(
        .receive(there.path, "watch", log: there.folder.path + "/log", until: count),
        environment: ["WORMHOLE_FAULTS=\(point > 0 ? "any@\(point):before:kill" : "")"])
    }
    let (most, step) = isLong ? (600, 1) : (160, 7)
    var points = (sender: 200, receiver: 40, carrier: 1 + Int(TestRun.seed % 7))
    var sending: Running? = try sender(points.sender)
    var receiving = try receiver(points.receiver)
    var carrying = try #require(try carrier(kind, diesAt: points.carrier, turn))
    let end = Instant.now + (isLong ? .seconds(1200) : .seconds(240))
    let pause = Monitor(())
    while try sending != nil || !isOver() {
      let place = "\(try record().count) of \(count), \(kills) kills"
      try #require(Instant.now < end, "\(place)")
      if carrying.hasEnded {
        _ = try carrying.outcome()
        (kills, turn) = (kills + 1, turn + 1)
        points.carrier = points.carrier >= most ? 0 : points.carrier + step
        carrying = try #require(try carrier(kind, diesAt: points.carrier, turn))
      }
      if receiving.hasEnded {
        kills += 1
        points.receiver = points.receiver >= most ? 0 : points.receiver + 13
        receiving = try receiver(points.receiver)
      }
      if let process = sending, process.hasEnded {
        let outcome = try process.outcome()
        let said = outcome.output.split(separator: "\n").compactMap { Int($0) }
        sure.formUnion(said)
        // The number that the process had no time to print may have been sent.
        next = (said.last ?? next - 1) + 2
        if outcome.status == .exited(0) {
          sending = nil
        } else if next > count {
          next = count
          sending = try sender(0)
        } else {
          kills += 1
          points.sender += step
          sending = try sender(points.sender < 200 + most ? points.sender : 0)
        }
      }
      let _: Void? = pause.wait(until: .now + .milliseconds(2)) { _ in nil }
    }
    print("\(kind): seed \(TestRun.seed), \(kills) kills while \(count) messages were carried")
    try? receiving.child.send(.kill)
    try check(sure, count)
    try? carrying.child.send(.kill)
  }

  /// Whether all messages are settled, and all outcomes have come back.
  ///
  /// The receiver may be killed between the acknowledgement of the last message and its own end.
  private func isOver() throws -> Bool {
    let parts = ["members/watch/inbox", "members/watch/claimed"]
    return try parts.allSatisfy { try here.names($0).isEmpty && there.names($0).isEmpty }
      && here.names("bridge/out/there").isEmpty && there.names("members/phone/receipts").isEmpty
  }

  private func check(_ sure: Set<Int>, _ count: Int) throws {
    var seen: Set<Int> = []
    var firsts: [Int] = []
    for one in try record() {
      if seen.insert(one.number).inserted {
        firsts.append(one.number)
      } else {
        #expect(one.isMarked || one.number == count, "\(one) came before")
      }
    }
    #expect(firsts == firsts.sorted())
    #expect(sure.subtracting(firsts) == [], "lost")
    let outcomes = try here.container.peer("phone").pendingOutcomes
    #expect(outcomes.allSatisfy { $0.status == .delivered })
    // A sender that never asks for outcomes keeps the latest ones only.
    #expect(outcomes.count >= min(firsts.count, 800))
    #expect(try there.names("members/watch/dead") == [])
    #expect(try there.names("bridge/in/here") == ["cursor.plist"])
    for meeting in [here, there] {
      // Whoever opens the container sweeps what killed processes have left.
      _ = try meeting.another()
      // The previous record of the epoch stays until the next start of the machine.
      _ = try meeting.container.storage.repair()
      let findings = meeting.container.inspectMail() + (try meeting.container.storage.inspect())
      #expect(findings.allSatisfy { $0.severity != .problem }, "\(findings)")
    }
  }

  /// A call that fails is tried again, by the same carrier or by the next one.
  @Test func nothingIsLostWhateverFails() throws {
    var random = SeededRandom(seed: TestRun.seed)
    let points = Array((1...100).shuffled(using: &random).prefix(isLong ? 100 : 5)).sorted()
    let watch = try there.another().join(as: "watch")
    let heard = Heard<Handed>()
    let receiving = try watch.note(heard)
    let phone = try here.container.join(as: "phone")
    let ended = Heard<Outcome.Status>()
    let watching = try phone.watchOutcomes { ended.add($0.status) }
    var count = 0
    for point in points {
      let kind = ["ENOSPC", "EIO", "EMFILE", "EACCES", "EROFS"].randomElement(using: &random)!
      let place = "any@\(point):before:fail=\(kind) seed \(TestRun.seed)"
      let disturbed = try Running(
        .carry(here.path, there.path, members: ["watch"]),
        environment: ["WORMHOLE_FAULTS=any@\(point):before:fail=\(kind)"])
      for _ in 0..<3 {
        count += 1
        try phone.peer("watch").send(count, .quick())
      }
      try? eventually("\(place): it ends", within: .milliseconds(500)) {
        disturbed.hasEnded || ended.count == count
      }
      if !disturbed.hasEnded { try disturbed.child.send(.kill) }
      let outcome = try disturbed.outcome()
      #expect([.exited(70), .signalled(9)].contains(outcome.status), "\(place) \(outcome.errors)")
      let next = try Running(.carry(here.path, there.path, members: ["watch"]))
      try ended.wait("\(place): all outcomes") { [count] in $0.count == count }
      try next.child.send(.kill)
      _ = try next.outcome()
    }
    watching.stop()
    receiving.stop()
    #expect(heard.all.filter { !$0.isMarked }.map(\.number) == Array(1...count))
    #expect(ended.all.allSatisfy { $0 == .delivered })
  }

  /// Ten programs try to join; returns how each was refused.
  private func refusals() throws -> [WormholeError.Code?] {
    let codes = Monitor<[WormholeError.Code?]>([])
    let joiners = try (0..<10).map { _ in
      let container = try here.another()
      return try Thread("joiner") {
        var code: WormholeError.Code?
        do throws(WormholeError) {
          try container.join(as: "watch").leave()
        } catch {
          code = error.code
        }
        codes.signal { [code] in $0.append(code) }
      }
    }
    for joiner in joiners { joiner.join() }
    return codes.withLock { $0 }
  }

  @Test func noProgramTakesTheNameWhateverBefallsTheCarrier() throws {
    let refused = [WormholeError.Code?](repeating: .nameTaken, count: 10)
    let watch = try there.container.join(as: "watch", info: ["place": "wrist"])
    let first = try #require(try carrier(.library, diesAt: 0, 0))
    let peer = here.container.peer("watch")
    try eventually("it is shown as running") {
      try peer.reachability == .running && peer.profile != nil
    }
    let profile = try #require(try peer.profile)
    #expect(profile.machine == "there" && profile.info == ["place": "wrist"])
    #expect(profile.incarnation == watch.incarnation)
    #expect(try refusals() == refused)
    try first.child.send(.stop)
    try first.waitUntilStopped()
    #expect(try refusals() == refused)
    // The next carrier waits for the presence.
    let second = try #require(try carrier(.library, diesAt: 0, 0))
    try eventually("it carries") { try second.output.contains("carrying") }
    let trying = Monitor<[WormholeError.Code?]>([])
    let joiners = try Thread("joiners") { [self] in
      for _ in 0..<3 {
        let found = (try? refusals()) ?? []
        trying.signal { $0 += found }
      }
    }
    try first.child.send(.kill)
    joiners.join()
    #expect(trying.withLock { $0 } == refused + refused + refused)
    try eventually("the next one shows it as running") { try peer.reachability == .running }
    try second.child.send(.kill)
    try eventually("nobody shows it") { try peer.reachability == .notRunning }
    #expect(try refusals() == refused)
    watch.leave()
  }
}
