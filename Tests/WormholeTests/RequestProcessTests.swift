import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Requests and immediate messages between real processes, which are killed and suspended.
@Suite(.serialized, .blocking, .notSanitized("many processes at once"))
struct RequestProcessTests {
  private let meeting: Meeting
  private let isLong = TestRun.isLong

  init() throws { meeting = try Meeting() }

  /// Starts a job of the peer, and waits for the job's first line.
  private func start(_ job: PeerJob) throws -> Running {
    let running = try Running(job)
    try eventually("\(job) has begun") {
      try running.output.contains("\n") || running.hasEnded
    }
    return running
  }

  private func kill(_ running: Running) throws {
    try running.child.send(.kill)
    _ = try running.outcome()
  }

  private func lines(_ running: Running, _ word: String) throws -> [[String]] {
    try running.output.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
      .filter { $0.first == word }
  }

  // MARK: P5

  @Test func whoIsKilledWhileHandlingItIsNotWaitedFor() throws {
    let asker = try meeting.another().join(as: "phone")
    var times: [Duration] = []
    for number in 0..<50 {
      let responder = try start(.respond(meeting.path, "watch", .dying))
      let (begin, bystander) = (Instant.now, try Bystander())
      let error = try failure {
        _ = try asker.peer("watch").request(
          number, as: Int.self, within: .seconds(30))
      }
      times.append(.now - begin - bystander.allowance())
      #expect(error.code == .unreachable, "\(error)")
      #expect(try responder.outcome().status == .signalled(9))
    }
    let median = times.sorted()[times.count / 2]
    #expect(median < .milliseconds(100), "\(times.sorted())")
    asker.leave()
  }

  @Test func whoIsStoppedIsWaitedForUntilTheDeadline() throws {
    let responder = try start(.respond(meeting.path, "watch", .stopping))
    let asker = try meeting.another().join(as: "phone")
    let peer = asker.peer("watch")
    // On a busy machine, a request may be withdrawn before the responder reads it.
    try eventually("it stops while it handles the request") {
      let (begin, bystander) = (Instant.now, try Bystander())
      let error = try failure {
        _ = try peer.request(1, as: Int.self, within: .milliseconds(500))
      }
      let time = Instant.now - begin
      #expect(error.code == .timedOut)
      #expect(time >= .milliseconds(500))
      #expect(time < .seconds(2) + bystander.allowance())
      return try Processes.isStopped(responder.child.process)
    }
    #expect(try peer.reachability == .running)
    // The reply arrives too late, and is not mistaken for the reply to another request.
    try responder.child.send(.go)
    try eventually("it has answered") { try lines(responder, "answered").count == 1 }
    for number in 2...20 {
      #expect(try peer.request(number, as: Int.self) == number * 2)
    }
    let folder = "\(meeting.path)/members/phone/live/\(asker.incarnation)"
    try eventually("nothing is left of it") {
      try Descriptor.open(path: folder, [.readOnly, .directory]).names().isEmpty
    }
    asker.leave()
    try kill(responder)
  }

  /// A message sent during the suspension, whose deadline has passed, is not delivered on resuming.
  @Test func whatIsTooLateIsNotHeard() throws {
    let hearer = try start(.hear(meeting.path, "watch"))
    try hearer.child.send(.stop)
    try hearer.waitUntilStopped()
    let guest = try meeting.another().guest()
    try guest.peer("watch").sendImmediately(1, within: .milliseconds(1))
    try guest.peer("watch").sendImmediately(2, within: .seconds(60))
    let error = try failure {
      _ = try guest.peer("watch").request(3, as: Int.self, within: .milliseconds(100))
    }
    #expect(error.code == .timedOut)
    try hearer.child.send(.go)
    try guest.peer("watch").sendImmediately(4, within: .seconds(60))
    try eventually("it hears the last") { try lines(hearer, "heard").last?[1] == "4" }
    #expect(try lines(hearer, "heard").map { $0[1] } == ["2", "4"])
    guest.leave()
    try kill(hearer)
  }

  /// Sends while the body runs; returns the receiver's incarnation for each number.
  private func whileSending(_ body: () throws -> Void) throws -> [String: String] {
    let shared = try meeting.another()
    let isOver = Monitor(false)
    let sent = Monitor<[String: String]>([:])
    let thread = try Thread("sending") {
      guard let guest = try? shared.guest() else { return }
      var number = 0
      while !isOver.withLock({ $0 }) {
        number += 1
        let incarnation = try? guest.peer("watch")
          .sendNow(
            number, OutgoingLabel("Int", [:], of: Int.self, "send", "quiet"), .seconds(60),
            until: .now + .seconds(60))
        // Between two incarnations, no member has the name.
        guard let incarnation else { continue }
        sent.withLock { $0["\(number)"] = incarnation.rawValue }
      }
      guest.leave()
    }
    let end = Result { try body() }
    isOver.signal { $0 = true }
    thread.join()
    try end.get()
    return sent.withLock { $0 }
  }

