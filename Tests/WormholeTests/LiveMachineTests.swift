import TestSupport
import TestTraits
import Testing

@testable import Wormhole
@testable import WormholeContainerStorage
@testable import WormholeSyscalls

private typealias Machine = LiveMachine<Int, Int, Int>

/// The state machine of immediate messages in every order of arrivals, notices, listings and
/// handlers.
///
/// The model has a folder, the kernel's notices, and a runner as `Worker` is; it does the machine's
/// work as `LiveMailbox` does.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct LiveMachineTests {
  @Test func inEveryOrderEachRequestIsHandledOnce() {
    check(World(["a", "a"], handlers: 1, disturbances: 1), states: 25_000)
  }

  @Test func inEveryOrderRequestsKeepTheirOrder() {
    check(World(["a", "b", "a"], handlers: 2, disturbances: 0), states: 15_000)
  }

  /// - Parameter states: fewer states would mean that the model does not do what it describes.
  private func check(_ start: World, states: Int) {
    let walk = StateWalk(from: start)
    #expect(walk.violations == [])
    #expect(walk.count > states)
  }
}

private struct World: WalkedState {
  enum Notice: Hashable {
    case name(Int)
    case loss
  }
  struct Listing: Hashable {
    let began: Int64
    let losses: Int
    let names: Set<Int>
  }

  var machine = Machine(youngUntil: Instant(nanoseconds: 5), mostEarlyBytes: 100)
  /// The kinds of the requests to send, and the moments of those sent.
  let kinds: [String]
  var sent: [Int64] = []
  var clock: Int64 = 1
  var folder: Set<Int> = []
  var notices: [Notice] = []
  var isListingDue = true
  var listing: Listing?
  var isTriggered = false
  var isRunning = false
  var isAlarmSet = false
  var isYoung = true
  var reading: LiveName?
  var handled: [Int] = []
  var refused: [Int] = []
  var violation: String?

  /// The handlers to add: at last one of all kinds.
  var additions: Int
  private(set) var added: [Int] = []
  // How often each of these still happens, and all of them together.
  var losses = 1
  var failures = 1
  var closes = 1
  var removals = 1
  var disturbances: Int

  init(_ kinds: [String], handlers: Int, disturbances: Int) {
    self.kinds = kinds
    additions = handlers
    self.disturbances = disturbances
  }

  private var now: Instant { Instant(nanoseconds: isYoung ? 0 : 10) }

  private func name(_ index: Int) -> LiveName {
    LiveName(
      MessageStamp(epoch: 1, nanoseconds: sent[index]), .question,
      id: "000000000000000\(index)", deadline: .max)
  }

  private func index(_ name: LiveName) -> Int { sent.firstIndex(of: name.sent)! }

  var successors: [World] {
    guard violation == nil else { return [] }
    var next: [World] = []
    func move(_ isPossible: Bool, _ change: (inout World) -> Void) {
      guard isPossible else { return }
      var world = self
      change(&world)
      next.append(world)
    }
    move(sent.count < kinds.count) { $0.send(isLost: false) }
    move(!notices.isEmpty) { $0.notice() }
    move(isListingDue && listing == nil && !machine.isClosed) { $0.beginListing() }
    if let listing {
      // A listing is no snapshot: it may show some of the arrivals since its beginning.
      let later = folder.subtracting(listing.names)
      for shown in Set([[], later, Set(later.max().map { [$0] } ?? [])]) {
        move(true) { $0.endListing(shown) }
      }
    }
    move(reading == nil && (isTriggered || isRunning)) { $0.run() }
    move(reading != nil) { $0.read() }
    move(additions > 0) { world in
      world.additions -= 1
      let kind = world.additions == 0 ? nil : "a"
      world.added.append(world.machine.add(answering: kind, world.additions))
      if world.machine.deliverEarly() { world.isTriggered = true }
    }
    move(isYoung) { world in
      world.isYoung = false
      if world.isAlarmSet { world.isTriggered = true }
    }
    if next.isEmpty, let violated = violatedRest { return [violated] }
    guard disturbances > 0 else { return next }
    let usual = next.count
    move(losses > 0 && sent.count < kinds.count) { $0.send(isLost: true) }
    move(failures > 0 && reading != nil) { world in
      world.failures -= 1
      (world.reading, world.isListingDue) = (nil, true)
    }
    move(removals > 0 && !added.isEmpty) { world in
      world.removals -= 1
      _ = world.machine.remove(world.added.removeLast())
    }
    move(closes > 0) { world in
      world.closes -= 1
      world.machine.close()
    }
    for index in next[usual...].indices { next[index].disturbances -= 1 }
    return next
  }

  private mutating func send(isLost: Bool) {
    clock += 1
    sent.append(clock)
    folder.insert(sent.count - 1)
    if isLost { losses -= 1 }
    notices.append(isLost ? .loss : .name(sent.count - 1))
  }

  private mutating func notice() {
    switch notices.removeFirst() {
    case .name(let index): machine.arrivals.notice([name(index)])
    case .loss:
      machine.arrivals.lose()
      isListingDue = true
    }
    if machine.arrivals.hasOthers { isTriggered = true }
  }

  private mutating func beginListing() {
    clock += 1
    isListingDue = false
    listing = Listing(began: clock, losses: machine.arrivals.losses, names: folder)
  }

  private mutating func endListing(_ later: Set<Int>) {
    guard let began = listing else { return }
    listing = nil
    clock += 1
    let names = began.names.union(later).map(name)
    machine.arrivals.find(names, from: began.began, to: clock, losses: began.losses)
    if machine.arrivals.hasOthers { isTriggered = true }
  }

  private mutating func run() {
    if !isRunning { (isTriggered, isRunning) = (false, true) }
    switch machine.next(now: now) {
    case nil: isRunning = false
    case .deliver(let arrival): deliver(arrival)
    case .read(let name): reading = name
    }
  }

  private mutating func read() {
    guard let name = reading else { return }
    reading = nil
    let index = index(name)
    guard folder.remove(index) != nil else { return }
    deliver(.init(name: name, content: index, kind: kinds[index], size: 1))
  }

  private mutating func deliver(_ arrival: Machine.Arrival) {
    let index = arrival.content
    expect(!(handled + refused).contains(index), "a request is handled twice")
    switch machine.taker(of: arrival, now: now) {
    case .later: if isYoung { isAlarmSet = true } else { isTriggered = true }
    case .nobody:
      expect(!isYoung, "a request is refused too early")
      refused.append(index)
    case .hearing: expect(false, "a request is taken for a message")
    case .answering:
      let earlier = (0..<index).filter { kinds[$0] == kinds[index] }
      // A request that could not be read may be handled later.
      expect(
        failures == 0 || earlier.allSatisfy((handled + refused).contains),
        "a request passes an earlier one")
      handled.append(index)
    }
  }

  /// Checks what must be so when nothing is left to do.
  private var violatedRest: World? {
    var world = self
    let isDone = folder.isEmpty && handled.count + refused.count == kinds.count
    world.expect(machine.isClosed || isDone, "a request is neither handled nor refused")
    return world.violation == nil ? nil : world
  }

  private mutating func expect(_ holds: Bool, _ text: String) {
    if !holds, violation == nil { violation = text }
  }
}

extension World: CustomStringConvertible {
  var description: String {
    """
    sent \(sent), in the folder \(folder.sorted()), notices \(notices), listing \
    \(listing.map { "\($0)" } ?? "-"), reading \(reading?.text ?? "-"), early \
    \(machine.earlyCount), handled \(handled), refused \(refused), young \(isYoung)
    """
  }
}
