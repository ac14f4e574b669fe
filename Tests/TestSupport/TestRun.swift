internal import Syscalls

/// What holds for all tests of a run.
package enum TestRun {
  /// Whether everything is done as often as was ever asked for: `WORMHOLE_LONG` is set.
  package static let isLong = Processes.environment("WORMHOLE_LONG") != nil

  /// Whether a user's package is built as well: `WORMHOLE_EXAMPLE` is set, or all is wanted.
  package static let hasTime = isLong || Processes.environment("WORMHOLE_EXAMPLE") != nil

  /// Whether a sanitizer looks on, under which everything takes ten times as long:
  /// `WORMHOLE_SANITIZED` is set.
  package static let isSanitized = Processes.environment("WORMHOLE_SANITIZED") != nil

  /// Whether a mechanism is taken out of this process: `WORMHOLE_MUTANT` is set.
  package static let isMutant = Processes.environment("WORMHOLE_MUTANT") != nil

  /// What every random test of this run draws from: `WORMHOLE_SEED`, or a new number, which is
  /// printed so that the run can be replayed.
  package static let seed: UInt64 = {
    if let given = Processes.environment("WORMHOLE_SEED").flatMap({ UInt64($0) }) { return given }
    let seed = UInt64.random(in: 1 ... .max)
    try? StandardStream.output.write(
      "to draw the same again: WORMHOLE_SEED=\(seed) swift test --filter NAME\n")
    return seed
  }()
}
