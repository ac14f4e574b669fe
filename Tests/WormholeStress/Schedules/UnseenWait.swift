#if FAULT_POINTS
  import WormholeSyscalls

  /// Processes that play in place of a scenario, and one of which has a thread that waits where the
  /// schedule does not see it.
  ///
  /// For the test of the report about such a thread.
  enum UnseenWait {
    /// Whether these processes play: `WORMHOLE_SCHEDULE_WAIT` is set.
    static let isWanted = Processes.environment("WORMHOLE_SCHEDULE_WAIT") != nil

    /// Plays the part of a process, in that process.
    static func play(_ number: Int) throws(Errno) {
      Turnstile.begin()
      // The schedule sees the wait for the end of the thread: the thread gets the turn.
      if number == 0 { try Thread("unseen") { Self.readForever() }.join() }
      Turnstile.finish()
    }

    /// Reads from a pipe into which no process writes: the thread blocks, and has the turn.
    private static func readForever() {
      guard let pipe = try? Pipe() else { return }
      var bytes: [UInt8] = [0]
      _ = bytes.withUnsafeMutableBytes { try? pipe.reading.read(into: $0) }
    }
  }
#endif
