import FoundationEssentials
import Wormhole
import WormholeCTesting
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A process that acts as its seed determines, until the run ends, and records all actions.
final class Worker {
  static let argument = "--worker"
  /// The exit status of a process that cannot write its journal.
  static let lostItsJournal: Int32 = 99
  /// The exit status of a process that cannot open or join the container.
  static let failed: Int32 = 70

  let plan: Plan
  let number: Int
  let life: Int
  let journal: Journal
  var dice: Dice
  let files: SharedFiles
  lazy var coordinator = files.coordinator()
  /// The number of tokens that the process has made.
  private var count = 0

  /// Returns the arguments of a worker process.
  static func arguments(_ plan: Plan, worker: Int, life: Int) -> [String] {
    [
      argument, "\(plan.seed)", "\(plan.processes)", "\(plan.channels)", plan.directory,
      "\(worker)", "\(life)", plan.isSmall ? "small" : "-",
      plan.machine == .pids ? "0" : "\(Processes.current)",
    ]
  }

  /// Does the work of a process that was started with the given arguments.
  static func run(_ arguments: [String]) -> Never {
    #if FAULT_POINTS
      FaultPoints.arm()
    #endif
    guard arguments.count == 8, let seed = UInt64(arguments[0]), let processes = Int(arguments[1]),
      let channels = Int(arguments[2]), let number = Int(arguments[4]),
      let life = Int(arguments[5]),
      let program = Int32(arguments[7])
    else { Processes.exitAtOnce(64) }
    // Without the parent program, no process would end this process, or resume it after a
    // suspension.
    testing_end_with_parent()
    // In a namespace of its own, the worker does not see the parent program.
    guard program == 0 || Processes.parent == program else { Processes.exitAtOnce(Self.failed) }
    var plan = Plan(seed: seed, directory: arguments[3])
    plan.processes = processes
    plan.channels = channels
    plan.isSmall = arguments[6] == "small"
    do {
      try Worker(plan, number, life).run()
      Processes.exitAtOnce(0)
    } catch {
      try? StandardStream.error.write("worker \(number), life \(life): \(error)\n")
      Processes.exitAtOnce(Self.failed)
    }
  }

  private init(_ plan: Plan, _ number: Int, _ life: Int) throws {
    self.plan = plan
    self.number = number
    self.life = life
    journal = try Journal(plan.journal(number))
    files = plan.files
    dice = Dice(seed: plan.seed, stream: UInt64(number * 100_000 + life))
  }

  private func run() throws {
    journal.note(
      .life(number: life, faults: Processes.environment("WORMHOLE_FAULTS") ?? "-"))
    let container = try SharedContainer(directory: plan.container, options: Plan.options())
    var looked = Instant.now
    while !isOver {
      let membership = try Membership(container, plan.name(number), journal)
      defer { membership.leave() }
      // A long-lived process joins often: resources that each join leaves behind add up by the end.
      var rounds = dice.number(1..<(dice.oneIn(4) ? 200 : number == plan.spared ? 100 : 2000))
      while rounds > 0, !isOver {
        rounds -= 1
        step(container, membership)
        guard Instant.now - looked > .milliseconds(100) else { continue }
        looked = .now
        noteHolding()
      }
      noteHolding()
      journal.note(.begin(.leave))
    }
  }

  private func noteHolding() {
    // The resident pages are the second number.
    let pages = Self.content("/proc/self/statm").split(separator: " ").dropFirst().first
    let threads = Self.names("/proc/self/task")
    // Dispatch names its threads by the quality of service of their work.
    let own = threads.filter { !Self.content("/proc/self/task/\($0)/comm").contains("qos") }
    journal.note(
      .holding(
        descriptors: Self.names("/proc/self/fd").count, threads: threads.count,
        ownThreads: own.count, memory: 4 * (pages.flatMap { Int($0) } ?? 0)))
  }

  private static func content(_ path: String) -> String {
    var bytes = [UInt8](repeating: 0, count: 200)
    guard let file = try? Descriptor.open(path: path, [.readOnly]),
      let count = try? bytes.withUnsafeMutableBytes({ try file.readFully(into: $0) })
    else { return "" }
    return String(decoding: bytes[..<count], as: UTF8.self)
  }

  private var isOver: Bool {
    (try? Descriptor.open(path: plan.stop, [.path])) != nil
  }

