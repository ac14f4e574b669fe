import SharedContainer
import Syscalls
import Wormhole

/// One run of a plan: starts the workers, does them harm, starts them again, and lets what is left
/// come to its end.
final class Run {
  /// A process of one worker, and what is about to befall it.
  private struct Life {
    let child: Child
    let begun: Instant
    var stoppedUntil: Instant?
  }

  let plan: Plan
  var dice: Dice
  private var lives: [Life?]
  private var counts: [Int]
  var harm = Harm()
  /// Until when the disk is full.
  var fullUntil: Instant?
  /// When each worker did not run, for those who look how long calls took.
  private(set) var pauses: [[ClosedRange<Int64>]]
  private(set) var violations: [Violation] = []

  init(_ plan: Plan) {
    self.plan = plan
    dice = Dice(seed: plan.seed, stream: 1)
    lives = Array(repeating: nil, count: plan.processes)
    counts = Array(repeating: 0, count: plan.processes)
    pauses = Array(repeating: [], count: plan.processes)
  }

  /// - Parameter show: is called now and then with what was done so far.
  func run(show: (Harm) -> Void) throws {
    // Made before its users are harmed: that they make it is tried elsewhere.
    _ = try Wormhole(directory: plan.container, options: Plan.options())
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
  }

  // MARK: Lives

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
    } else if ProcessStatus(of: life.child.process)?.isStopped == true {
      // It has stopped itself, at a fault point.
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
    if plan.hasFaults, worker != plan.spared, let rule = faultRule() {
      settings.append("WORMHOLE_FAULTS=\(rule)")
    }
    let child = try Child.spawn(
      "/proc/self/exe", Worker.arguments(plan, worker: worker, life: counts[worker]),
      environment: Processes.environment(setting: settings))
    return Life(child: child, begun: .now)
  }

  private func noteEnd(of worker: Int, _ status: ExitStatus) {
    if let last = pauses[worker].last, last.upperBound == .max {
      pauses[worker][pauses[worker].count - 1] = last.lowerBound...Instant.now.nanoseconds
    }
    switch status {
    case .signalled(let signal) where signal == Self.killed: break
    case .signalled(let signal):
      violations.append(Violation(.crash, "worker \(worker) was ended by signal \(signal)"))
    // An error that was injected may end it.
    case .exited: break
    }
  }

  private static let killed: Int32 = 9

  // MARK: Harm

  private func harmSomebody() throws {
    let worker = dice.number(0..<plan.processes)
    guard let life = lives[worker], life.stoppedUntil == nil,
      Instant.now - life.begun > .milliseconds(50)
    else { return }
    switch dice.number(0..<10) {
    case ..<3:
      guard worker != plan.spared else { return }
      try life.child.send(.kill)
      harm.kills += 1
    case 3...8:
      let now = Instant.now
      pauses[worker].append(now.nanoseconds...(.max))
      try life.child.send(.stop)
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
    try life.child.send(.go)
  }

  // MARK: The end

  private func finish() throws {
    _ = try Descriptor.open(path: plan.stop, [.writeOnly, .create], mode: 0o600)
    let deadline = Instant.now + .seconds(30)
    while lives.contains(where: { $0 != nil }) {
      for worker in lives.indices {
        guard let life = lives[worker] else { continue }
        if let status = try life.child.poll() {
          noteEnd(of: worker, status)
          lives[worker] = nil
        } else if ProcessStatus(of: life.child.process)?.isStopped == true {
          try life.child.send(.go)
        }
      }
      if Instant.now > deadline {
        for (worker, life) in lives.enumerated() {
          guard let life else { continue }
          violations.append(Violation(.stuck, "worker \(worker) does not come to its end"))
          try life.child.send(.kill)
          _ = try life.child.wait()
          lives[worker] = nil
        }
      }
      pause(.milliseconds(5))
    }
  }

  /// Takes what is left, as each of the workers.
  private func drain() throws {
    let hole = try Wormhole(directory: plan.container, options: Plan.options())
    for worker in 0..<plan.processes {
      let name = plan.name(worker)
      let journal = try Journal(plan.journal(worker))
      journal.note(.life(number: 0, faults: "-"))
      let member = try hole.join(as: name)
      let receiving = try member.receive(acknowledging: .explicit) { message in
        try Membership.handle(message, journal)
      }
      let peer = hole.peer(name)
      let deadline = Instant.now + .seconds(30)
      while try !peer.queue.isEmpty {
        if Instant.now > deadline {
          let count = try peer.queue.count
          violations.append(Violation(.stuck, "\(count) messages for '\(name)' do not come"))
          break
        }
        pause(.milliseconds(5))
      }
      receiving.stop()
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
  }

  private func pause(_ duration: Duration) {
    let _: Void? = Monitor(()).wait(until: .now + duration) { _ in nil }
  }
}

extension Run {
  /// What befalls a process by itself, at a call that the seed picks; nil for nothing.
  private func faultRule() -> String? {
    guard !dice.oneIn(5) else { return nil }
    let moment = dice.oneIn(3) ? "after" : "before"
    return switch dice.number(0..<(plan.hasErrors ? 8 : 6)) {
    case 0, 1: "\(place()):\(moment):kill"
    case 2, 3, 4: "\(place()):\(moment):stop"
    // Several in one life.
    case 5: "\(place()):\(moment):stop;\(place()):\(moment):stop;\(place()):\(moment):kill"
    case 6: "\(place()):before:fail=ENOSPC"
    default: "\(place()):before:fail=EIO"
    }
  }

  /// A call of any kind, or one by which something comes to be there, or goes.
  private func place() -> String {
    if dice.oneIn(8) { return "any@\(dice.number(1..<20_000))" }
    let changes = ["rename~value.plist", "open~next", "write~next", "open~.d", "flock", "pwrite"]
    let deliveries = [
      "rename~claimed", "rename~inbox", "link", "unlink", "rename", "pwrite~progress", "mkdir",
      "rmdir", "open~inbox",
    ]
    let places =
      switch plan.focus {
      case .everything: changes + deliveries
      case .channels: changes
      case .mail: deliveries
      }
    return "\(places[dice.number(0..<places.count)])@\(dice.number(1..<60))"
  }
}
