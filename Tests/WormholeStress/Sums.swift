/// The totals of the actions and findings of all seeds.
struct Sums {
  var seeds = 0
  var calls = 0
  var messages = 0
  var histories = 0
  var accesses = 0
  /// The number of runs that are stored for inspection.
  var kept = 0
  var violations = 0
  var longest: Int64 = 0
  var harm = Run.Harm()

  mutating func add(_ verdict: Verdict, _ harm: Run.Harm) {
    seeds += 1
    calls += verdict.operations
    messages += verdict.messages
    histories += verdict.histories
    accesses += verdict.accesses
    violations += verdict.violations.count
    longest = max(longest, verdict.longest.nanoseconds)
    self.harm.add(harm)
  }

  var line: String {
    "\(seeds) seeds: \(calls) calls, \(harm.lives) lives, \(harm.kills) kills, "
      + "\(harm.stops) stops, \(harm.others), \(messages) messages, "
      + "\(accesses) accesses, \(histories) histories; "
      + "longest call \(longest / 1_000_000) ms; \(violations) violations"
  }
}
