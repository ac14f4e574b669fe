import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeBridge
@testable import WormholeRelay

/// Homes of queues that move, cross and end in any order, without servers.
@Suite(.blocking) struct QueueRivalTests {
  private let folder: TemporaryDirectory
  private static let (first, second) = ("000000000000000a", "000000000000000b")

  init() throws { folder = try TemporaryDirectory() }

  private func bridges(_ count: Int) throws -> [UnconnectedBridge] {
    try (0..<count).map { try UnconnectedBridge("\(folder.path)/m\($0)") }
  }

  /// Names the queue on machines that have not heard of each other: a conflict.
  private func nameQueue(on homes: [UnconnectedBridge]) throws {
    for home in homes {
      #expect(try Bridge.addQueue("jobs", of: home.container))
      home.look()
    }
  }

  private func move(_ home: UnconnectedBridge, to heir: UnconnectedBridge) throws {
    try Bridge.moveQueue("jobs", to: heir.machine, of: home.container)
    home.look()
  }

  // MARK: Moves that cross

  /// The operators of two homes each give the queue to the other one.
  @Test func ofTwoHomesThatAreGivenToEachOtherOneKeepsTheQueue() throws {
    let machines = try bridges(2)
    try nameQueue(on: machines)
    try UnconnectedBridge.exchange(machines)
    #expect(machines.allSatisfy { $0.home(of: "jobs") == $0.machine })
    try move(machines[0], to: machines[1])
    try move(machines[1], to: machines[0])
    try UnconnectedBridge.exchange(machines)
    let homes = machines.filter { $0.bridge.queues.own == ["jobs"] }
    try #require(homes.count == 1, "\(homes.count) homes")
    #expect(machines.allSatisfy { $0.home(of: "jobs") == homes[0].machine })
  }

