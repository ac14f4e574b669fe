internal import Synchronization
package import Syscalls

/// How much a log message matters, from least to most.
public enum LogLevel: Int, Comparable, Sendable, CaseIterable {
  case trace, debug, info, notice, warning, error, critical

  /// Whether one matters less than the other.
  public static func < (left: LogLevel, right: LogLevel) -> Bool { left.rawValue < right.rawValue }
}

/// What is told of what happens inside, for a program to pass on to its own log.
public typealias LogHook = @Sendable (_ level: LogLevel, _ message: String) -> Void

/// All that a container takes from outside, in one place, so that tests can hold it.
package struct Environment: Sendable {
  package var now: @Sendable () -> Instant = { Instant.now }
  /// Nanoseconds since boot, the same for all processes of the machine.
  package var sinceBoot: @Sendable () -> Int64 = { Clocks.sinceBoot }
  /// Nanoseconds since 1970.
  package var sinceEpoch: @Sendable () -> Int64 = { Clocks.sinceEpoch }
  package var random: @Sendable () -> UInt64 = { Randomness.next() }
  package var bootIdentifier: @Sendable () -> String = { Clocks.bootIdentifier }
  package var log: LogHook = { _, _ in }
  /// What tests take out, to see that a test notices.
  package var mutants: Mutants = []

  package init() {}
}

/// Mechanisms that a test can switch off, to show that another test fails without them.
///
/// Without FAULT_POINTS every question answers no, and the compiler removes what hangs on it.
package struct Mutants: OptionSet, Sendable {
  package let rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  package static let noFence = Mutants(rawValue: 1 << 0)
  package static let noRemoval = Mutants(rawValue: 1 << 1)
  package static let stealWithoutGeneration = Mutants(rawValue: 1 << 2)
  package static let noFileSync = Mutants(rawValue: 1 << 3)
  package static let noDirectorySync = Mutants(rawValue: 1 << 4)
  package static let noChecksum = Mutants(rawValue: 1 << 5)
  package static let healByRename = Mutants(rawValue: 1 << 6)
  package static let noRescanAfterOverflow = Mutants(rawValue: 1 << 7)
  package static let trustEmptyListing = Mutants(rawValue: 1 << 8)
  package static let readBeforeClaim = Mutants(rawValue: 1 << 9)
  package static let trustListing = Mutants(rawValue: 1 << 10)
  package static let noProgress = Mutants(rawValue: 1 << 11)
  package static let cancelByPuttingBack = Mutants(rawValue: 1 << 12)
  package static let noForkGuard = Mutants(rawValue: 1 << 13)
  package static let noSecondLook = Mutants(rawValue: 1 << 14)
  package static let trustOpenFile = Mutants(rawValue: 1 << 15)
  package static let noEndOfLull = Mutants(rawValue: 1 << 16)

  /// The names by which `WORMHOLE_MUTANT` asks for them.
  package static let named: [(name: String, mutant: Mutants)] = [
    ("no-fence", .noFence), ("no-removal", .noRemoval),
    ("steal-without-generation", .stealWithoutGeneration), ("no-file-sync", .noFileSync),
    ("no-directory-sync", .noDirectorySync), ("no-checksum", .noChecksum),
    ("heal-by-rename", .healByRename), ("no-rescan-after-overflow", .noRescanAfterOverflow),
    ("trust-empty-listing", .trustEmptyListing), ("read-before-claim", .readBeforeClaim),
    ("trust-listing", .trustListing), ("no-progress", .noProgress),
    ("cancel-by-putting-back", .cancelByPuttingBack),
    ("no-fork-guard", .noForkGuard), ("no-second-look", .noSecondLook),
    ("trust-open-file", .trustOpenFile), ("no-end-of-lull", .noEndOfLull),
  ]

  @inline(__always)
  package func has(_ mutant: Mutants) -> Bool {
    #if FAULT_POINTS
      contains(mutant)
    #else
      false
    #endif
  }
}

/// What a container has had to do that a quiet life would have spared it.
package struct ContainerCounters: Equatable, Sendable {
  package var takeovers = 0
  package var reruns = 0
  package var heals = 0
  package var rescans = 0
  package var swept = 0
}
