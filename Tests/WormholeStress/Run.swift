import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// One run of a plan: starts the workers, harms and restarts them, and lets the remaining work
/// finish.
final class Run {
  /// A process of a worker, with its coming faults.
  fileprivate struct Life {
    let child: Child
    let begun: Instant
    /// The size of the worker's journal at the start of the process.
    let journal: Int
    /// Whether a second program runs between this process and the worker.
    var isBehindAnother = false
    /// Whether a call of the process is to fail, which may end the process.
    var mayFail = false
    var stoppedUntil: Instant?
  }

  let plan: Plan
  /// The times at which an inbox was removed or replaced.
  var losses: [ClosedRange<Int64>] = []
  var dice: Dice
  private var lives: [Life?]
  private var counts: [Int]
  var harm = Harm()
  /// The time until which the disk is full.
  var fullUntil: Instant?
  /// The intervals in which each worker did not run, for the checks of the durations of calls.
  private(set) var pauses: [[ClosedRange<Int64>]]
  private(set) var violations: [Violation] = []
  /// The contents of the shared files at the end.
  private(set) var lastContents: [String: SharedFiles.Content] = [:]

  init(_ plan: Plan) {
    self.plan = plan
    dice = Dice(seed: plan.seed, stream: 1)
    lives = Array(repeating: nil, count: plan.processes)
    counts = Array(repeating: 0, count: plan.processes)
    pauses = Array(repeating: [], count: plan.processes)
  }

  /// - Parameter show: is called now and then with the harm so far.
  func run(show: (Harm) -> Void) throws {
    // The container is made before its users are harmed: harm during its creation is tested
    // elsewhere.
    _ = try SharedContainer(directory: plan.container, options: Plan.options())
    try plan.files.make()
    _ = try plan.files.look()
    let end = Instant.now + plan.duration
    while Instant.now < end {
      for worker in lives.indices { try look(after: worker, until: end) }
      pause(.milliseconds(dice.number(5..<50)))
      try harmSomebody()
      try harmDirectory()
      show(harm)
    }
    empty()
    try finish()
    try drain()
    lastContents = try plan.files.look()
  }

  // MARK: Worker processes

  private func look(after worker: Int, until end: Instant) throws {
    guard let life = lives[worker] else {
      lives[worker] = try begin(worker)
      return
    }
    if let status = try life.child.poll() {
      noteEnd(of: worker, status)
      lives[worker] = nil
      return
    }
    if let due = life.stoppedUntil {
      if Instant.now >= due { try goOn(worker) }
    } else if life.worker.flatMap({ ProcessStatus(of: $0) })?.isStopped == true {
      // The worker has suspended itself, at a fault point.
      harm.stops += 1
      lives[worker]?.stoppedUntil = .now + .milliseconds(dice.number(1..<120))
      pauses[worker].append(Instant.now.nanoseconds...(.max))
    }
  }

  private func begin(_ worker: Int) throws -> Life {
    counts[worker] += 1
    harm.lives += 1
    var settings: [String] = []
    if let mutant = plan.mutant { settings.append("WORMHOLE_MUTANT=\(mutant)") }
    if dice.oneIn(3) {
      harm.clocks += 1
      // An hour, ten days, or years.
      let seconds = [3600, 864_000, 200_000_000][dice.number(0..<3)]
      settings.append("\(Plan.clock)=\(dice.oneIn(2) ? seconds : -seconds)")
    }
    var mayFail = plan.isSmall
    if plan.hasFaults, worker != plan.spared, let rule = faultRule() {
      settings.append("WORMHOLE_FAULTS=\(rule)")
      mayFail = mayFail || rule.contains("fail=")
    }
    let arguments = Worker.arguments(plan, worker: worker, life: counts[worker])
    let journal = journalSize(worker)
    let kind = worker % 2 == 1 ? plan.machine : nil
    let (program, words) =
      try kind?.apart(Processes.ownProgram(), arguments) ?? ("/proc/self/exe", arguments)
    let child = try Child.spawn(
      program, words, environment: Processes.environment(setting: settings))
    return Life(
      child: child, begun: .now, journal: journal, isBehindAnother: kind == .pids, mayFail: mayFail)
  }

  /// The size of a worker's journal.
  private func journalSize(_ worker: Int) -> Int {
    let journal = try? Descriptor.open(path: plan.journal(worker), [.path])
    return (try? journal?.status().size) ?? 0
  }

