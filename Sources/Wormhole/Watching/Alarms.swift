/// The moments that a clock was asked for, by somebody who looks each time what comes next.
///
/// It is asked only for what comes before all that it was asked for. Were it asked after each look,
/// as long as something far away waits, there would be more and more that ring, and look, for
/// nothing.
struct Alarms {
  /// In nanoseconds; the next one is the last.
  private var moments: [Int64] = []

  /// Whether the clock has to be asked for this moment.
  mutating func add(_ moment: Int64) -> Bool {
    if let next = moments.last, next <= moment { return false }
    moments.append(moment)
    return true
  }

  /// It has rung.
  mutating func remove(_ moment: Int64) {
    if let place = moments.lastIndex(of: moment) { moments.remove(at: place) }
  }
}
