import Wormhole
import WormholeContainerStorage

/// A queue with a few messages, and workers that advance step by step: the library's machine
/// decides, and each look at a directory, each rename and each removal is a step.
///
/// Schedules run the executor itself, with two workers and at most one preemption. The model stays
/// for a third worker, and for keys and late claims with more preemptions.
struct QueueWorld: ModelWorld {
  struct Rules: Hashable {
    var workers = 2
    /// The ordering key of each message; nil for none.
    var keys: [Int?] = [0, 0]
    /// How many of the messages, the last ones, arrive during the run, and go first.
    var urgent = 0
    var deaths = 0
    /// How many claims another worker may return because the handling deadline has passed.
    var expiries = 0
    var failures = 0
    /// How many messages a handler may give back.
    var requeues = 0
    var mutant: Mutants?
  }

  /// Where the file of a message is.
  enum Place: Hashable {
    case unsent, inbox, settled
    /// In the queue's `claimed/`.
    case returned(ClaimedName)
    case claimed(ClaimedName, by: Int)
  }

  struct Worker: Hashable {
    enum Phase: Hashable {
      case idle
      case listing([ClaimedName])
      /// Looks whether a worker, from the given one on, has a message of the key.
      case looking(KeyedMessages.Candidate, Int)
      case claiming(KeyedMessages.Candidate)
      /// Looks whether the claim is the first of its key, in so many parts.
      case checking(ClaimedName, Int)
      case opening(ClaimedName)
      case dead
    }
    var machine = QueueMachine()
    var phase = Phase.idle
    var lastClaim: Int
    var handling: ClaimedName?
    /// The notices that have not arrived.
    var isRinging = false
    var returned: Set<ClaimedName> = []
  }

  let rules: Rules
  let names: [MessageName]
  var places: [Place]
  var workers: [Worker]
  var budget: Rules
  /// The messages that a handler has begun with, and has not requeued by itself.
  var given: Set<Int> = []
  var violation: String?

  init(_ rules: Rules) {
    self.rules = rules
    budget = rules
    let first = rules.keys.count - rules.urgent
    names = rules.keys.indices.map { index in
      MessageName(
        isUrgent: index >= first, MessageStamp(epoch: 1, nanoseconds: Int64(index)),
        wantsReceipt: false, count: 1, id: "m\(index)",
        key: rules.keys[index].map { OrderingKey(of: "\($0)") }, from: "")
    }
    places = rules.keys.indices.map { $0 < first ? .inbox : .unsent }
    workers = (0..<rules.workers).map { Worker(lastClaim: 100 * $0) }
  }

  var isOver: Bool { places.allSatisfy { $0 == .settled } }
  var verdict: String? { nil }

  private var living: [Int] { workers.indices.filter { workers[$0].phase != .dead } }

  // MARK: Steps

  mutating func step(_ choices: inout Choices) {
    let index = choices.pick(workers.count + 1)
    guard index < workers.count else { return happen(&choices) }
    guard workers[index].phase != .dead else { return }
    switch choices.pick(4) {
    case 0: advance(index, &choices)
    case 1: endHandler(of: index, &choices)
    case 2: ring(index, &choices)
    default: die(index, &choices)
    }
  }

  /// What another process does: it sends, or looks after the workers.
  private mutating func happen(_ choices: inout Choices) {
    let message = choices.pick(names.count)
    switch places[message] {
    case .unsent:
      places[message] = .inbox
      for index in living { workers[index].isRinging = true }
      choices.tell("message \(message) is sent")
    case .claimed(let claimed, let holder):
      guard !living.isEmpty else { return }
      if workers[holder].phase != .dead {
        guard budget.expiries > 0 else { return }
        budget.expiries -= 1
      }
      giveBack(message, claimed, after: .failed)
      choices.tell("the claim of message \(message) by worker \(holder) is ended by another")
    case .inbox, .returned, .settled: return
    }
  }

  private mutating func die(_ index: Int, _ choices: inout Choices) {
    guard budget.deaths > 0, living.count > 1 else { return }
    budget.deaths -= 1
    workers[index] = Worker(phase: .dead, lastClaim: 0)
    choices.tell("worker \(index) is killed")
  }