  private func noteEnd(of worker: Int, _ status: ChildStatus) {
    if let last = pauses[worker].last, last.upperBound == .max {
      pauses[worker][pauses[worker].count - 1] = last.lowerBound...Instant.now.nanoseconds
    }
    switch status {
    case .signalled(let signal) where signal == Self.killed: break
    // The exit status with which an intermediate shell reports a signal.
    case .exited(let code) where code > 128 && code != 128 + Self.killed:
      violations.append(
        Violation(.crash, "worker \(worker) was ended by signal \(code - 128)"))
    case .signalled(let signal):
      violations.append(Violation(.crash, "worker \(worker) was ended by signal \(signal)"))
    // An injected error may end the process, and so may the loss of a directory that the process
    // has open.
    case .exited(Worker.failed) where lives[worker]?.mayFail == true || harm.stagings > 0: break
    // An injected error in writing the journal may end the process too: without its journal, the
    // actions of the process are unknown.
    case .exited(Worker.lostItsJournal) where lives[worker]?.mayFail == true: break
    case .exited(let code) where code != 0 && code != 128 + Self.killed:
      violations.append(Violation(.crash, "worker \(worker) ended by itself, with \(code)"))
    case .exited: break
    }
  }

  private static let killed: Int32 = 9

  // MARK: Harm

  private func harmSomebody() throws {
    let worker = dice.number(0..<plan.processes)
    guard let life = lives[worker], life.stoppedUntil == nil, life.worker != nil,
      Instant.now - life.begun > .milliseconds(50),
      // Before its first entry, a suspended process would outlive this program: it has not asked
      // the kernel to end it yet.
      journalSize(worker) > life.journal
    else { return }
    switch dice.number(0..<10) {
    case ..<3:
      guard worker != plan.spared else { return }
      try life.send(.kill)
      harm.kills += 1
    case 3...8:
      let now = Instant.now
      pauses[worker].append(now.nanoseconds...(.max))
      try life.send(.stop)
      harm.stops += 1
      if plan.focus != .channels, dice.oneIn(30) { flood(worker) }
      lives[worker]?.stoppedUntil = now + .milliseconds(dice.number(1..<120))
    default: break
    }
  }

  private func goOn(_ worker: Int) throws {
    guard let life = lives[worker] else { return }
    lives[worker]?.stoppedUntil = nil
    if let last = pauses[worker].last {
      pauses[worker][pauses[worker].count - 1] = last.lowerBound...Instant.now.nanoseconds
    }
    try life.send(.go)
  }

  // MARK: The end of a run

  private func finish() throws {
    _ = try Descriptor.open(path: plan.stop, [.writeOnly, .create], mode: 0o600)
    let deadline = Instant.now + .seconds(30)
    while lives.contains(where: { $0 != nil }) {
      for worker in lives.indices {
        guard let life = lives[worker] else { continue }
        if let status = try life.child.poll() {
          noteEnd(of: worker, status)
          lives[worker] = nil
        } else if life.worker.flatMap({ ProcessStatus(of: $0) })?.isStopped == true {
          try life.send(.go)
        }
      }
      if Instant.now > deadline {
        for (worker, life) in lives.enumerated() {
          guard let life else { continue }
          violations.append(Violation(.stuck, "worker \(worker) does not come to its end"))
          try? life.send(.kill)
          try life.child.send(.kill)
          _ = try life.child.wait()
          lives[worker] = nil
        }
      }
      pause(.milliseconds(5))
    }
  }

  /// Receives the remaining messages, in the name of each worker.
  private func drain() throws {
    let container = try SharedContainer(directory: plan.container, options: Plan.options())
    for worker in 0..<plan.processes {
      let name = plan.name(worker)
      let journal = try Journal(plan.journal(worker))
      journal.note(.life(number: 0, faults: "-"))
      let member = try container.join(as: name)
      let receiving = try Membership.receive(member, journal)
      let peer = container.peer(name)
      let deadline = Instant.now + .seconds(30)
      while try !peer.queue.isEmpty {
        if Instant.now > deadline {
          let count = try peer.queue.count
          violations.append(Violation(.stuck, "\(count) messages for '\(name)' do not come"))
          break
        }
        pause(.milliseconds(5))
      }
      for receiver in receiving { receiver.stop() }
      let listening = try member.watchContexts { Membership.hear($0, journal) }
      while try !peer.pendingContexts.isEmpty, Instant.now < deadline { pause(.milliseconds(2)) }
      listening.stop()
      for letter in try peer.deadLetters {
        violations.append(
          Violation(
            .lost, "message '\(letter.id)' for '\(name)' was given up: \(letter.reason ?? "-")"))
      }
      member.leave()
    }
    try drainJobs(container)
    // The outcomes of messages are known once every member has received its messages.
    for worker in 0..<plan.processes { try hearEnds(plan.name(worker), worker, container) }
  }

