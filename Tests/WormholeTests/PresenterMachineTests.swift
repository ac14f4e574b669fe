import TestSupport
import TestTraits
import Testing

@testable import Wormhole
@testable import WormholeContainerStorage

private typealias Machine = PresenterMachine<Int, Int>

/// The presenter's state machine in every order of accesses, moves, failures, deaths and calls.
///
/// The model has a presenter with its queue, a file, a writer and a reader; it performs the
/// machine's actions as `PresentedFile` does.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct PresenterMachineTests {
  @Test func inEveryOrderEachAccessIsRepliedToAndEachPresenterResumes() {
    check(World([.relinquish, .save], Set(World.Disturbance.allCases), of: 1), states: 15_000)
  }

  @Test func inEveryOrderALateRegistrationFollowsTheFile() {
    check(World([.save], [.move, .failure], of: 2), states: 5_000)
  }

  /// A registration that completes after the presenter's end leaves nothing that is found.
  @Test func aRegistrationAfterTheEndIsHiddenAtOnce() {
    var machine = Machine([.save])
    let all = (1...3).map { Machine.Registration(guest: "g", number: $0) }
    machine.begin(at: [AccessPath("/a")])
    _ = machine.registered([all[0]])
    _ = machine.end()
    for actions in [machine.registered([all[1]]), machine.registrationFailed(after: [all[1]])] {
      let (hidden, forgotten) = registrations(actions)
      #expect(hidden == [all[1]] && forgotten == [all[1]])
    }
    let (hidden, forgotten) = registrations(machine.end())
    #expect(hidden == [] && forgotten == [])
  }

  /// A presenter that reports after the access resumes at once, but not after its own end.
  @Test func anEndedPresenterDoesNotResume() {
    var machine = Machine([.relinquish])
    machine.begin(at: [AccessPath("/a")])
    let access = Machine.PresenterAccess(
      registration: Machine.Registration(guest: "g", number: 1), access: "over")
    #expect(machine.completed(access, resume: 1).count == 1)
    _ = machine.end()
    #expect(machine.completed(access, resume: 2).isEmpty)
  }

  /// The file of the request could not be removed at first, and the notice has overtaken it.
  @Test func aRequestAfterTheEndOfItsAccessPausesNoPresenter() {
    var machine = Machine([.relinquish], mostUnasked: 2)
    machine.begin(at: [AccessPath("/a")])
    func end(_ access: String) {
      let news = PresenterNews(presenter: 1, access: access, changed: [], made: [])
      #expect(machine.tell(news, as: "g").isEmpty)
    }
    func calls(_ access: String) -> Bool {
      let question = PresenterQuestion(
        presenter: 1, access: access, process: "p", writes: true, saves: nil, deletes: nil,
        deleted: nil)
      let actions = machine.ask(question, as: "g", 1)
      if actions.count == 1, case .answer(1, holdsOff: false) = actions[0] { return false }
      return true
    }
    for access in ["1", "2", "2", "3", ""] { end(access) }
    // Of the accesses that have not asked, the last two are known.
    #expect(["1", "2", "3", ""].map(calls) == [true, false, false, true])
    #expect(machine.held.count == 2)
  }

  /// What the actions hide and forget, if they are nothing else.
  private func registrations(
    _ actions: [Machine.Action]
  ) -> (hidden: [Machine.Registration], forgotten: [Machine.Registration]) {
    var (hidden, forgotten): ([Machine.Registration], [Machine.Registration]) = ([], [])
    for action in actions {
      switch action {
      case .hide(let all): hidden += all
      case .forget(let all): forgotten += all
      default: Issue.record("\(action)")
      }
    }
    return (hidden, forgotten)
  }

  /// - Parameter states: fewer states would mean that the model does not do what it describes.
  private func check(_ start: World, states: Int) {
    let walk = StateWalk(from: start)
    #expect(walk.violations == [])
    #expect(walk.count > states)
  }
}