  @Test func aPastLifesMessageIsNeverHeardByTheNext() throws {
    var heard: [[String]] = []
    let sent = try whileSending {
      // On a busy machine, the sender may not run during most incarnations.
      try eventually("enough messages are heard") {
        let hearer = try start(.hearOften(meeting.path, "watch", times: isLong ? 1000 : 100))
        let outcome = try hearer.outcome(within: .seconds(120))
        #expect(outcome.output.hasSuffix("done\n"), "\(outcome.errors)")
        heard += try lines(hearer, "heard")
        return heard.count > 20 && Set(heard.map { $0[2] }).count > 10
      }
    }
    for line in heard { #expect(sent[line[1]] == line[2], "\(line)") }
  }

  @Test func nothingForOneThatWasKilledIsHeardByTheNext() throws {
    var heard: [[String]] = []
    let sent = try whileSending {
      for _ in 0..<(isLong ? 200 : 20) {
        let hearer = try start(.hear(meeting.path, "watch"))
        try eventually("it has heard something") { try !lines(hearer, "heard").isEmpty }
        try kill(hearer)
        // A killed receiver may leave half of its last line.
        heard += try lines(hearer, "heard").filter { $0.count == 3 && $0[2].utf8.count == 16 }
      }
    }
    #expect(Set(heard.map { $0[2] }).count >= 20)
    for line in heard { #expect(sent[line[1]] == line[2], "\(line)") }
  }

  // MARK: Many

  @Test func eightAskersGetTheirOwnAnswers() throws {
    let responder = try start(.respond(meeting.path, "watch", .quietly))
    let each = (isLong ? 100_000 : 3_200) / 8
    let askers = try (0..<8).map { index in
      try Running(
        .request(
          meeting.path, of: "watch", (index * each + 1)...((index + 1) * each),
          as: index.isMultiple(of: 2) ? "asker \(index)" : nil))
    }
    for asker in askers {
      let outcome = try asker.outcome(within: .seconds(isLong ? 600 : 120))
      #expect(outcome.output == "asking\ndone\n", "\(outcome.errors)")
    }
    let container = try meeting.another().storage
    #expect(try container.root.descriptor.open("staging", [.readOnly, .directory]).names() == [])
    #expect(try container.root.descriptor.open("guests", [.readOnly, .directory]).names() == [])
    try kill(responder)
  }

  /// The notice of the responder's end may arrive before the reply, and the reply counts.
  @Test(arguments: [false, true])
  func anAnswerThatWasGivenBeforeTheEndCounts(_ isWord: Bool) throws {
    let asker = try meeting.another().join(as: "phone")
    let shared = try meeting.another()
    for number in 0..<(isLong ? 5000 : 250) {
      let member = try shared.join(as: "watch")
      let isAnswered = Monitor(false)
      let responding = member.respond(toKind: nil) { request in
        if isWord { try? request.reply(true) } else { try? request.reply(number * 2) }
        isAnswered.signal { $0 = true }
      }
      let thread = try Thread("leaving") {
        _ = isAnswered.wait(until: .now + patience) { $0 ? true : nil }
        member.leave()
      }
      let peer = asker.peer("watch")
      if isWord {
        #expect(try peer.request(number, as: Bool.self))
      } else {
        #expect(try peer.request(number, as: Int.self) == number * 2)
      }
      thread.join()
      responding.stop()
    }
    asker.leave()
  }

  // MARK: Requesters that die

  @Test(arguments: ["phone", nil])
  func anAskerThatIsKilledLeavesNothing(_ name: String?) throws {
    let watch = try meeting.another().join(as: "watch")
    let kept = Heard<Request>()
    let isKept = Monitor(true)
    let responding = watch.respond(toKind: nil) { request in
      if isKept.withLock({ $0 }) { return kept.add(request) }
      try? request.reply(7)
    }
    let asker = try start(.request(meeting.path, of: "watch", 1...1, as: name))
    try kept.wait("the request") { $0.count == 1 }
    try kill(asker)
    // No requester waits for this reply, and sending it is not an error.
    try kept.all[0].reply(2)
    isKept.withLock { $0 = false }
    if let name {
      let phone = try meeting.another().join(as: name)
      let live = "\(meeting.path)/members/\(name)/live"
      let folders = try Descriptor.open(path: live, [.readOnly, .directory]).names()
      #expect(folders == [phone.incarnation.rawValue])
      #expect(try phone.peer("watch").request(1, as: Int.self) == 7)
      phone.leave()
    } else {
      let guest = try meeting.another().guest()
      let guests = "\(meeting.path)/guests"
      #expect(try Descriptor.open(path: guests, [.readOnly, .directory]).names().count == 1)
      #expect(try guest.peer("watch").request(1, as: Int.self) == 7)
      guest.leave()
    }
    let own = "\(meeting.path)/members/watch/live/\(watch.incarnation)"
    #expect(try Descriptor.open(path: own, [.readOnly, .directory]).names() == [])
    responding.stop()
    watch.leave()
  }
}
