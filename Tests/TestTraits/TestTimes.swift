#if canImport(Testing)
  internal import WormholeSyscalls
  internal import Testing

  /// The durations of blocking tests, as `.ci/slowest` reads them.
  ///
  /// Swift Testing starts all tests at once. Its durations include the wait for one of the few
  /// threads that blocking tests run on, which is longer than most tests.
  enum TestTimes {
    /// The file that each test case adds a line to; nil unless `WORMHOLE_TEST_TIMES` names one.
    private static let file = Processes.environment("WORMHOLE_TEST_TIMES").flatMap {
      try? Descriptor.open(path: $0, [.writeOnly, .create, .append], mode: 0o600)
    }

    @concurrent static func measure(
      _ test: Test, _ body: @concurrent @Sendable () async throws -> Void
    ) async throws {
      let begin = Instant.now
      defer { add(test, Instant.now - begin) }
      try await body()
    }

    /// `SECONDS MODULE.SUITE/TEST`, in one write, so that lines of two threads do not mix.
    private static func add(_ test: Test, _ duration: Duration) {
      let id = test.id
      let name = id.moduleName + "." + id.nameComponents.joined(separator: "/")
      // A test does not fail because its duration is not known.
      let line = Array("\(duration / .seconds(1)) \(name)\n".utf8)
      _ = try? file?.write(line.span.bytes)
    }
  }
#endif
