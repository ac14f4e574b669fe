package import WormholeSyscalls

/// All external inputs of a container in a single type, under the control of tests.
package struct Environment: Sendable {
  package var now: @Sendable () -> Instant = { Instant.now }
  /// Nanoseconds since boot, the same for all processes of the machine.
  package var sinceBoot: @Sendable () -> Int64 = { Clocks.sinceBoot }
  /// Nanoseconds since 1970.
  package var sinceEpoch: @Sendable () -> Int64 = { Clocks.sinceEpoch }
  package var random: @Sendable () -> UInt64 = { Randomness.next() }
  package var bootIdentifier: @Sendable () -> String = { Clocks.bootIdentifier }
  /// The environment variables of the process.
  package var variable: @Sendable (String) -> String? = { Processes.environment($0) }
  package var log: LogHook = { _ in }

  package init() {}
}

/// Counters of rare events in a container.
package struct ContainerCounters: Equatable, Sendable {
  package var takeovers = 0
  package var reruns = 0
  package var heals = 0
  package var rescans = 0
  package var swept = 0
}
