import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// What a carrier does for other machines on threads of its own, and moves of homes.
@Suite(.blocking) struct CarrierWorkerTests {
  private static let machine = "0123456789abcdef"

  private let meeting: Meeting
  private let phone: Member
  private let carrier: Carrier
  private let printer: Proxy

  init() throws {
    func adjust(_ options: inout Options) {
      Meeting.havePatience(&options)
      options.wakeGrace = .seconds(600)
    }
    meeting = try Meeting(adjust)
    phone = try meeting.container.join(as: "phone")
    carrier = try Carrier(meeting.another(adjust))
    printer = try carrier.proxy(of: .member("printer"), on: Self.machine)
  }

  @discardableResult
  private func send(_ number: Int) throws -> Sent {
    try phone.peer("printer").send(number, .quick { $0.wantsOutcome = true })
  }

  // MARK: Changes of channels

  @Test func eachChangeOfAnotherMachineIsAnswered() throws {
    let worker = ChangeWorker(carrier)
    let answers = Heard<Carrier.ChannelAnswer?>()
    func answer(
      to channel: String, _ operation: String, expected: Int?, _ value: Int
    ) throws -> Carrier.ChannelAnswer? {
      let count = answers.count
      let change = Carrier.ChannelChange(
        channel: channel, operation: operation, expected: expected, value: .integer(Int64(value)))
      worker.make(change, for: "there") { answers.add($0) }
      try answers.wait("an answer to \(operation)") { $0.count > count }
      return answers.all[count]
    }
    let made = try #require(try answer(to: "seats", "a", expected: 0, 40))
    #expect(made.result == .made && made.version == 1)
    let other = try #require(try answer(to: "seats", "b", expected: 7, 39))
    #expect(other.result == .differs && other.version == 1 && other.value == .integer(40))
    let invalid = try #require(try answer(to: "", "c", expected: nil, 1))
    #expect(invalid.result == .refused && invalid.reason?.isEmpty == false)
    #expect(try meeting.container.channel("seats", of: Int.self).value == 40)
    // Whoever asks again is told where the channel is by then.
    _ = try carrier.giveAway("seats", to: "elsewhere")
    let moved = try #require(try answer(to: "seats", "d", expected: nil, 38))
    #expect(moved.result == .unreachable)
    #expect(try meeting.container.channel("seats", of: Int.self).value == 40)
    worker.stop()
  }

  @Test func onlyTheLatestWaitingChangeOfAMachineIsMade() throws {
    let seats = meeting.container.channel("seats", of: Int.self)
    try seats.put(0)
    let lock = try HeldLock(of: "seats", in: meeting)
    let worker = ChangeWorker(carrier)
    let answered = Heard<Int>()
    func make(_ number: Int, for machine: String) {
      let change = Carrier.ChannelChange(
        channel: "seats", operation: "\(number)", expected: nil, value: .integer(Int64(number)))
      worker.make(change, for: machine) { answer in
        answered.add(answer?.result == .made ? number : -number)
      }
    }
    make(1, for: "a")
    try eventually("the first change waits for the lock") {
      try meeting.bytes(of: "channels/seats/lock/1").dropFirst(64).contains { $0 != 0 }
    }
    make(2, for: "b")
    make(3, for: "b")
    make(4, for: "c")
    lock.release()
    try answered.wait("the last change") { $0.last == 4 }
    #expect(answered.all == [1, 3, 4])
    #expect(try seats.value == 4)
    worker.stop()
  }

  // MARK: Wakes

  @Test func whoeverAskedForAWakeLearnsTheReason() throws {
    let answers = Heard<String?>()
    let running = WakeWorker(carrier, "phone")
    running.wake { answers.add($0) }
    try answers.wait("it runs") { $0 == [nil] }
    running.stop()
    let unknown = WakeWorker(carrier, "nobody")
    unknown.wake { answers.add($0) }
    try answers.wait("nothing is registered") { $0.count == 2 }
    #expect(answers.all[1] == "no launch command is registered")
    unknown.stop()
  }

  @Test func aWakeIsTakenOnceAndFailsUnderItsOwnIDOnly() throws {
    let slot = try WakeRecord.slot(of: "printer", in: meeting.container.storage)
    func ask(_ id: String, of machine: String?) throws {
      let now = meeting.container.options.environment.sinceBoot()
      let record = WakeRecord(
        id: id, started: now, by: "test", program: "spooler", machine: machine, before: nil)
      try slot.change("wake") { _ in .put(try record.encoded()) }
    }
    #expect(try printer.takeWake() == nil)
    for other in [nil, "another machine"] {
      try ask("0000000000000001", of: other)
      #expect(try printer.takeWake() == nil)
    }
    try ask("0000000000000002", of: Self.machine)
    #expect(try printer.takeWake() == "0000000000000002")
    let taken = try #require(try WakeRecord(slot.read()))
    let own = ProcessIdentity.current
    #expect(taken.process == own.process && taken.namespace == own.namespace)
    #expect(taken.ticks == ProcessStatus(of: own.process)?.started && taken.failure == nil)
    #expect(try printer.takeWake() == nil)
    try printer.failWake("0000000000000001", "no ink")
    #expect(try WakeRecord(slot.read()) == taken)
    try printer.failWake(taken.id, "no paper")
    let failed = try #require(try WakeRecord(slot.read()))
    #expect(failed.failure == "no paper")
    let ended = try #require(failed.ended)
    #expect(ended >= failed.started)
  }

