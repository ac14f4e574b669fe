import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Every operation on messages, killed, suspended and failed at its system calls: at a few calls,
/// chosen at random; at all calls in a long run.
///
/// `WORMHOLE_SEED` replays a run.
@Suite(.blocking, .notSanitized("a process for each system call"))
struct MailSweepTests {
  private let seed = TestRun.seed
  private static let isLong = TestRun.isLong

  /// The disturbed operation: messages 1, 2 (a batch of 2 and 3) and 4 wait from the beginning.
  enum Operation: String, CaseIterable, Sendable {
    case sendSingle, sendBatch, sendDurable, sendNamed, receive, recover, refuse, cancel, expire
    case outcomes

    /// The peer's job; the peer is a member of its own if possible.
    func job(_ path: String, _ log: String) -> PeerJob {
      switch self {
      case .sendSingle: .send(path, from: "phone", to: "watch", 101..<103)
      case .sendBatch: .send(path, from: "phone", to: "watch", 101..<107, batch: 3)
      case .sendDurable:
        .send(path, from: "phone", to: "watch", 101..<103, durability: .power)
      case .sendNamed: .send(path, from: "phone", to: "tv", 101..<103, isNamed: true)
      case .receive, .recover, .expire: .receive(path, "watch", log: log, until: 4)
      case .refuse: .refuse(path, "watch", attempts: 2)
      case .cancel: .cancel(path, from: "phone", to: "watch")
      case .outcomes: .outcomes(path, "phone", count: 1)
      }
    }
  }

  /// One run of an operation in a container of its own.
  private struct Run {
    let operation: Operation
    let meeting: Meeting

    init(_ operation: Operation) throws {
      self.operation = operation
      meeting = try Meeting()
      try meeting.folder.write("", to: "log")
      let phone = try meeting.container.join(as: "phone")
      let watch = phone.peer("watch")
      try watch.send(1, .quick())
      try watch.send(contentsOf: [2, 3], .quick())
      if operation == .expire {
        try watch.send(9, .quick { $0.timeToLive = .nanoseconds(1) })
      }
      try watch.send(4, .quick())
      if operation == .outcomes { #expect(try watch.pendingMessages[0].cancel() == .cancelled) }
      phone.leave()
      if operation == .recover {
        let member = try meeting.container.join(as: "watch")
        let messages = try member.take(3)
        try messages[1].acknowledge()
        try meeting.folder.write("1 1 false\n2 1 false\n2 done\n3 1 false\n", to: "log")
        member.leave()
      }
    }

    func start(_ faults: String = "", trace: Bool = false) throws -> Running {
      var environment = ["WORMHOLE_FAULTS=\(faults)"]
      if trace { environment.append("WORMHOLE_FAULT_TRACE=\(meeting.folder.path)/trace") }
      return try Running(
        operation.job(meeting.path, meeting.folder.path + "/log"), environment: environment)
    }
  }

  /// The number of calls that an operation makes, and a sample of their positions.
  private func points(
    _ operation: Operation, _ random: inout SeededRandom
  ) throws -> (count: Int, drawn: [Int]) {
    let run = try Run(operation)
    _ = try run.start(trace: true).outcome()
    let count = try run.meeting.folder.read("trace").split(separator: "\n").count
    // A receiver opens its log first, and this call belongs to the test.
    let first = [.receive, .recover, .expire].contains(operation) ? 2 : 1
    let wanted = Self.isLong ? count : 2
    print("swept \(min(wanted, count)) of \(count) fault points")
    return (count, (first...count).shuffled(using: &random).prefix(wanted).sorted())
  }

  @Test(arguments: Operation.allCases)
  func killed(_ operation: Operation) throws {
    var random = SeededRandom(seed: seed)
    let (count, points) = try points(operation, &random)
    for point in points {
      let rule = "any@\(point):before:kill"
      let run = try Run(operation)
      let outcome = try run.start(rule).outcome()
      // The operation's threads make calls of their own, so the last points may not be reached.
      let wasKilled = outcome.status == .signalled(9)
      #expect(wasKilled || point > count / 2, "\(operation) \(rule) seed \(seed)")
      try check(run, outcome.output, "\(operation) \(rule) seed \(seed)")
    }
  }

  /// While the process is suspended, messages of other senders arrive; if the process is the
  /// receiver, messages can still be sent.
  @Test(arguments: Operation.allCases)
  func stopped(_ operation: Operation) throws {
    var random = SeededRandom(seed: seed)
    for point in try points(operation, &random).drawn {
      let place = "\(operation) any@\(point):before:stop seed \(seed)"
      let run = try Run(operation)
      let peer = try run.start("any@\(point):before:stop")
      try eventually("\(place): stops or ends") {
        try peer.hasEnded || Processes.isStopped(peer.child.process)
      }
      let other = try run.meeting.another().join(as: "other")
      let sent = try other.peer("watch").send(50, .quick())
      #expect(try other.peer("watch").pendingMessages.map(\.id) == [sent.id], "\(place)")
      #expect(try sent.cancel() == .cancelled, "\(place)")
      // A suspended receiver keeps its name as long as it lives, so its messages wait.
      let mayReceive = !["receive", "recover", "expire", "refuse"].contains(operation.rawValue)
      if mayReceive {
        let member = try run.meeting.another().join(as: "watch")
        let heard = Heard<Handed>()
        let receiving = try member.note(heard)
        try other.peer("watch").send(51, .quick())
        try heard.wait("\(place): it flows") { $0.contains(Handed(51)) }
        receiving.stop()
        member.leave()
        let lines = heard.all.filter { $0.number != 51 }
        try note(lines, run)
      }
      let output = try peer.waitOrGo()
      try check(run, output, place)
    }
  }