  /// A notice arrives.
  private mutating func ring(_ index: Int, _ choices: inout Choices) {
    if workers[index].isRinging {
      workers[index].isRinging = false
      workers[index].machine.signal(isUrgent: true)
    } else if let back = workers[index].returned.min(by: { $0.text < $1.text }) {
      workers[index].returned.remove(back)
      if rules.mutant != .forgetReturned || !isListing(index) {
        workers[index].machine.came(back: back)
      }
    } else {
      return
    }
    choices.tell("worker \(index) is notified")
  }

  private func isListing(_ index: Int) -> Bool {
    if case .listing = workers[index].phase { true } else { false }
  }

  private mutating func giveBack(
    _ message: Int, _ claimed: ClaimedName, after end: AttemptEnd
  ) {
    var back = claimed.returned(after: end)
    if back?.attempt == 0, rules.mutant == .returnKeysToInbox { back = nil }
    if let back {
      places[message] = .returned(back)
      for index in living { workers[index].returned.insert(back) }
    } else {
      places[message] = .inbox
      for index in living { workers[index].isRinging = true }
    }
  }

  private func message(_ name: MessageName) -> Int { names.firstIndex(of: name)! }

  /// Whether the worker still has the claim.
  private func isHeld(_ claimed: ClaimedName, by index: Int) -> Bool {
    places[message(claimed.name)] == .claimed(claimed, by: index)
  }

  private mutating func endHandler(of index: Int, _ choices: inout Choices) {
    guard let claimed = workers[index].handling else { return }
    let message = message(claimed.name)
    let way = choices.pick(4)
    if way == 1 { guard budget.failures > 0 else { return } }
    if way > 1 { guard budget.requeues > 0 else { return } }
    workers[index].handling = nil
    letGo(claimed, index)
    guard isHeld(claimed, by: index) else {
      return choices.tell("worker \(index) is late with message \(message)")
    }
    switch way {
    case 0: places[message] = .settled
    case 1:
      budget.failures -= 1
      workers[index].machine.hold(.init(claimed: claimed, due: 0, end: .failed))
    case 2:
      budget.requeues -= 1
      given.remove(message)
      giveBack(message, claimed, after: .undone)
    default:
      budget.requeues -= 1
      giveBack(message, claimed, after: .interrupted)
    }
    let words = ["acknowledges", "fails", "requeues", "is interrupted with"]
    choices.tell("worker \(index) \(words[way]) message \(message)")
  }

  private mutating func letGo(_ claimed: ClaimedName, _ index: Int) {
    if let key = claimed.name.key { workers[index].machine.released(key) }
  }

  private mutating func advance(_ index: Int, _ choices: inout Choices) {
    switch workers[index].phase {
    case .dead: return
    case .idle: decide(index, &choices)
    case .listing(let returned):
      let start = MessageStamp(epoch: 2, nanoseconds: 0)
      let now = MessageStamp(epoch: 2, nanoseconds: 1)
      let fresh = names.indices.filter { places[$0] == .inbox }.map { names[$0] }
      _ = workers[index].machine.listed(fresh: fresh, returned: returned, before: start, now: now)
      workers[index].phase = .idle
      choices.tell("worker \(index) lists the inbox")
    case .looking(let candidate, let other):
      look(index, candidate, at: other, &choices)
    case .claiming(let candidate): claim(index, candidate, &choices)
    case .checking(let claimed, let part): check(index, claimed, part, &choices)
    case .opening(let claimed): open(index, claimed, &choices)
    }
  }

  private mutating func decide(_ index: Int, _ choices: inout Choices) {
    let isAsked = workers[index].handling == nil
    switch workers[index].machine.next(now: 0, isAsked: isAsked) {
    case .wait, .renew: return
    case .list:
      let returned = places.compactMap { place in
        if case .returned(let one) = place { one } else { nil as ClaimedName? }
      }
      workers[index].phase = .listing(returned)
      choices.tell("worker \(index) lists the returned messages")
    case .claim(let name): begin(index, .fresh(name))
    case .reclaim(let old): begin(index, .returned(old))
    case .putBack(let held):
      let message = message(held.claimed.name)
      letGo(held.claimed, index)
      guard isHeld(held.claimed, by: index) else { return }
      giveBack(message, held.claimed, after: held.end)
      choices.tell("worker \(index) returns the failed message \(message)")
    }
  }