  private static func names(_ path: String) -> [String] {
    (try? Descriptor.open(path: path, [.readOnly, .directory]).names()) ?? []
  }

  func token() -> String {
    count += 1
    return "\(number).\(life).\(count)"
  }

  /// Makes one call of any kind.
  private func step(_ container: SharedContainer, _ membership: Membership) {
    let range =
      switch plan.focus {
      case .everything: 0..<110
      case .channels: 0..<62
      case .mail: 57..<104
      // The other calls occur too: an access must not obstruct any of them.
      case .accesses: dice.oneIn(3) ? 0..<104 : 104..<110
      }
    switch dice.number(range) {
    case 0..<12: put(container)
    case 12..<14: clear(container)
    case 14..<24: read(container)
    case 24..<60: add(container)
    case 60..<62: stray(container)
    case 62..<74: send(membership)
    case 74..<80: sendJob(container)
    case 80..<86: cancel(membership)
    case 86..<91: sendFile(membership)
    case 91..<99: tell(membership)
    case 99..<104: ask(membership)
    default: useFiles()
    }
  }

  /// Records a call, makes the call, and records its result.
  func perform(_ operation: Journal.Operation, _ body: () throws -> Journal.Result) {
    journal.note(.begin(operation))
    do {
      journal.note(.end(try body()))
    } catch let error as WormholeError {
      let reason = "\(error.code.rawValue): \(error)"
      journal.note(.end(error.isCertain ? .refused(reason) : .failed(reason)))
      if error.isBroken { journal.note(.broken("\(operation.words[0]): \(reason)")) }
    } catch {
      journal.note(.end(.failed("\(error)")))
    }
  }

  // MARK: Channels

  private func channel(_ container: SharedContainer) -> Channel<Payload> {
    container.channel("c\(dice.number(0..<plan.channels))", of: Payload.self)
  }

  private func durability() -> Durability { dice.oneIn(8) ? .power : .process }

  private func put(_ container: SharedContainer) {
    let (channel, token, durability) = (channel(container), token(), durability())
    let expected = dice.oneIn(3) ? (try? channel.metadata)?.version ?? 0 : nil
    perform(.put(channel: channel.name, token: token, expected: expected)) {
      .version(
        try channel.put(Payload(token), ifVersion: expected, durability: durability), token)
    }
  }

  private func clear(_ container: SharedContainer) {
    let channel = channel(container)
    perform(.clear(channel: channel.name)) { .version(try channel.clear(), "-") }
  }

  private func read(_ container: SharedContainer) {
    let channel = channel(container)
    perform(.read(channel: channel.name)) {
      guard let snapshot = try channel.latest else { return .version(0, "-") }
      if let damage = snapshot.value?.damage { journal.note(.broken(damage)) }
      return .version(snapshot.metadata.version, snapshot.value?.token ?? "-")
    }
  }

  /// In the channel whose directory is removed and replaced, the promise is limited: values are
  /// whole, and each call returns.
  private func stray(_ container: SharedContainer) {
    let channel = container.channel(Plan.stray, of: Payload.self)
    let (token, isRead) = (token(), dice.oneIn(2))
    perform(.stray(isRead: isRead)) {
      if !isRead {
        try channel.put(Payload(token))
      } else if let damage = try channel.value?.damage {
        journal.note(.broken(damage))
      }
      return .done
    }
  }

  private func add(_ container: SharedContainer) {
    let channel = container.channel("n\(dice.oneIn(2) ? 0 : dice.number(1..<4))", of: Int.self)
    let durability = durability()
    perform(.add(channel: channel.name)) {
      .number(try channel.update(default: 0, durability: durability) { $0 += 1 })
    }
  }
}

extension WormholeError {
  /// Whether the call certainly had no effect.
  fileprivate var isCertain: Bool {
    switch code {
    case .conflict, .nameTaken, .unreachable, .rejected, .timedOut, .notFound, .full, .superseded,
      .cancelled, .stopped, .readOnly, .permissionDenied:
      true
    default: false
    }
  }

  /// Whether the error is forbidden, whatever harm the worker suffers.
  fileprivate var isBroken: Bool {
    [.damaged, .typeMismatch, .invalidValue, .laterFormat, .forked, .notAContainer].contains(code)
  }
}