private struct Access: Hashable {
  enum Phase: Hashable { case idle, waiting, working, over, dead }
  let writes: Bool
  var phase = Phase.idle
  var path = ""
  /// Whether the access died after it could have written.
  var diedWorking = false
  /// The registrations asked, and those without a reply.
  var asked: Set<Int> = []
  var open: Set<Int> = []
  var careless: Set<Int> = []
  var isOver: Bool { phase == .over || phase == .dead }
}

private struct World: WalkedState {
  enum Disturbance: CaseIterable { case move, failure, death, end, timeout, lateness }
  enum Call: Hashable {
    case step(Machine.Step, Machine.PresenterAccess)
    case resume(Int)
    case report(AccessPath)
    case move
  }
  struct News: Hashable {
    let registration: Int
    let access: Int
    let changed: String?
  }

  var machine: Machine
  var hasBegun = false
  var file = "/a"
  var accesses = [Access(writes: true), Access(writes: false)]
  /// The path of each registration that accesses find, and the registrations that receive news.
  var shown: [Int: String] = [:]
  var known: Set<Int> = []
  var lastRegistration = 0
  var registrations = 0
  /// The path that is being registered.
  var registering: String?
  var isMoving = false
  var queue: [Call] = []
  /// The closures that were called and have not reported their completion.
  var called: [Call] = []
  var news: [News] = []
  /// The requests of each access whose files could not be removed at first.
  var late: [Int: [Int]] = [:]
  var isTimerSet = false
  var isChangeUnseen = false
  var given: Set<Int> = []
  var resumed: Set<Int> = []
  var violation: String?

  /// What may still happen, and how much of it does not.
  var disturbances: Set<Disturbance>
  let spared: Int

  init(_ closures: Set<Machine.Closure>, _ disturbances: Set<Disturbance>, of most: Int) {
    machine = Machine(closures)
    self.disturbances = disturbances
    spared = disturbances.count - most
  }

  var successors: [World] {
    guard violation == nil else { return [] }
    var next: [World] = []
    func move(_ isPossible: Bool, _ change: (inout World) -> Void) {
      guard isPossible else { return }
      var world = self
      change(&world)
      next.append(world)
    }
    move(!hasBegun) { world in
      world.hasBegun = true
      world.machine.begin(at: [AccessPath(world.file)])
      world.registrations = 1
    }
    for index in accesses.indices {
      let access = accesses[index]
      move(access.phase == .idle && !isMoving) { $0.ask(index) }
      move(access.open.isEmpty && canWork(index)) { $0.accesses[index].phase = .working }
      move(access.phase == .working) { $0.finish(index) }
    }
    move(registering == nil && registrations > 0) { $0.beginRegistration() }
    move(registering != nil) { $0.endRegistration(false) }
    move(!queue.isEmpty) { $0.runCall() }
    for call in called {
      move(true) { $0.complete(call, resumes: true) }
      move(isRelinquishing(call)) { $0.complete(call, resumes: false) }
    }
    move(!news.isEmpty) { $0.deliver() }
    for index in late.keys.sorted() { move(true) { $0.arriveLate(index) } }
    move(isTimerSet) { $0.look() }
    if next.isEmpty, let violated = violatedRest { return [violated] }
    guard disturbances.count > spared else { return next }
    func disturb(
      _ disturbance: Disturbance, _ isPossible: Bool, _ change: (inout World) -> Void
    ) {
      move(isPossible && disturbances.contains(disturbance)) { world in
        world.disturbances.remove(disturbance)
        change(&world)
      }
    }
    for index in accesses.indices {
      let access = accesses[index]
      disturb(.timeout, !access.open.isEmpty && canWork(index)) {
        $0.accesses[index].phase = .working
      }
      disturb(.death, [.waiting, .working].contains(access.phase)) { $0.kill(index) }
    }
    disturb(.lateness, accesses[0].phase == .idle && !isMoving) { $0.ask(0, isLate: true) }
    disturb(.failure, registering != nil && lastRegistration > 1) { $0.endRegistration(true) }
    let isWritten = accesses.contains { $0.writes && $0.phase == .working }
    disturb(.move, !isWritten && shown.values.contains(file)) { $0.moveFile() }
    disturb(.end, hasBegun && registering == nil && registrations == 0) { world in
      world.queue = []
      world.perform(world.machine.end())
    }
    return next
  }

