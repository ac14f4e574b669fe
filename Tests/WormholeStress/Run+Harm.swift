extension Run {
  /// The harm that was done to the workers.
  struct Harm: Sendable {
    var kills = 0
    var stops = 0
    var lives = 0
    /// The number of times that the disk was full, a queue of notices overflowed, a directory was
    /// removed or replaced, and a clock was moved.
    var fills = 0
    var floods = 0
    var removals = 0
    var clocks = 0
    /// The number of times that an inbox, or the directory in which files are made, was removed or
    /// replaced.
    var inboxes = 0
    var stagings = 0

    mutating func add(_ other: Harm) {
      kills += other.kills
      stops += other.stops
      lives += other.lives
      fills += other.fills
      floods += other.floods
      removals += other.removals
      clocks += other.clocks
      inboxes += other.inboxes
      stagings += other.stagings
    }

    /// The harm besides kills and suspensions, in words.
    var others: String {
      let all = [
        (fills, "full disks"), (floods, "floods of notices"), (removals, "removed directories"),
        (inboxes, "lost inboxes"), (stagings, "lost staging directories"), (clocks, "moved clocks"),
      ]
      return all.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
    }
  }
}
