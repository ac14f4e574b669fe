/// The moments for which a clock is set, for an owner that computes its next moment again each
/// time.
///
/// The clock is set only for a moment earlier than all moments already set. If the owner set it
/// after each check, a distant moment would cause ever more alarms and checks without a result.
struct Alarms {
  /// In nanoseconds; the earliest is the last.
  private var moments: [Int64] = []

  /// Returns whether the clock has to be set for this moment.
  mutating func add(_ moment: Int64) -> Bool {
    if let next = moments.last, next <= moment { return false }
    moments.append(moment)
    return true
  }

  /// Removes a moment whose alarm has rung.
  mutating func remove(_ moment: Int64) {
    if let place = moments.lastIndex(of: moment) { moments.remove(at: place) }
  }
}