  private func canWork(_ index: Int) -> Bool {
    accesses[index].phase == .waiting && !isMoving
      && (!accesses[index].writes || accesses.allSatisfy { $0.phase != .working })
  }

  private func isRelinquishing(_ call: Call) -> Bool {
    if case .step(.relinquish(.reading), _) = call { true } else { false }
  }

  private func question(_ index: Int, at number: Int) -> PresenterQuestion {
    PresenterQuestion(
      presenter: number, access: "\(index)", process: "\(index)", writes: accesses[index].writes,
      saves: true, deletes: nil, deleted: nil)
  }

  private mutating func ask(_ index: Int, isLate: Bool = false) {
    accesses[index].phase = .waiting
    accesses[index].path = file
    for number in shown.filter({ $0.value == file }).keys.sorted() {
      accesses[index].asked.insert(number)
      guard !isLate else {
        // The access gives up this request, as after its time to respond.
        late[index, default: []].append(number)
        continue
      }
      accesses[index].open.insert(number)
      perform(machine.ask(question(index, at: number), as: "g", 10 * number + index))
    }
  }

  private mutating func arriveLate(_ index: Int) {
    for number in late.removeValue(forKey: index) ?? [] where known.contains(number) {
      accesses[index].open.insert(number)
      perform(machine.ask(question(index, at: number), as: "g", 10 * number + index))
    }
  }

  private mutating func finish(_ index: Int) {
    accesses[index].phase = .over
    let access = accesses[index]
    let told = access.writes ? shown.filter { $0.value == access.path }.map(\.key) : []
    for number in access.asked.subtracting(access.careless).union(told).sorted() {
      news.append(
        News(
          registration: number, access: index,
          changed: told.contains(number) ? access.path : nil))
    }
    if access.writes, access.path == file { isChangeUnseen = true }
  }

  private mutating func kill(_ index: Int) {
    let access = accesses[index]
    accesses[index].phase = .dead
    accesses[index].diedWorking = access.phase == .working
    guard access.phase == .working, access.writes else { return }
    if access.path == file { isChangeUnseen = true }
    // An access that looked for presenters before the registration and arrived after it.
    let isKnown = !access.asked.isEmpty || machine.awaited.contains { $0.name.number == index }
    if !isKnown { bury(index) }
  }

  /// Another access removes that of a dead process, and notifies the presenters in its place.
  private mutating func bury(_ index: Int) {
    for number in shown.filter({ $0.value == accesses[index].path }).keys {
      news.append(News(registration: number, access: index, changed: accesses[index].path))
    }
  }

  private mutating func beginRegistration() {
    registrations -= 1
    guard !machine.isStopped, let path = machine.paths.first?.text else { return }
    lastRegistration += 1
    registering = path
    // Earlier changes concern nobody: the program reads the file after its registration.
    if lastRegistration == 1 { isChangeUnseen = false }
    shown[lastRegistration] = path
    known.insert(lastRegistration)
  }

  private mutating func endRegistration(_ fails: Bool) {
    let path = registering
    let new = Machine.Registration(guest: "g", number: lastRegistration)
    registering = nil
    if path == file { isMoving = false }
    guard !fails else {
      return perform(machine.registrationFailed(after: [new]))
    }
    let writers = accesses.indices.filter { index in
      let access = accesses[index]
      return access.writes && access.path == path
        && (access.phase == .working || access.diedWorking)
    }
    perform(
      machine.registered(
        [new], writers: Set(writers.map { .init(registration: new, name: name($0)) })))
  }

  private func name(_ index: Int) -> AccessName {
    AccessName(stamp: UInt64(index), process: "0123456789abcdef", number: index)
  }

  private mutating func moveFile() {
    let move = PresenterMove(presenter: 0, from: file, to: "/b", tells: true, inside: [])
    (file, isMoving) = ("/b", true)
    perform(machine.move(move))
    if registrations == 0 { isMoving = false }
  }

