import Syscalls
import TestSupport

/// A program for tests to start, kill and stop: its argument is the ``PeerJob`` that it is to do.
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
