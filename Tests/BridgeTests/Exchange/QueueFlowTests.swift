import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeBridge

/// Lent messages and their ends between two machines, without servers.
@Suite(.blocking) struct QueueFlowTests {
  /// What the home lends, and the ends that come back.
  private final class Home: FlowJobs {
    var waiting: [FlowEntry] = []
    var bodies: [String: [UInt8]] = [:]
    var ends: [String: [LentQueue.End]] = [:]

    func entries(for machine: String) -> [FlowEntry] { waiting }
    func bound(_ entries: [FlowEntry]) { waiting.removeAll { entries.contains($0) } }
    func body(of entry: FlowEntry) -> [UInt8]? { entry.job.flatMap { bodies[$0.id] } }
    func settle(_ file: String, of queue: String) {}
    func end(_ entry: FlowEntry, by machine: String) {
      guard case .worked(let job, let end) = entry.kind else { return }
      ends[job.id, default: []].append(end)
    }
  }

  private let machines: TwoMachines
  private let home = Home()
  private let jobs: Queue<Int>

  init() throws {
    machines = try TwoMachines()
    jobs = machines.there.queue("jobs")
    _ = try machines.opened().there.residents.proxy(
      of: .queue("jobs"), on: TwoMachines.hereName)
  }

  /// The sides, with what a bridge gives its flows.
  private func opened() throws -> QueueTraffic {
    let (here, there) = try machines.opened()
    here.out.jobs = home
    here.incoming.jobs = home
    let traffic = QueueTraffic()
    there.out.jobs = traffic
    let proxy = try #require(there.residents[.queue("jobs")])
    traffic.worked["jobs"] = QueueTraffic.Worked(
      machine: TwoMachines.hereName, queue: try WorkedQueue(proxy), heard: .now)
    return traffic
  }

  private func pump() throws {
    let traffic = try opened()
    defer { traffic.stop() }
    let look = try traffic.worked["jobs"]?.queue.look()
    traffic.worked["jobs"]?.look = try #require(look)
    try machines.pump()
  }