  /// An error of the system is reported truthfully, or repaired by trying again.
  @Test(arguments: Operation.allCases)
  func failed(_ operation: Operation) throws {
    var random = SeededRandom(seed: seed)
    let kinds = ["ENOSPC", "EIO", "EMFILE", "EACCES", "EROFS", "ENOMEM"]
    for point in try points(operation, &random).drawn {
      // All errors at each call would take hours; the next long run draws different errors.
      for kind in kinds.shuffled(using: &random).prefix(Self.isLong ? 2 : 1) {
        let rule = "any@\(point):before:fail=\(kind)"
        let place = "\(operation) \(rule) seed \(seed)"
        let run = try Run(operation)
        let peer = try run.start(rule)
        // A message that the system refuses to a receiver may arrive only after a minute.
        try? eventually("it ends", within: .seconds(3)) { peer.hasEnded }
        if !peer.hasEnded { try peer.child.send(.kill) }
        let outcome = try peer.outcome()
        #expect(
          [.exited(0), .exited(70), .signalled(9)].contains(outcome.status),
          "\(place): \(outcome.errors)")
        if outcome.status == .exited(70) {
          #expect(outcome.errors.contains("cannot "), "\(place): \(outcome.errors)")
        }
        try check(run, outcome.output, place)
      }
    }
  }

  // MARK: Afterwards

  private func note(_ handed: [Handed], _ run: Run) throws {
    var text = try run.meeting.folder.read("log")
    for one in handed {
      text += "\(one.number) \(one.attempt) \(one.isMarked)\n\(one.number) done\n"
    }
    try run.meeting.folder.write(text, to: "log")
  }

  /// Receives all remaining messages and compares: no acknowledged message is lost, no duplicate is
  /// unmarked, no finished message is redelivered, and no file is left over.
  private func check(_ run: Run, _ output: String, _ place: String) throws {
    let said = output.split(separator: "\n").map(String.init)
    let meeting = run.meeting
    let container = try meeting.another { $0.mailbox.attempts = 30 }
    let member = try eventually("\(place): the name is free") { try? container.join(as: "watch") }
    var (before, done) = ([Int](), Set<Int>())
    for line in try meeting.folder.read("log").split(separator: "\n") {
      let words = line.split(separator: " ")
      guard let number = Int(words[0]) else { continue }
      if words.last == "done" { done.insert(number) } else { before.append(number) }
    }
    let heard = Heard<Handed>()
    let receiving = try member.note(heard)
    try container.peer("watch").send(999, .quick())
    try heard.wait("\(place): the last") { $0.contains { $0.number == 999 } }
    try eventually("\(place): all is done") {
      try meeting.names("members/watch/claimed") == []
        && meeting.names("members/watch/inbox") == []
    }
    receiving.stop()
    let dead = Set(try container.peer("watch").deadLetters.map(\.id))
    var seen = Set(before)
    for one in heard.all {
      #expect(!done.contains(one.number), "\(one) was done: \(place)")
      if !seen.insert(one.number).inserted { #expect(one.isMarked, "\(one): \(place)") }
    }
    // A process that is cut off between claim and outcome leaves a message that may have been
    // received in time.
    #expect(heard.all.allSatisfy { $0.number != 9 || $0.isMarked }, "it was too late: \(place)")
    let numbers = seen.filter { $0 < 50 && $0 != 9 }
    switch run.operation {
    case .cancel, .outcomes, .refuse:
      // The missing messages were cancelled or dead-lettered, and each can be accounted for.
      let receipts = try meeting.names("members/phone/receipts").count
      if run.operation == .refuse {
        #expect(numbers.count + dead.count >= 4, "\(numbers) \(dead): \(place)")
      } else {
        // An outcome may have reached a process that had no time to print the outcome.
        let told = said.count + (run.operation == .cancel ? 1 : 0)
        #expect(numbers.count + 2 * receipts + told >= 4, "\(numbers) \(receipts): \(place)")
      }
    default: #expect(numbers == [1, 2, 3, 4], "\(place)")
    }
    let sent = heard.all.filter { (101..<900).contains($0.number) }.map(\.number)
    if run.operation == .sendNamed {
      try checkNamed(meeting, container, said, place)
    } else if run.operation.rawValue.hasPrefix("send") {
      let all = sent + before.filter { (101..<900).contains($0) }
      #expect(all.count == Set(all).count, "twice: \(place)")
      if let last = said.compactMap({ Int($0) }).last {
        #expect(Set(all).isSuperset(of: 101...last), "\(all) of \(last): \(place)")
      }
    }
    member.leave()
    _ = try meeting.another()
    #expect(try meeting.names("staging") == [], "\(place)")
  }

  /// Messages to an absent member wait, each once, and no further id is taken.
  private func checkNamed(
    _ meeting: Meeting, _ container: SharedContainer, _ said: [String], _ place: String
  ) throws {
    // A joining member releases the ids that dead processes have left.
    try container.join(as: "tv").leave()
    let ids = try container.peer("tv").queue.map(\.id)
    #expect(ids == Array(["n101", "n102"].prefix(ids.count)), "\(place)")
    #expect(ids.count >= said.count, "\(ids) of \(said): \(place)")
    let taken = try meeting.names("members/tv/files").filter { $0 != "room" }
    #expect(taken == ids.map { "id,\($0),phone" }, "\(place)")
  }
}
