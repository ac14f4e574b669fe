import Syscalls

/// A program for tests to start, kill and stop: the first argument says what it is to do.
///
/// A new job is a file of its own beside this one and a line in ``jobs``.
@main enum Peer {
  private static let jobs: [Job] = [
    touch, replace, list, descriptors, respawn, bystander, hold,
    open, add, readSlot, stopInside, holdLock, addBetween, forkInside, spawnInside, linger,
    acknowledge, watch, names, probe,
    count, countAloud, put, putInGroup, stopUpdating, post, set,
    join, be, beForked, beSpawned, leaveForked, forkWhileJoining, joinInTurns, ask,
    watchMember, guardForks, guardMany, nameCopies,
    send, receive, refuse, cancel, outcomes, drain,
    respond, respondOnce, hear, hearOften, request, wake, awaken,
    sendFile, receiveFile, fileMemory,
    asUser, insist,
  ]

  static func main() {
    #if FAULT_POINTS
      FaultPoints.arm()
    #endif
    do {
      try perform(Array(CommandLine.arguments.dropFirst()))
    } catch {
      fail("\(error)")
    }
  }

  static func perform(_ arguments: [String]) throws {
    guard let job = jobs.first(where: { $0.name == arguments.first }) else {
      fail("the jobs are \(jobs.map(\.name).joined(separator: ", "))")
    }
    try job.body(Array(arguments.dropFirst()))
  }

  /// Tells the test something, whatever faults are on.
  static func say(_ words: String, on stream: StandardStream = .output) throws {
    #if FAULT_POINTS
      try FaultPoints.with { try stream.write(words + "\n") }
    #else
      try stream.write(words + "\n")
    #endif
  }

  private static func fail(_ words: String) -> Never {
    try? say("TestPeer: \(words)", on: .error)
    Processes.exit(70)
  }
}

/// Something that the peer can do.
struct Job: Sendable {
  let name: String
  let body: @Sendable (_ arguments: [String]) throws -> Void

  init(_ name: String, _ body: @escaping @Sendable (_ arguments: [String]) throws -> Void) {
    self.name = name
    self.body = body
  }
}