  /// A message in the queue of the home.
  private func message(_ number: Int) throws -> (MessageName, [UInt8]) {
    let queue = machines.here.queue("jobs", of: Int.self)
    try queue.send(number)
    let names = try machines.names("here/queues/jobs/inbox")
    let last = try #require(names.last)
    let name = try #require(MessageName(last))
    let directory = try #require(
      try machines.here.storage.existingMember("jobs", in: .queues))
    guard case .sound(let bytes, _) = try directory.read(name.text, in: .inbox, "read") else {
      throw TwoMachines.StillOnTheWay()
    }
    return (name, bytes)
  }

  private func lend(
    _ number: Int, attempt: Int = 1, isMarked: Bool = false
  ) throws -> String {
    let (name, bytes) = try message(number)
    let job = LentQueue.Job(
      id: "\(number).\(attempt)", name: name, attempt: attempt, isMarked: isMarked)
    home.bodies[job.id] = bytes
    home.waiting.append(FlowEntry(.job(FlowJob(job)), to: .queue("jobs"), name))
    return job.id
  }

  private func handle(
    _ count: Int, _ body: @escaping @Sendable (Int, Message) throws -> Void
  ) throws -> [String] {
    let heard = Heard<String>()
    let working = try jobs.work { number, message in
      try body(number, message)
      heard.add("\(number) \(message.attempt) \(message.isRedelivered)")
    }
    try heard.wait("\(count) jobs", within: patience) { $0.count >= count }
    working.stop()
    return heard.all
  }

  @Test func aLentMessageIsHandledAndItsEndComesBack() throws {
    let (first, second, third) = (
      try lend(1), try lend(2, attempt: 2), try lend(3, isMarked: true)
    )
    try pump()
    #expect(try machines.names("there/queues/jobs/inbox") == [])
    #expect(try machines.names("there/queues/jobs/away/inbox").count == 1)
    let handled = try handle(3) { _, _ in }
    #expect(Set(handled) == ["1 1 false", "2 2 true", "3 1 true"])
    try eventually("the ends are there") {
      try machines.names("there/queues/jobs/away/receipts").count == 3
    }
    try pump()
    #expect(home.ends == [first: [.acknowledged], second: [.acknowledged], third: [.acknowledged]])
    try pump()
    #expect(try machines.names("there/queues/jobs/away/receipts") == [])
    #expect(try machines.names("there/queues/jobs/away/workers") == [])
  }

  @Test func whatNoWorkerCanHaveIsGivenBack() throws {
    let ids = [try lend(1), try lend(2, attempt: 2), try lend(3, isMarked: true)]
    try pump()
    let traffic = try opened()
    try traffic.worked["jobs"]?.queue.giveBack()
    traffic.stop()
    try pump()
    for id in ids { #expect(home.ends[id] == [.undone]) }
  }

  /// A message that its worker could not handle is dead for the home, too.
  @Test func aDeadLetterIsTheHomes() throws {
    var options = Options()
    options.mailbox.retryDelay = .milliseconds(1)
    options.mailbox.attempts = 3
    let id = try lend(1, attempt: 2)
    try pump()
    struct Refused: Error {}
    let queue = try SharedContainer(directory: machines.folder.path + "/there", options: options)
      .queue("jobs", of: Int.self)
    let working = try queue.work { _, _ in throw Refused() }
    try eventually("it has failed") {
      try machines.names("there/queues/jobs/away/receipts").count == 1
    }
    working.stop()
    try pump()
    guard case .dead(let reason, let attempts)? = home.ends[id]?.first else {
      Issue.record("\(home.ends)")
      return
    }
    #expect(attempts == 3 && reason.contains("Refused"))
    try pump()
    #expect(try machines.names("there/queues/jobs/away/dead") == [])
  }

  /// A message that was long under way may be another worker's by now.
  @Test func aMessageThatArrivesLateIsDropped() throws {
    _ = try lend(1)
    _ = try opened()
    let bundles = try machines.published()
    let there = try machines.opened().there
    for bundle in bundles { try there.incoming.begin(bundle.flow) }
    let delay = LentQueue.deadline / 2 / .nanoseconds(1)
    _ = try there.incoming.receive(bundles.map { (bundle: $0, delay: Int64(delay)) })
    #expect(try machines.names("there/queues/jobs/away/inbox") == [])
    #expect(there.incoming.position?.number == 1)
  }

  @Test func onlyTheHomeLends() throws {
    _ = try lend(1)
    _ = try opened()
    let bundles = try machines.published()
    let there = try machines.opened().there
    try there.residents.release(.queue("jobs"))
    _ = try machines.receive(bundles)
    #expect(try machines.names("there/queues/jobs/away/inbox") == [])
    withExtendedLifetime(there) {}
  }

  /// While a worker works on the queue as one of this machine, it cannot become another machine's.
  @Test func aQueueWithWorkersStays() throws {
    let working = try machines.there.queue("own", of: Int.self).work { _, _ in }
    let residents = try machines.opened().there.residents
    let error = #expect(throws: WormholeError.self) {
      try residents.proxy(of: .queue("own"), on: TwoMachines.hereName)
    }
    #expect(error?.code == .nameTaken)
    working.stop()
    try eventually("the worker has left") {
      try machines.names("there/queues/own/workers") == []
    }
    _ = try residents.proxy(of: .queue("own"), on: TwoMachines.hereName)
  }

  /// What programs of this machine send to the queue of another machine goes there.
  @Test func sentMessagesGoToTheHome() throws {
    let sender = try machines.there.join(as: "eve")
    let sent = try sender.queue("jobs", of: Int.self).send(7, SendOptions(wantsOutcome: true))
    try machines.settle()
    #expect(try machines.names("there/queues/jobs/inbox") == [])
    let heard = Heard<Int>()
    let working = try machines.here.queue("jobs", of: Int.self).work { number, message in
      #expect(message.from == "eve")
      heard.add(number)
    }
    try heard.wait("the message", within: patience) { $0 == [7] }
    try eventually("it is settled") { try machines.names("here/queues/jobs/inbox") == [] }
    working.stop()
    try eventually("the outcome comes back") {
      try machines.pump()
      return sent.waitForEnd(until: .now) == .delivered
    }
    #expect(try machines.names("there/queues/jobs/claimed") == [])
  }

  /// The bridges are killed before each of their calls, one after the other, or the call fails:
  /// each lent message is handled once, and its end comes back.
  @Test(arguments: [true, false])
  func whicheverCallIsTheLast(_ isKilled: Bool) throws {
    let step = TestRun.isLong ? 1 : 13
    var call = 1 + Int(TestRun.seed % UInt64(step))
    var (number, isReached) = (0, true)
    while isReached {
      number += 1
      let id = try lend(number)
      let rule = FaultRule(nil, number: call, persistent: isKilled, .fail(.inputOutput))
      isReached = try pump(rule)
      try pump()
      try pump()
      #expect(
        try handle(1) { _, _ in } == ["\(number) 1 false"], "call \(call), killed: \(isKilled)")
      try eventually("it has ended") {
        try machines.names("there/queues/jobs/away/receipts").count == 1
      }
      if !isReached { isReached = try pump(rule) }
      try eventually("the end comes back, call \(call)") {
        try pump()
        let left = try machines.names("there/queues/jobs/away/receipts")
        return home.ends[id]?.last == .acknowledged && left == []
      }
      call += step
    }
    #expect(call > 40, "only \(call) calls")
  }

  /// Returns whether the bridges made the call to which the rule applies.
  private func pump(_ rule: FaultRule) throws -> Bool {
    var failure: (any Error)?
    let calls = FaultPoints.with([rule]) { do { try pump() } catch { failure = error } }
    if failure != nil || rule.persistent { machines.kill() }
    return calls.count >= rule.number
  }
}
