internal import WormholeSyscalls

/// Settings for all tests of a run.
package enum TestRun {
  /// Whether everything is repeated as often as the long run demands: `WORMHOLE_LONG` is set.
  package static let isLong = Processes.environment("WORMHOLE_LONG") != nil

  /// Whether a user's package is built as well: `WORMHOLE_EXAMPLE` is set, or the run is a long
  /// one.
  package static let hasTime = isLong || Processes.environment("WORMHOLE_EXAMPLE") != nil

  /// Whether the run is under a sanitizer, which makes everything take ten times as long:
  /// `WORMHOLE_SANITIZED` is set.
  package static let isSanitized = Processes.environment("WORMHOLE_SANITIZED") != nil

  /// Whether a mechanism is disabled in this process: `WORMHOLE_MUTANT` names the mechanism.
  package static let isMutant = !["none", nil].contains(Processes.environment("WORMHOLE_MUTANT"))

  /// The seed of every random test of this run: `WORMHOLE_SEED`, or a new number, which is printed
  /// so that the run can be replayed.
  package static let seed: UInt64 = {
    if let given = Processes.environment("WORMHOLE_SEED").flatMap({ UInt64($0) }) { return given }
    let seed = UInt64.random(in: 1 ... .max)
    try? StandardStream.output.write(
      "to draw the same again: WORMHOLE_SEED=\(seed) swift test --filter NAME\n")
    return seed
  }()
}
