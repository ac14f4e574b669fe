import TestSupport
import Wormhole
import WormholeCTesting
import WormholeContainerStorage
import WormholeSyscalls

/// Jobs of members, and of processes that ask for members.
extension Peer {
  static func join(_ container: String, _ name: String) throws {
    let member = try meeting(container).join(as: name)
    try say("joined")
    member.leave()
    try say("left")
  }

  static func be(_ container: String, _ name: String, info: [String: String]) throws {
    try stay(try meeting(container).join(as: name, info: info))
  }

  static func beForked(_ container: String, _ name: String) throws {
    let member = try meeting(container).join(as: name)
    try say("\(forking_copy())")
    try stay(member)
  }

  static func beSpawned(_ container: String, _ name: String) throws {
    let member = try meeting(container).join(as: name)
    try say("\(try Child.spawn(CommandLine.arguments[0], PeerJob.linger.arguments).process)")
    try stay(member)
  }

  static func leaveForked(_ container: String, _ name: String, once file: String) throws {
    let member = try meeting(container).join(as: name)
    try say("\(forking_copy())")
    try eventually("it may leave") {
      (try? Descriptor.open(path: file, [.readOnly])) != nil
    }
    member.leave()
    try say("left")
    try stay(member)
  }

  static func forkWhileJoining(
    _ container: String, _ name: String, leaveOnce file: String
  ) throws {
    let shared = try meeting(container)
    let member = try whileForking { try shared.join(as: name) }
    try say("joined")
    try eventually("it may leave") {
      (try? Descriptor.open(path: file, [.readOnly])) != nil
    }
    try whileForking { member.leave() }
    try stay(member)
  }

  private static func whileForking<Result>(_ body: () throws -> Result) throws -> Result {
    let state = Monitor((copies: 0, isOver: false))
    let thread = try Thread("forking") {
      while !state.withLock({ $0.isOver || $0.copies >= 300 }) {
        try? say("\(forking_copy())")
        state.signal { $0.copies += 1 }
        // Bounded, and still several copies in each pause of the faults.
        let _: Void? = state.wait(until: .now + .milliseconds(1)) { _ in nil }
      }
    }
    let _: Void? = state.wait(until: nil) { $0.copies > 0 ? () : nil }
    let result = try body()
    state.signal { $0.isOver = true }
    thread.join()
    return result
  }

  static func joinInTurns(
    _ container: String, _ name: String, processes: Int, rounds: Int
  ) throws {
    let shared = try meeting(container)
    let container = try Container.open(container, options: .testing())
    let (ready, tried) = (
      try container.slot(.channels, "ready"), try container.slot(.channels, "tried")
    )
    for round in 1...rounds {
      try meet(processes * round, at: ready)
      let member = try joinIfFree(shared, name)
      try meet(processes * round, at: tried)
      if member != nil { try say("\(round)") }
      member?.leave()
    }
  }

  static func joinMany(_ container: String, count: Int) throws {
    let shared = try meeting(container)
    var members: [Member] = []
    do {
      for number in 0..<count { members.append(try shared.join(as: "n\(number)")) }
      try say("\(members.count)")
    } catch let error as WormholeError {
      for _ in 0..<50 { members.popLast()?.leave() }
      try say("\(members.count + 50) \(error.code); \(error.hint ?? "")")
    }
    for member in members { member.leave() }
  }

  static func ask(_ container: String, _ name: String) throws {
    try say("\(try meeting(container).peer(name).reachability)")
  }

  static func watchMember(_ container: String, _ name: String) throws {
    let log = { @Sendable (entry: LogEntry) in _ = try? say(entry.text, on: .error) }
    let watch = try meeting(container, log).peer(name).watchReachability {
      try? say($0.rawValue)
    }
    waitToBeKilled()
    watch.stop()
  }

  static func guardForks(_ directory: String, _ name: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    let closed = try GuardedFile(opening: name, in: directory, [.readWrite])
    closed.close()
    let plain = try directory.open(name, [.readWrite])
    let guarded = try GuardedFile(opening: name, in: directory, [.readWrite])
    let number = try guarded.with { $0.rawValue }!
    let second = forking_copy_of_copy(number, "/dev/null")
    try say("\(forking_copy()) \(number) \(plain.rawValue) \(second)")
    waitToBeKilled()
    guarded.close()
  }

  static func nameCopies() throws {
    try sayNames()
    for byClone in [0, 1] as [Int32] {
      guard forking_do(byClone, { try? Peer.sayNames() }) == 0 else { throw Errno.noSuchProcess }
    }
    try sayNames()
  }

  private static func sayNames() throws {
    let environment = ContainerOptions.testing().environment
    try say((0..<3).map { _ in environment.randomName() }.joined(separator: " "))
  }

  static func guardMany(_ directory: String, _ name: String) throws {
    let directory = try Descriptor.open(path: directory, [.readOnly, .directory])
    var files: [GuardedFile] = []
    do throws(Errno) {
      for _ in 0..<100_000 {
        files.append(try GuardedFile(opening: name, in: directory, [.readWrite]))
      }
    } catch {
      files = []
      try say(error.name)
    }
    try GuardedFile(opening: name, in: directory, [.readWrite]).close()
    try say("done")
  }

  /// Opens a container as tests do, with the faults that the environment names.
  static func meeting(
    _ path: String, attempts: Int = 5, maximumQueuedMessages: Int? = nil,
    _ log: @escaping LogHook = { _ in }
  ) throws -> SharedContainer {
    var options = Options()
    options.mailbox.attempts = attempts
    if let maximumQueuedMessages { options.mailbox.maximumQueuedMessages = maximumQueuedMessages }
    options.mailbox.retryDelay = .milliseconds(1)
    options.lease = .milliseconds(50)
    options.environment = ContainerOptions.testing().environment
    options.sharing = ContainerOptions.testing().sharing
    options.log = log
    return try SharedContainer(directory: path, options: options)
  }

  static func stay(_ member: Member) throws {
    try say(member.incarnation.rawValue)
    waitToBeKilled()
    member.leave()
  }

  private static func joinIfFree(_ shared: SharedContainer, _ name: String) throws -> Member? {
    do throws(WormholeError) {
      return try shared.join(as: name)
    } catch {
      // The process that has the name has written its mark, and no process has erased the mark.
      guard error.code == .nameTaken, error.reason.hasPrefix("'TestPeer'") else { throw error }
      return nil
    }
  }

  /// Comes to a place, and waits until that many have come.
  private static func meet(_ count: Int, at place: Slot) throws {
    try place.add()
    try eventually("all have come") { try place.number() >= count }
  }
}
