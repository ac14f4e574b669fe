import TestSupport
import TestTraits
import Testing

@testable import WatchConnectivity

/// The session's state machine in every order of its queues.
///
/// The model has an app, a pairing, and the queues as Dispatch has them; it performs the machine's
/// actions as the session does. Each state that the given number of changes can reach is checked.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct SessionMachineTests {
  @Test func inEveryOrderTheDelegateIsToldWhatHasHappened() {
    let walk = StateWalk(from: World())
    #expect(walk.violations == [])
    // Fewer states would mean that the model does not do what it describes.
    #expect(walk.count > 10_000)
    for activation: WCSessionActivationState in [.activated, .notActivated] {
      #expect(walk.contains { $0.isAtRest && $0.machine.activation == activation })
    }
    #expect(walk.contains(where: \.hasToldChange))
  }

  /// One notice about the pairing may cover several changes.
  @Test func changesOfOneMomentAreAllReported() {
    for role in WCSession.Role.allCases {
      var machine = SessionMachine()
      _ = machine.activate(isInPlace: true)
      _ = machine.activated(with: "watch")
      #expect(machine.changes(to: .init(), active: "watch", of: role) == [])
      var now = SessionMachine.Report()
      now.watch = [true, true, false]
      (now.isCounterpartInstalled, now.isReachable) = (true, true)
      let first = role == .phone ? SessionMachine.SessionChange.watchState : .companion
      #expect(machine.changes(to: now, active: "watch", of: role) == [first, .reachability])
      #expect(machine.changes(to: now, active: "watch", of: role) == [])
    }
  }

  /// An attempt ends with its callback: until then another activation begins nothing.
  @Test func oneAttemptIsMadeAtATime() {
    var machine = SessionMachine()
    #expect(machine.activate(isInPlace: true) == [.attempt])
    #expect(machine.activate(isInPlace: true) == [])
    machine.activationFailed()
    #expect(machine.activate(isInPlace: true) == [.attempt])
    #expect(machine.activated(with: "watch") == [.observe, .tellActivation, .review])
    #expect(machine.activate(isInPlace: true) == [.tellAgain])
    #expect(machine.activate(isInPlace: false) == [.close, .holdBack(isTold: false)])
    #expect(machine.activation == .inactive)
  }

  @Test func theQueueOfAnEndedSessionIsResumedOnce() {
    var machine = SessionMachine()
    #expect(machine.isHeldBack)
    var resumes = [machine.end(), machine.end()]
    _ = machine.activate(isInPlace: true)
    _ = machine.activated(with: "watch")
    resumes.append(machine.end())
    #expect(resumes == [true, false, false])
    #expect(machine.activation == .notActivated)
    #expect(machine.watch == nil)
  }

  @Test func aChangeOfThePairingHasTheActionsOfItsKind() {
    var machine = SessionMachine()
    #expect(machine.pairingChanged(active: "watch") == [])
    _ = machine.activate(isInPlace: true)
    _ = machine.activated(with: nil)
    #expect(machine.pairingChanged(active: nil) == [.review, .observe])
    #expect(machine.pairingChanged(active: "watch") == [.connect, .review, .observe])
    machine.connected(with: "watch")
    #expect(machine.pairingChanged(active: "watch") == [.review, .observe])
    #expect(machine.pairingChanged(active: nil) == [.disconnect, .review, .observe])
    machine.connected(with: "watch")
    let change = machine.pairingChanged(active: "other")
    #expect(change == [.tellInactive, .disconnect, .holdBack(isTold: true)])
    #expect(machine.activation == .inactive)
    #expect(machine.pairingChanged(active: "watch") == [])
  }
}

private struct World: WalkedState {
  enum Work: Hashable { case activate, notice, reachability, deactivated }
  enum Call: Hashable {
    case activation, failure, again, inactive
    case hold(isTold: Bool)
    case change(SessionMachine.SessionChange)
  }
  /// What the delegate was told last.
  enum Phase: Hashable { case none, active, inactive }

  var machine = SessionMachine()
  /// The pairing as it is: the active watch, and the number of its directory.
  var active: String? = "a"
  var number = 1
  var isInPlace = true
  var connection: String?

  var work: [Work] = []
  var first: [Call] = []
  var second: [Call] = []
  var isSuspended = true

  var delegate = 1
  /// The delegate that was called about the current activation.
  var told = 0
  var phase = Phase.none
  /// The number of the directory that the delegate found when it was called last.
  var known = 0
  var isWanted = false
  var hasToldChange = false
  var violation: String?

  // How often each of these still happens.
  var activations = 2
  var pairings = 2
  var failures = 1
  var removals = 1
  var looks = 1
  var delegates = 1

  var isAtRest: Bool { work.isEmpty && first.isEmpty && (second.isEmpty || isSuspended) }
}

extension World: CustomStringConvertible {
  var description: String {
    """
    \(machine.activation) watch \(machine.watch ?? "-"), paired with \(active ?? "-") \(number), \
    work \(work), first \(first), second \(second)\(isSuspended ? " suspended" : ""), \
    delegate \(delegate) told \(told) \(phase) \(known), wanted \(isWanted)
    """
  }
}