  private mutating func runCall() {
    let call = queue.removeFirst()
    switch call {
    case .step(let step, let access):
      if let instead = machine.skips(step, for: access) { return perform(instead) }
      let isOver = accesses[Int(access.access)!].phase == .over
      let isTold = !news.contains { "\($0.access)" == access.access }
      expect(
        !(isOver && isTold) || step == .relinquish(.reading) || step == .relinquish(.writing),
        "a closure is called for an access that is known to be over")
      called.append(call)
    case .resume(let code):
      expect(given.contains(code) && !resumed.contains(code), "it resumes twice")
      expect(accesses[code % 10].isOver, "it resumes before the access has ended")
      resumed.insert(code)
    case .report(let path): if machine.takeChange(path) != nil { isChangeUnseen = false }
    case .move: break
    }
  }

  private mutating func complete(_ call: Call, resumes: Bool) {
    called.removeAll { $0 == call }
    guard case .step(let step, let access) = call else { return }
    guard case .relinquish = step, resumes else {
      return perform(machine.completed(access, resume: nil))
    }
    let code = 10 * access.registration.number + Int(access.access)!
    given.insert(code)
    perform(machine.completed(access, resume: code))
  }

  private mutating func deliver() {
    let one = news.removeFirst()
    guard known.contains(one.registration) else { return }
    let changed = one.changed.map { [$0] } ?? []
    let word = PresenterNews(
      presenter: one.registration, access: "\(one.access)", changed: changed, made: [])
    perform(machine.tell(word, as: "g"))
  }

  private mutating func look() {
    isTimerSet = false
    if machine.isLate, registrations == 0, registering == nil { registrations = 1 }
    let lost = machine.held.filter { accesses[Int($0.value)!].phase == .dead }.keys
    let ended = machine.awaited.filter { accesses[$0.name.number].isOver }
    perform(machine.looked(lost: lost.sorted { $0.access < $1.access }, ended: ended))
  }

  private mutating func perform(_ actions: [Machine.Action]) {
    for action in actions { perform(action) }
    expect(
      machine.isStopped || lastRegistration == 0 || !shown.isEmpty, "no access finds the presenter")
  }

  private mutating func perform(_ action: Machine.Action) {
    // The gate is closed: the queue makes no call of the presenter.
    func add(_ call: Call) { if !machine.isStopped { queue.append(call) } }
    switch action {
    case .call(let step, let access): add(.step(step, access))
    case .answer(let code, let holdsOff):
      let (number, index) = (code / 10, code % 10)
      expect(accesses[index].open.contains(number), "a request has two replies")
      accesses[index].open.remove(number)
      if !holdsOff { accesses[index].careless.insert(number) }
    case .resume(let code): add(.resume(code))
    case .report(let path): add(.report(path))
    case .reportMove: add(.move)
    case .register: registrations += 1
    case .hide(let all): for one in all { shown[one.number] = nil }
    case .forget(let all): known.subtract(all.map(\.number))
    case .lookLater: isTimerSet = true
    }
  }

  /// Checks what must be so when nothing is left to do.
  private var violatedRest: World? {
    var world = self
    world.expect(accesses.allSatisfy(\.isOver), "an access waits for ever")
    world.expect(
      accesses.allSatisfy { $0.open.isEmpty || $0.phase == .dead }, "a request has no reply")
    if !machine.isStopped {
      world.expect(given == resumed, "it has relinquished and does not resume")
      world.expect(!isChangeUnseen, "a change is not reported")
      world.expect(shown.values.contains(file), "it does not follow the file")
      world.expect(machine.held.isEmpty, "it waits for the end of an ended access")
    }
    return world.violation == nil ? nil : world
  }

  private mutating func expect(_ holds: Bool, _ text: String) {
    if !holds, violation == nil { violation = text }
  }
}

extension World: CustomStringConvertible {
  var description: String {
    let accesses = accesses.map { "\($0.phase) \($0.path), asked \($0.asked), waits \($0.open)" }
    return """
      file \(file), accesses \(accesses), shown \(shown), registering \(registering ?? "-"), \
      queue \(queue.count), called \(called.count), news \(news.map(\.access)), \
      unseen \(isChangeUnseen), timer \(isTimerSet), held \(machine.held.count), \
      given \(given), resumed \(resumed), stopped \(machine.isStopped)
      """
  }
}
