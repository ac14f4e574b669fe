import CForking
import SharedContainer
import Syscalls
import TestSupport
import Wormhole

/// Jobs of members, and of those that ask for them.
extension Peer {
  /// `join <container> <name>`: joins and leaves, saying so.
  static let join = Job("join") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    try say("joined")
    member.leave()
    try say("left")
  }

  /// `be <container> <name> [<key> <value>]`: joins, says as which incarnation, and stays.
  static let be = Job("be") { arguments in
    let info = arguments.count > 3 ? [arguments[2]: arguments[3]] : [:]
    try stay(try meeting(arguments[0]).join(as: arguments[1], info: info))
  }

  /// `be-forked <container> <name>`: joins, makes a copy of itself, says its number, and stays.
  static let beForked = Job("be-forked") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    try say("\(forking_copy())")
    try stay(member)
  }

  /// `be-spawned <container> <name>`: joins, starts a program that stays, says its number, and
  /// stays too.
  static let beSpawned = Job("be-spawned") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    try say("\(try Child.spawn(CommandLine.arguments[0], ["linger"]).process)")
    try stay(member)
  }

  /// `leave-forked <container> <name>`: joins, makes a copy of itself, says its number, waits for a
  /// line, leaves, and stays.
  static let leaveForked = Job("leave-forked") { arguments in
    let member = try meeting(arguments[0]).join(as: arguments[1])
    try say("\(forking_copy())")
    try eventually("it may leave") {
      (try? Descriptor.open(path: arguments[2], [.readOnly])) != nil
    }
    member.leave()
    try say("left")
    try stay(member)
  }

  /// `fork-while-joining <container> <name> <file>`: joins, and leaves once the file is there.
  ///
  /// While it does either, another thread makes copies of the process and says their numbers.
  static let forkWhileJoining = Job("fork-while-joining") { arguments in
    let hole = try meeting(arguments[0])
    let member = try whileForking { try hole.join(as: arguments[1]) }
    try say("joined")
    try eventually("it may leave") {
      (try? Descriptor.open(path: arguments[2], [.readOnly])) != nil
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

  /// `join-in-turns <container> <name> <processes> <rounds>`: in each round all of the processes
  /// try to join at once; says in which rounds this one could.
  static let joinInTurns = Job("join-in-turns") { arguments in
    let hole = try meeting(arguments[0])
    let container = try Container.open(arguments[0], options: .testing())
    let (ready, tried) = (
      try container.slot(.channels, "ready"), try container.slot(.channels, "tried")
    )
    let processes = Int(arguments[2])!
    for round in 1...Int(arguments[3])! {
      try meet(processes * round, at: ready)
      let member = try joinIfFree(hole, arguments[1])
      try meet(processes * round, at: tried)
      if member != nil { try say("\(round)") }
      member?.leave()
    }
  }

  /// `ask <container> <name>`: says how the member can be reached.
  static let ask = Job("ask") { arguments in
    try say("\(try meeting(arguments[0]).peer(arguments[1]).reachability)")
  }

  /// `watch-member <container> <name>`: says how the member can be reached, and each change, and on
  /// standard error what goes to the log.
  static let watchMember = Job("watch-member") { arguments in
    let log = { @Sendable (_: LogLevel, words: String) in _ = try? say(words, on: .error) }
    let watch = try meeting(arguments[0], log).peer(arguments[1]).watchReachability {
      try? say($0.rawValue)
    }
    let _: Void? = Monitor(()).wait(until: .now + .seconds(60)) { _ in nil }
    watch.stop()
  }

  /// `guard-forks <directory> <name>`: opens a guarded file and one that is not, makes a copy of
  /// itself, and one of a copy that has another file under the guarded number; says the number of
  /// the first, those of the files, and that of the second.
  static let guardForks = Job("guard-forks") { arguments in
    let directory = try Descriptor.open(path: arguments[0], [.readOnly, .directory])
    let closed = try GuardedFile(opening: arguments[1], in: directory, [.readWrite])
    closed.close()
    let plain = try directory.open(arguments[1], [.readWrite])
    let guarded = try GuardedFile(opening: arguments[1], in: directory, [.readWrite])
    let number = try guarded.with { $0.rawValue }!
    let second = forking_copy_of_copy(number, "/dev/null")
    try say("\(forking_copy()) \(number) \(plain.rawValue) \(second)")
    let _: Void? = Monitor(()).wait(until: .now + .seconds(60)) { _ in nil }
    guarded.close()
  }

  /// `name-copies`: says names that it has made up, then those of a copy by fork, and of one by a
  /// bare clone, and then its own again, a line each.
  static let nameCopies = Job("name-copies") { _ in
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

  /// `guard-many <directory> <name>`: opens guarded files until it cannot, says why, closes them,
  /// and opens one more.
  static let guardMany = Job("guard-many") { arguments in
    let directory = try Descriptor.open(path: arguments[0], [.readOnly, .directory])
    var files: [GuardedFile] = []
    do throws(Errno) {
      for _ in 0..<100_000 {
        files.append(try GuardedFile(opening: arguments[1], in: directory, [.readWrite]))
      }
    } catch {
      files = []
      try say(error.name)
    }
    try GuardedFile(opening: arguments[1], in: directory, [.readWrite]).close()
    try say("done")
  }

  /// As tests open containers, with the faults that the environment asks for.
  static func meeting(
    _ path: String, attempts: Int = 5, _ log: @escaping LogHook = { _, _ in }
  ) throws -> Wormhole {
    var options = Wormhole.Options()
    options.mail.attempts = attempts
    options.mail.retryDelay = .milliseconds(1)
    options.lease = .milliseconds(50)
    options.environment = ContainerOptions.testing().environment
    options.log = log
    return try Wormhole(directory: path, options: options)
  }

  static func stay(_ member: Wormhole.Member) throws {
    try say(member.incarnation)
    let _: Void? = Monitor(()).wait(until: .now + .seconds(60)) { _ in nil }
    member.leave()
  }

  private static func joinIfFree(_ hole: Wormhole, _ name: String) throws -> Wormhole.Member? {
    do throws(WormholeError) {
      return try hole.join(as: name)
    } catch {
      // The one that has it has said so, and nobody has wiped that out.
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