  // MARK: Homes that move

  @Test func aWaitingMessageIsRemovedAloneAndKnowsItsOrigin() throws {
    let (first, second) = (try send(1), try send(2))
    let names = try printer.waiting()
    #expect(names.map(\.id) == [first.id, second.id])
    // A message of this machine has no origin.
    #expect(try printer.origin(ofWaiting: names[0]) == nil)
    let storage = meeting.container.storage
    let home = try #require(try storage.existingMember("printer"))
    guard case .sound(let bytes, _) = try home.read(names[0].text, in: .inbox, "read") else {
      throw Missing()
    }
    let directory = try storage.bridge(["in"])
    let carried = try CarriedMessage(names[0], bytes, .default).delivered(
      from: .string("from 1"), expires: Date() + 3600, isRepeated: false)
    try storage.replace(names[0].text, in: directory.descriptor, by: carried, sync: true)
    let arrival = try carrier.arrivalName(of: names[0])
    #expect(
      try carrier.deliver(names[0].text, in: directory, as: arrival, to: .member("scanner")))
    let scanner = try carrier.proxy(of: .member("scanner"), on: Self.machine)
    #expect(try scanner.waiting() == [arrival])
    #expect(try scanner.origin(ofWaiting: arrival) == .string("from 1"))
    #expect(try scanner.origin(ofWaiting: names[1]) == nil)
    // Repeated, the removal changes nothing.
    for _ in 1...2 { try printer.remove(waiting: names[0]) }
    #expect(try printer.waiting() == [names[1]])
    try scanner.remove(waiting: arrival)
    #expect(try scanner.waiting() == [])
  }

  /// After a power cut, the message would be returned to its sender's machine a second time.
  @Test func aReturnedMessageIsRemovedDurably() throws {
    let sent = try send(1)
    let name = try #require(try printer.waiting().first)
    let calls = try FaultPoints.with { try printer.remove(waiting: name) }
    let removal = calls.lastIndex { $0.hasPrefix("unlink ") && $0.hasSuffix("inbox/\(name.text)") }
    let sync = calls.lastIndex { $0.hasPrefix("fsync ") && $0.hasSuffix("members/printer/inbox") }
    let (first, last) = (try #require(removal), try #require(sync))
    #expect(first < last)
    #expect(try printer.waiting() == [])
    withExtendedLifetime(sent) {}
  }

  @Test func aNameIsGivenBackOnceNothingIsInTransit() throws {
    let (kept, dropped) = (try send(1), try send(2))
    let names = try printer.waiting()
    for name in names { #expect(try printer.claim(name)) }
    let error = try failure { try printer.release() }
    #expect(error.code == .conflict && error.subject == "printer")
    #expect(error.reason == "2 messages to it are in transit")
    #expect(try failure { _ = try meeting.another().join(as: "printer") }.code == .nameTaken)
    #expect(try dropped.cancel() == .requested)
    for name in names { try printer.takeBack(name) }
    #expect(dropped.waitForEnd(until: .now + patience) == .cancelled)
    #expect(try printer.waiting().map(\.id) == [kept.id])
    try printer.release()
    let member = try meeting.another().join(as: "printer")
    try member.take(1)[0].acknowledge()
    member.leave()
    #expect(kept.waitForEnd(until: .now + patience) == .delivered)
  }

  @Test func aNameInUseOrWithClaimsIsNotHeld() throws {
    func refusal() throws -> WormholeError {
      try failure {
        try carrier.holding("watch", to: "move member") {
          _ = Issue.record("the body runs")
        }
      }
    }
    let watch = try meeting.another().join(as: "watch")
    #expect(try refusal().code == .nameTaken)
    try phone.peer("watch").send(1, .quick())
    let message = try watch.take(1)[0]
    watch.leave()
    let error = try refusal()
    #expect(error.code == .conflict && error.operation == "move member")
    #expect(error.reason == "it has claimed messages that no program has settled")
    withExtendedLifetime(message) {}
    let next = try meeting.another().join(as: "watch")
    try next.take(1)[0].acknowledge()
    next.leave()
    #expect(try carrier.holding("watch", to: "move member") { 7 } == 7)
  }

  @Test func aQueueIsKeptOnlyBeforeItsProxyExists() throws {
    try carrier.keep("jobs")
    #expect(try meeting.container.queues() == [])
    try carrier.leave("jobs", to: Self.machine, term: 1)
    #expect(try carrier.home(ofQueue: "jobs")?.isSettling == true)
    let home = try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
    let presence = try #require(try home.takePresence())
    let error = try failure { try carrier.keep("jobs") }
    #expect(error.code == .nameTaken && error.subject == "jobs")
    #expect(error.reason == "another process has the name")
    presence.release()
    try carrier.keep("jobs")
    #expect(try carrier.home(ofQueue: "jobs") == nil)
    _ = try carrier.proxy(ofQueue: "jobs", on: Self.machine, term: 2)
    try carrier.keep("jobs")
    #expect(try carrier.home(ofQueue: "jobs")?.machine == Self.machine)
  }
}
