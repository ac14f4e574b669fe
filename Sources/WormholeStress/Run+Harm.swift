extension Run {
  /// What was done to the workers.
  struct Harm: Sendable {
    var kills = 0
    var stops = 0
    var lives = 0
    /// How often the disk was full, a queue of notices ran over, a directory was removed or
    /// replaced, and a clock was moved.
    var fills = 0
    var floods = 0
    var removals = 0
    var clocks = 0

    mutating func add(_ other: Harm) {
      kills += other.kills
      stops += other.stops
      lives += other.lives
      fills += other.fills
      floods += other.floods
      removals += other.removals
      clocks += other.clocks
    }

    /// What else was done, in words.
    var others: String {
      let all = [
        (fills, "full disks"), (floods, "floods of notices"), (removals, "removed directories"),
        (clocks, "moved clocks"),
      ]
      return all.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }
  }
}