  /// The operators of all homes give the queue on in a ring.
  @Test(arguments: [3, 4, 5], [false, true])
  func ofHomesInARingOneKeepsTheQueue(_ count: Int, _ isReversed: Bool) throws {
    var machines = try bridges(count).sorted { $0.machine < $1.machine }
    if isReversed { machines.reverse() }
    try nameQueue(on: machines)
    try UnconnectedBridge.exchange(machines)
    for (index, home) in machines.enumerated() {
      try home.container.queue("jobs", of: Int.self).send(index)
      try move(home, to: machines[(index + 1) % count])
    }
    try UnconnectedBridge.exchangeAtOnce(machines)
    let homes = machines.filter { $0.bridge.queues.own == ["jobs"] }
    try #require(homes.count == 1, "\(homes.count) homes")
    #expect(machines.allSatisfy { $0.home(of: "jobs") == homes[0].machine })
    for machine in machines { #expect(try machine.names("queues/jobs/inbox").count == 1) }
  }

  /// In a ring of four, two machines must not take the queue, whoever hears what first.
  @Test(arguments: [[0, 2, 1, 3], [2, 0, 3, 1], [3, 1, 2, 0], [1, 3, 0, 2]])
  func noTwoHomesOfARingKeepTheQueue(_ order: [Int]) throws {
    let machines = try bridges(4).sorted { $0.machine < $1.machine }
    try nameQueue(on: machines)
    try UnconnectedBridge.exchange(machines)
    for (index, home) in machines.enumerated() {
      try move(home, to: machines[(index + 3) % 4])
    }
    for _ in 0..<2 {
      for index in order { try machines[(index + 3) % 4].hear(machines[index]) }
      for index in order { try machines[index].hear(machines[(index + 3) % 4]) }
    }
    try UnconnectedBridge.exchange(machines)
    let homes = machines.filter { $0.bridge.queues.own == ["jobs"] }
    try #require(homes.count == 1, "\(homes.count) homes")
    #expect(machines.allSatisfy { $0.home(of: "jobs") == homes[0].machine })
  }

  /// The heir of one home gives its own claim to a third machine in the same moment.
  @Test func aHomeFollowsAnHeirThatGivesTheQueueAway() throws {
    let machines = try bridges(3)
    try nameQueue(on: Array(machines[0...1]))
    try UnconnectedBridge.exchange(machines)
    try move(machines[0], to: machines[1])
    try move(machines[1], to: machines[2])
    try UnconnectedBridge.exchange(machines)
    let home = machines[2].machine
    #expect(machines.map { $0.home(of: "jobs") } == [home, home, home])
    #expect(try machines[0].entry("jobs") == nil && machines[1].entry("jobs") == nil)
  }

  /// Only the heartbeats between the two moves are lost.
  @Test func aQueueThatComesBackUnseenIsGivenAwayLikeAnyOther() throws {
    let machines = try bridges(2)
    let (home, heir) = (machines[0], machines[1])
    try nameQueue(on: [home])
    try home.hear(heir)
    try heir.hear(home)
    try move(home, to: heir)
    try heir.hear(home)
    try #require(heir.home(of: "jobs") == heir.machine)
    try move(heir, to: home)
    try home.hear(heir)
    home.look()
    try #require(home.home(of: "jobs") == home.machine)
    #expect(try home.bridge.carrier.home(ofQueue: "jobs") == nil)
    try move(home, to: heir)
    let left = try home.bridge.carrier.home(ofQueue: "jobs")
    #expect(left?.machine == heir.machine && left?.term == 3)
    #expect(home.bridge.heirs["jobs"]?.term == 3)
  }

  /// A machine that has heard the home before and after two moves knows the term of the last one.
  ///
  /// Otherwise it would take the queue from a machine whose claim is older.
  @Test func theTermOfAHomeThatCameBackIsKept() throws {
    let machine = try bridges(1)[0]
    for term in [0, 2] { try machine.hear(Self.first, queues: ["jobs": term]) }
    #expect(try machine.bridge.carrier.home(ofQueue: "jobs")?.term == 2)
    let heir = Heartbeat.Heir(machine: machine.machine, term: 1, before: [Self.second])
    try machine.hear(Self.second, heirs: ["jobs": heir])
    #expect(machine.home(of: "jobs") == Self.first)
    #expect(try machine.entry("jobs") == nil)
  }

  /// An earlier home's statement that comes late, and a home that is heard twice.
  @Test func anEarlierTermMovesNothing() throws {
    let machine = try bridges(1)[0]
    try machine.hear(Self.first, queues: ["jobs": 3])
    try machine.hear(Self.first)
    for term in [2, 3] {
      try machine.hear(Self.second, queues: ["jobs": term])
      #expect(machine.home(of: "jobs") == Self.first, "term \(term)")
    }
    try machine.hear(Self.second, queues: ["jobs": 4])
    #expect(machine.home(of: "jobs") == Self.second)
    let known = try machine.bridge.carrier.home(ofQueue: "jobs")
    #expect(known?.term == 4 && known?.before == [Self.first])
  }

  /// A term that no number follows would pin the home for ever.
  @Test(arguments: [Int.max, .max - 1, Elsewhere.lastTerm + 1, -1])
  func aTermThatIsNoneMovesNothing(_ term: Int) throws {
    let machine = try bridges(1)[0]
    let heir = Heartbeat.Heir(machine: machine.machine, term: term, before: [])
    try machine.hear(Self.second, queues: ["jobs": term], heirs: ["others": heir])
    #expect(machine.home(of: "jobs") == nil && machine.home(of: "others") == nil)
    try machine.hear(Self.first, queues: ["jobs": 3])
    try machine.hear(Self.second, queues: ["jobs": term])
    #expect(machine.home(of: "jobs") == Self.first)
    #expect(try machine.bridge.carrier.home(ofQueue: "jobs")?.term == 3)
  }

  /// Files may have the term of a machine that has stated anything.
  @Test func aTermThatIsNoneIsNeitherReadNorWritten() throws {
    let machine = try bridges(1)[0]
    let list = try QueueList(of: machine.container.storage)
    let folder = try BridgeFolder([QueueList.folderName], of: machine.container.storage)
    for file in ["jobs.plist", "jobs.term"] {
      try folder.replace(file, by: ["term": .integer(.max)])
    }
    #expect(try list.entry("jobs") == QueueList.Entry())
    #expect(try list.keptTerm(of: "jobs") == nil)
    var entry = QueueList.Entry()
    entry.term = Elsewhere.lastTerm
    try list.replace("jobs", by: entry)
    machine.look()
    try machine.hear(Self.first)
    try Bridge.moveQueue("jobs", to: Self.first, of: machine.container)
    machine.look()
    #expect(machine.home(of: "jobs") == machine.machine)
    #expect(machine.bridge.queues.conflicts["jobs"] == "the home has moved as often as it can")
    #expect(try list.entry("jobs")?.term == Elsewhere.lastTerm)
  }

  // MARK: Machines that are given up

  /// The heir is given up while the home waits for the end of a lent message.
  @Test func aHomeWhoseHeirIsGivenUpKeepsTheQueue() throws {
    let machines = try bridges(2)
    let (home, heir) = (machines[0], machines[1])
    try nameQueue(on: [home])
    try home.container.queue("jobs", of: Int.self).send(1)
    try home.hear(heir)
    let work = ["jobs": WorkerStatement(home: home.machine, room: 1, held: [])]
    try home.hear(Self.first, work: work)
    let lender = QueueTraffic.Lender(queue: "jobs", machine: Self.first)
    let lent = try #require(home.bridge.queues.lenders[lender])
    try eventually("the message is lent") { !lent.fresh.isEmpty }
    let job = try #require(lent.fresh.first)
    try move(home, to: heir)
    #expect(home.bridge.queues.draining["jobs"] != nil)
    #expect(home.bridge.queues.conflicts["jobs"] == "its home moves, and waits for 1 messages")
    home.bridge.giveUp(heir.machine, .putBack)
    #expect(try lent.end(job.id, .acknowledged))
    home.look()
    #expect(home.bridge.queues.own == ["jobs"])
    let entry = try home.entry("jobs")
    #expect(entry != nil && entry?.heir == nil && entry?.term == 0)
  }

  /// The heir is given up before it has taken the queue, which is one of this machine again.
  @Test func aQueueThatComesBackFromALostHeirHasNoTrouble() throws {
    let machines = try bridges(2)
    let (home, heir) = (machines[0], machines[1])
    try nameQueue(on: [home])
    try home.hear(heir)
    try move(home, to: heir)
    #expect(home.bridge.queues.conflicts["jobs"] == "its home moves to machine \(heir.machine)")
    home.bridge.giveUp(heir.machine, .putBack)
    home.look()
    #expect(try home.entry("jobs") == nil)
    #expect(home.bridge.queues.conflicts["jobs"] == nil)
  }

  /// Otherwise the next worker would have to wait for the deadline of the lent message.
  @Test func lentMessagesGoBackWhenTheBridgeEnds() throws {
    let home = try bridges(1)[0]
    try nameQueue(on: [home])
    let jobs = home.container.queue("jobs", of: Int.self)
    try jobs.send(1)
    let work = ["jobs": WorkerStatement(home: home.machine, room: 1, held: [])]
    try home.hear(Self.first, work: work)
    let lender = QueueTraffic.Lender(queue: "jobs", machine: Self.first)
    let lent = try #require(home.bridge.queues.lenders[lender])
    try eventually("the message is lent") { !lent.fresh.isEmpty }
    #expect(try jobs.messages.map(\.state) == [.claimed])
    home.bridge.queues.stop()
    #expect(lent.count == 0)
    #expect(try jobs.messages.map(\.state) == [.interrupted])
  }

  /// A heartbeat of the lost machine that was held up on its way.
  @Test func noQueueIsGivenToAMachineThatWasGivenUp() throws {
    let machines = try bridges(2)
    let (home, heir) = (machines[0], machines[1])
    try nameQueue(on: [home])
    home.bridge.giveUp(heir.machine, .putBack)
    try home.hear(heir)
    try move(home, to: heir)
    #expect(home.bridge.queues.own == ["jobs"])
    #expect(try home.entry("jobs") != nil)
  }

  /// The last home is lost, and the queue is named anew: a machine that has seen none of the moves
  /// before follows, too.
  @Test func aQueueThatIsNamedAnewIsFollowed() throws {
    let machines = try bridges(4)
    let (former, lost, next, late) = (machines[0], machines[1], machines[2], machines[3])
    var entry = QueueList.Entry()
    entry.term = 2
    try QueueList(of: former.container.storage).replace("jobs", by: entry)
    former.look()
    try late.hear(former)
    try #require(late.home(of: "jobs") == former.machine)
    try former.hear(lost)
    try move(former, to: lost)
    try UnconnectedBridge.exchange([former, lost, next])
    try #require(next.home(of: "jobs") == lost.machine)
    for machine in [former, next, late] { machine.bridge.giveUp(lost.machine, .putBack) }
    #expect(try Bridge.addQueue("jobs", of: next.container))
    try UnconnectedBridge.exchange([former, next, late])
    #expect(former.home(of: "jobs") == next.machine)
    #expect(late.home(of: "jobs") == next.machine)
  }

  // MARK: Messages behind a move

  /// A message of a third machine that the first home hands on when the second one is home no more.
  @Test func aFormerHomeMayHandOnMessagesAfterTheNextMove() throws {
    let machines = try bridges(3)
    let (former, middle, last) = (machines[0], machines[1], machines[2])
    try nameQueue(on: [former])
    try UnconnectedBridge.exchange(machines)
    for (home, heir) in [(former, middle), (middle, last)] {
      try move(home, to: heir)
      try UnconnectedBridge.exchange(machines)
    }
    try #require(middle.home(of: "jobs") == last.machine)
    let record = StreamMessage(
      subject: "", headers: [], payload: Home.bytes("00000000000000ee"), sequence: 1,
      timestamp: 0, pending: 0)
    middle.bridge.homes["eve"] = Home(record)
    let (name, bytes) = try message()
    let flow = "0123456789abcdef"
    let bundle = FlowBundle(
      flow: flow, generation: 1, first: 1, before: .start, now: 0,
      entries: [FlowEntry(.message, to: "jobs", name, isQueue: true)], bodies: [bytes])
    let pair = try #require(middle.bridge.pair(former.machine))
    try pair.incoming.begin(flow)
    #expect(try pair.incoming.receive([(bundle, 0)]) == [.received(1)])
    #expect(try middle.names("queues/jobs/inbox").count == 1)
    #expect(try middle.names("queues/jobs/dead") == [])
  }

  /// The home's next bridge gives the messages that it had lent to other workers.
  @Test func whatWaitsGoesBackWhenTheHomesBridgeHasStartedAgain() throws {
    let machine = try bridges(1)[0]
    try machine.hear(Self.first, queues: ["jobs": 0])
    let worked = try #require(machine.bridge.queues.worked["jobs"])
    let (name, bytes) = try message()
    let job = LentQueue.Job(id: "1.1", name: name, attempt: 1, isMarked: false)
    let flow = "0123456789abcdef"
    let bundle = FlowBundle(
      flow: flow, generation: 1, first: 1, before: .start, now: 0,
      entries: [FlowEntry(.job(FlowJob(job)), to: .queue("jobs"), name)], bodies: [bytes])
    let pair = try #require(machine.bridge.pair(Self.first))
    try pair.incoming.begin(flow)
    #expect(try pair.incoming.receive([(bundle, 0)]) == [.received(1)])
    let look = try worked.queue.look()
    #expect(look.held.count == 1)
    machine.bridge.queues.worked["jobs"]?.look = look
    try machine.hear(Self.first, queues: ["jobs": 0])
    #expect(try machine.names("queues/jobs/away/inbox").count == 1)
    try machine.hear(Self.first, generation: 2, queues: ["jobs": 0])
    #expect(try machine.names("queues/jobs/away/inbox") == [])
    #expect(try machine.names("queues/jobs/away/receipts").count == 1)
    #expect(machine.bridge.queues.worked["jobs"]?.look.held.isEmpty == true)
  }

  /// Two homes are a conflict, and one gives the queue to the other, which is to move itself.
  @Test func aHomeThatIsGivenTheQueueKeepsItsOwnMoveAndFormerHomes() throws {
    let machine = try bridges(1)[0]
    var entry = QueueList.Entry()
    (entry.move, entry.before) = (Self.second, ["000000000000000c", "000000000000000d"])
    try QueueList(of: machine.container.storage).replace("jobs", by: entry)
    machine.look()
    let before = ["000000000000000d", Self.first]
    let heir = Heartbeat.Heir(machine: machine.machine, term: 1, before: before)
    try machine.hear(Self.first, heirs: ["jobs": heir])
    (entry.term, entry.before) = (1, ["000000000000000c"] + before)
    #expect(try machine.entry("jobs") == entry)
  }

  /// An operator's command comes between two looks, and a rival's heartbeat before the second one.
  @Test func aCommandThatTheBridgeHasNotReadIsNotOverwritten() throws {
    let machine = try bridges(1)[0]
    try nameQueue(on: [machine])
    func hear(term: Int) throws {
      let heir = Heartbeat.Heir(machine: machine.machine, term: term, before: [Self.first])
      try machine.hear(Self.first, heirs: ["jobs": heir])
    }
    var entry = QueueList.Entry()
    for isTakenBack in [false, true] {
      if isTakenBack {
        #expect(try !Bridge.addQueue("jobs", of: machine.container))
      } else {
        try Bridge.moveQueue("jobs", to: Self.second, of: machine.container)
      }
      entry.move = isTakenBack ? nil : Self.second
      try hear(term: entry.term + 1)
      #expect(try machine.entry("jobs") == entry)
      machine.look()
      (entry.term, entry.before) = (entry.term + 1, [Self.first])
      try hear(term: entry.term)
      #expect(try machine.entry("jobs") == entry)
    }
  }

  @Test func oneProcessChangesTheListAtATime() throws {
    let machine = try bridges(1)[0]
    let one = try QueueList(of: machine.container.storage)
    let other = try QueueList(of: machine.container.storage)
    var refusal: WormholeError?
    try one.changing("jobs", within: .zero) { () throws(WormholeError) in
      do throws(WormholeError) {
        _ = try other.replace("jobs", nil, by: QueueList.Entry())
      } catch {
        refusal = error
      }
    }
    #expect(refusal != nil)
    #expect(try other.replace("jobs", nil, by: QueueList.Entry()))
    #expect(try !one.replace("jobs", nil, by: nil))
    #expect(try one.entry("jobs") == QueueList.Entry())
  }

  /// A message to the queue of a member that wants no outcome.
  private func message() throws -> (MessageName, [UInt8]) {
    let container = try SharedContainer(directory: folder.path + "/sender")
    let member = try container.join(as: "eve")
    defer { member.leave() }
    try member.queue("jobs", of: Int.self).send(1, SendOptions(wantsOutcome: false))
    let home = try #require(try container.storage.existingMember("jobs", in: .queues))
    let inbox = try Descriptor.open(
      path: "\(folder.path)/sender/queues/jobs/inbox", [.readOnly, .directory])
    let name = try #require(try inbox.names().first.flatMap { MessageName($0) })
    guard case .sound(let bytes, _) = try home.read(name.text, in: .inbox, "read") else {
      throw TwoMachines.StillOnTheWay()
    }
    return (name, bytes)
  }
}
