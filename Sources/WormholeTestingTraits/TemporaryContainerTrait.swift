public import WormholeTesting
#if canImport(Testing)
  public import Testing

  /// Gives each test a container of its own: `@Test(.temporaryContainer)`, or `@Suite` for all
  /// tests of a suite.
  ///
  /// Inside the test, `TemporaryContainer.current` is the container. Each case of a test with
  /// arguments has a container of its own. The directory is removed at the end of the test, unless
  /// the test has stored the object elsewhere.
  public struct TemporaryContainerTrait: SuiteTrait, TestTrait, TestScoping {
    @TaskLocal fileprivate static var container: TemporaryContainer?

    /// Each test of a suite has a container of its own.
    public var isRecursive: Bool { true }

    /// Creates the directory, and runs the test with it.
    @concurrent public func provideScope(
      for test: Test, testCase: Test.Case?,
      performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
      try await Self.$container.withValue(try TemporaryContainer()) { try await function() }
    }
  }

  extension Trait where Self == TemporaryContainerTrait {
    /// A container for each test, as `TemporaryContainer.current`.
    public static var temporaryContainer: Self { Self() }
  }

  extension TemporaryContainer {
    /// The container of the current test, which must have the trait `.temporaryContainer`.
    ///
    /// The test's tasks and their children see the container; a detached task and a thread do not.
    public static var current: TemporaryContainer {
      guard let container = TemporaryContainerTrait.container else {
        preconditionFailure("the current task has no test with the trait .temporaryContainer")
      }
      return container
    }
  }
#endif
