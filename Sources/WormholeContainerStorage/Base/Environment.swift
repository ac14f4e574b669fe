internal import WormholeSyscalls

/// The external inputs of a container in a single type, under the control of tests.
///
/// The monotonic clock is not an input: `Instant.now` is the only clock of this module for leases,
/// ages and deadlines. The kernel ends the waits of threads by the same clock, so a second clock
/// for deadlines could only disagree with the waits. A schedule of the stress program replaces the
/// clock below all callers, where the clock is read.
package struct Environment: Sendable {
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