  private mutating func begin(_ index: Int, _ candidate: KeyedMessages.Candidate) {
    let isFree = candidate.name.key == nil || rules.mutant == .claimAnyKey
    workers[index].phase = isFree ? .claiming(candidate) : .looking(candidate, 0)
  }

  private func hasClaim(_ worker: Int, _ key: OrderingKey?, except claimed: ClaimedName?) -> Bool {
    places.contains { place in
      guard case .claimed(let one, worker) = place else { return false }
      return one.name.key == key && one != claimed
    }
  }

  private mutating func look(
    _ index: Int, _ candidate: KeyedMessages.Candidate, at other: Int, _ choices: inout Choices
  ) {
    let key = candidate.name.key!
    choices.tell("worker \(index) looks at worker \(other)")
    if hasClaim(other, key, except: nil) {
      workers[index].machine.found(key, inUseFor: candidate, until: 0)
      workers[index].phase = .idle
    } else {
      let isLast = other + 1 == workers.count
      workers[index].phase = isLast ? .claiming(candidate) : .looking(candidate, other + 1)
    }
  }

  private mutating func claim(
    _ index: Int, _ candidate: KeyedMessages.Candidate, _ choices: inout Choices
  ) {
    let message = message(candidate.name)
    workers[index].lastClaim += 1
    let claim = workers[index].lastClaim
    let (from, claimed): (Place, ClaimedName) =
      switch candidate {
      case .fresh(let name): (.inbox, ClaimedName(name, attempt: 1, claim: claim))
      case .returned(let old): (.returned(old), old.next(claim: claim))
      }
    guard places[message] == from else {
      workers[index].phase = .idle
      return choices.tell("worker \(index) finds message \(message) gone")
    }
    places[message] = .claimed(claimed, by: index)
    let isSure = candidate.name.key == nil || rules.mutant == .trustClaim
    workers[index].phase = isSure ? .opening(claimed) : .checking(claimed, 0)
    if isSure, let key = candidate.name.key { workers[index].machine.took(key, claimed) }
    choices.tell("worker \(index) claims message \(message)")
  }

  /// Looks at the returned messages, at each worker, and at the returned messages again.
  private mutating func check(
    _ index: Int, _ claimed: ClaimedName, _ part: Int, _ choices: inout Choices
  ) {
    let (key, last) = (claimed.name.key!, workers.count + 1)
    let isFound =
      if part == 0 || part == last {
        places.contains { place in
          guard case .returned(let one) = place else { return false }
          return one.name.key == key && one.name < claimed.name
        }
      } else {
        hasClaim(part - 1, key, except: claimed)
      }
    choices.tell("worker \(index) checks its claim, part \(part)")
    if isFound {
      workers[index].machine.found(key, inUseFor: nil, until: 0)
      workers[index].phase = .idle
      guard isHeld(claimed, by: index) else { return }
      giveBack(message(claimed.name), claimed, after: .undone)
    } else if part == last {
      workers[index].machine.took(key, claimed)
      workers[index].phase = .opening(claimed)
    } else {
      workers[index].phase = .checking(claimed, part + 1)
    }
  }

  /// An urgent message may have come after the claim.
  private func isEarlier(_ other: Int, than claimed: ClaimedName) -> Bool {
    names[other] < claimed.name && !names[other].isUrgent
  }

  private mutating func open(_ index: Int, _ claimed: ClaimedName, _ choices: inout Choices) {
    let message = message(claimed.name)
    workers[index].phase = .idle
    guard isHeld(claimed, by: index) else {
      letGo(claimed, index)
      return choices.tell("worker \(index) finds its claim of message \(message) ended")
    }
    choices.tell("worker \(index) handles message \(message), attempt \(claimed.attempt)")
    workers[index].handling = claimed
    if !given.insert(message).inserted, !claimed.isRepeated {
      violation = "a redelivery is not marked"
    }
    for other in names.indices where other != message && names[other].key == claimed.name.key {
      guard claimed.name.key != nil else { continue }
      switch places[other] {
      case .claimed(let one, let holder) where workers[holder].handling == one:
        violation = "two messages of a key are handled at the same time"
      case .claimed, .returned:
        if isEarlier(other, than: claimed) { violation = "a later message of a key goes first" }
      case .inbox where isEarlier(other, than: claimed):
        violation = "a later message of a key goes first"
      case .inbox, .unsent, .settled: continue
      }
    }
  }
}
