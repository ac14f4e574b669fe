import TestSupport
import WormholeSyscalls

/// A program for tests to start, kill and stop: its argument is the ``PeerJob`` to do.
@main enum Peer {
  static func main() {
    #if FAULT_POINTS
      FaultPoints.arm()
    #endif
    do {
      try perform(PeerJob(arguments: Array(CommandLine.arguments.dropFirst())))
    } catch {
      fail("\(error)")
    }
  }

  /// Prints a line for the test, whatever faults are active.
  static func say(_ words: String, on stream: StandardStream = .output) throws {
    #if FAULT_POINTS
      try FaultPoints.with { try stream.write(words + "\n") }
    #else
      try stream.write(words + "\n")
    #endif
  }

  /// However slow the test is on the machine, the process stays until the test kills it, or has
  /// ended.
  static func waitToBeKilled() {
    let (parent, latest) = (Processes.parent, Instant.now + .seconds(3600))
    while Processes.parent == parent, Instant.now < latest {
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(500)) { _ in nil }
    }
  }

  private static func fail(_ words: String) -> Never {
    try? say("TestPeer: \(words)", on: .error)
    Processes.exit(70)
  }
}