  /// Handles the remaining messages of the shared queue.
  private func drainJobs(_ container: SharedContainer) throws {
    let queue = container.queue(Plan.queue, of: Payload.self)
    let deadline = Instant.now + .seconds(30)
    // A message that is renamed while the queue is listed may be missing in the list: the list is
    // exact only without a worker.
    repeat {
      let working = try Membership.work(container, Journal(plan.journal(0)))
      while try !queue.messages.isEmpty, Instant.now < deadline { pause(.milliseconds(5)) }
      working.stop()
    } while try !queue.messages.isEmpty && Instant.now < deadline
    let count = try queue.messages.count
    if count > 0 {
      violations.append(Violation(.stuck, "\(count) messages of the queue do not come"))
    }
    for letter in try queue.deadLetters {
      violations.append(
        Violation(.lost, "job '\(letter.id)' was given up: \(letter.reason ?? "-")"))
    }
  }

  private func hearEnds(_ name: String, _ worker: Int, _ container: SharedContainer) throws {
    let member = try container.join(as: name)
    let following = try Membership.follow(member, try Journal(plan.journal(worker)))
    let receipts = try Descriptor.open(
      path: "\(plan.container)/members/\(name)/receipts", [.readOnly, .directory])
    let deadline = Instant.now + .seconds(30)
    var left = try receipts.names().count
    while left > 0, Instant.now < deadline {
      pause(.milliseconds(2))
      left = try receipts.names().count
    }
    if left > 0 {
      violations.append(Violation(.stuck, "'\(name)' is not told how \(left) messages have ended"))
    }
    following.stop()
    member.leave()
  }

  private func pause(_ duration: Duration) {
    let _: Void? = Monitor(()).wait(until: .now + duration) { _ in nil }
  }
}

extension Run.Life {
  /// The ID of the worker's own process; nil as long as the process does not exist.
  fileprivate var worker: Int32? {
    guard isBehindAnother else { return child.process }
    return Self.child(of: child.process).flatMap { Self.child(of: $0) }
  }

  private static func child(of process: Int32) -> Int32? {
    guard
      let file = try? Descriptor.open(
        path: "/proc/\(process)/task/\(process)/children", [.readOnly])
    else { return nil }
    var bytes = [UInt8](repeating: 0, count: 100)
    guard let count = try? bytes.withUnsafeMutableBytes({ try file.readFully(into: $0) }) else {
      return nil
    }
    return String(decoding: bytes[..<count], as: UTF8.self).split(separator: " ").first
      .flatMap { Int32($0) }
  }

  /// Sends a signal to the worker's process; if the process has ended, the signal counts as sent.
  fileprivate func send(_ signal: Processes.Signal) throws {
    guard isBehindAnother else { return try child.send(signal) }
    if let worker { try? Processes.send(signal, to: worker) }
  }
}

extension Run {
  /// Returns the fault that a process injects into itself, at a call that the seed picks; nil for
  /// none.
  private func faultRule() -> String? {
    guard !dice.oneIn(5) else { return nil }
    let moment = dice.oneIn(3) ? "after" : "before"
    return switch dice.number(0..<(plan.hasErrors ? 8 : 6)) {
    case 0, 1: "\(place()):\(moment):kill"
    case 2, 3, 4: "\(place()):\(moment):stop"
    // Several faults in one process.
    case 5: "\(place()):\(moment):stop;\(place()):\(moment):stop;\(place()):\(moment):kill"
    case 6: "\(place()):before:fail=ENOSPC"
    default: "\(place()):before:fail=EIO"
    }
  }

  /// Returns a call of any kind, or a call that makes or removes a name.
  private func place() -> String {
    if dice.oneIn(8) { return "any@\(dice.number(1..<20_000))" }
    let changes = ["rename~value.plist", "open~next", "write~next", "open~.d", "flock", "pwrite"]
    let deliveries = [
      "rename~claimed", "rename~inbox", "link", "unlink", "rename", "pwrite~progress", "mkdir",
      "rmdir", "open~inbox",
    ]
    let accesses = [
      "rename~waiting", "rename~running", "rename~overtaken", "unlink~running", "mkdir~.wormhole",
      "rmdir~.wormhole", "rename~new", "open~new", "open~made", "rename~made", "unlink~waiting",
      "open~processes", "open~waiting", "unlink~new", "fstatat~running",
    ]
    let places =
      switch plan.focus {
      case .everything: changes + deliveries + accesses
      case .channels: changes
      case .mail: deliveries
      case .accesses: accesses
      }
    return "\(places[dice.number(0..<places.count)])@\(dice.number(1..<60))"
  }
}