/// The moves of the app, of other processes, and of the queues.
extension World {
  var successors: [World] {
    var next: [World] = []
    func move(_ isPossible: Bool, _ change: (inout World) -> Void) {
      guard isPossible else { return }
      var world = self
      change(&world)
      if world.isAtRest { world.rest() }
      next.append(world)
    }
    move(activations > 0) { ($0.activations, $0.work) = (activations - 1, work + [.activate]) }
    move(delegates > 0) { world in
      (world.delegates, world.delegate) = (delegates - 1, 2)
      world.work.append(.activate)
    }
    move(removals > 0 && machine.activation == .activated) {
      ($0.removals, $0.isInPlace) = (removals - 1, false)
    }
    for active in ["a", "b", nil] {
      move(pairings > 0) { world in
        world.pairings -= 1
        world.active = active
        // Like the numbers of directories, none is used twice.
        world.number = (active == nil ? -1 : 1) * (abs(number) + 1)
        if world.machine.activation == .activated { world.work.append(.notice) }
      }
    }
    move(looks > 0 && machine.activation == .activated) { world in
      world.looks -= 1
      world.work.insert(.reachability, at: 0)
    }
    move(!work.isEmpty) { $0.doWork(failing: false) }
    move(!work.isEmpty && failures > 0) { $0.doWork(failing: true) }
    move(!first.isEmpty) { $0.call($0.first.removeFirst()) }
    let isCalled = first.isEmpty && !second.isEmpty && !isSuspended
    move(isCalled) { $0.call($0.second.removeFirst()) }
    // The app activates the session in the callback about its deactivation.
    move(isCalled && second.first == .hold(isTold: true) && activations > 0) { world in
      world.activations -= 1
      world.work.append(.activate)
      world.call(world.second.removeFirst())
    }
    return next
  }

  private mutating func doWork(failing: Bool) {
    if failing { failures -= 1 }
    switch work.removeFirst() {
    case .activate:
      isWanted = true
      advance(machine.activate(isInPlace: isInPlace), failing)
    case .notice:
      let before = machine.activation
      advance(machine.pairingChanged(active: active), failing)
      if before == .activated, machine.activation == .inactive { isWanted = false }
    case .reachability: perform(.observe, failing)
    case .deactivated: advance(machine.deactivated(), failing)
    }
  }

  private mutating func advance(_ actions: [SessionMachine.Action], _ failing: Bool) {
    for action in actions { perform(action, failing) }
  }

  private mutating func perform(_ action: SessionMachine.Action, _ failing: Bool) {
    switch action {
    case .attempt:
      guard !failing else { return first.append(.failure) }
      isInPlace = true
      connection = active
      let count = second.count
      advance(machine.activated(with: active), failing)
      expect(second.count == count, "a change is told that came before the activation")
    case .tellActivation: first.append(.activation)
    case .tellAgain: second.append(.again)
    case .close: connection = nil
    case .connect:
      guard !failing else { return work.append(.notice) }
      connection = active
      machine.connected(with: active)
    case .disconnect: connection = nil
    case .tellInactive: second.append(.inactive)
    case .holdBack(let isTold): second.append(.hold(isTold: isTold))
    case .review: break
    case .observe:
      let now = SessionMachine.Report(watch: [active != nil, false, false], directory: number)
      let changes = machine.changes(to: now, active: active, of: .phone)
      second += changes.map(Call.change)
      let isOther = connection != nil && active != nil && connection != active
      expect(changes.isEmpty || !isOther, "a change is told before the deactivation it is part of")
    }
  }

  private mutating func call(_ call: Call) {
    switch call {
    case .activation:
      expect(phase == .none, "an activation is told after \(phase)")
      (phase, told, known) = (.active, delegate, number)
      if machine.activationIsTold() { isSuspended = false }
    case .failure:
      expect(phase == .none, "a failed activation is told after \(phase)")
      machine.activationFailed()
      isWanted = false
    case .again:
      guard told != delegate else { return }
      expect(phase == .active, "an activation is told again after \(phase)")
      (told, known) = (delegate, number)
    case .inactive:
      expect(phase == .active, "the start of a deactivation is told after \(phase)")
      phase = .inactive
    case .hold(let isTold):
      expect(phase == (isTold ? .inactive : .active), "the session is held back after \(phase)")
      machine.deactivating()
      (phase, told, isSuspended) = (.none, 0, true)
      work.append(.deactivated)
    case .change:
      expect(phase == .active, "a change is told after \(phase)")
      (known, hasToldChange) = (number, true)
    }
  }

  /// Checks what must be so when nothing is left to do.
  private mutating func rest() {
    expect(machine.isHeldBack == isSuspended, "the second queue is suspended without a reason")
    expect(second.isEmpty, "callbacks wait for an activation")
    expect(!machine.isActivating, "an activation does not end")
    expect(
      machine.activation == (isWanted ? .activated : .notActivated),
      "the app wants the session: \(isWanted), and it is \(machine.activation)")
    guard machine.activation == .activated else { return }
    expect(connection == active && machine.watch == active, "it is not connected with its watch")
    expect(phase == .active && told == delegate, "delegate \(told) was told \(phase)")
    expect(known == number, "a change was not told")
  }

  private mutating func expect(_ holds: Bool, _ text: String) {
    if !holds, violation == nil { violation = text }
  }
}
