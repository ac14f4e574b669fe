/// The name of an access's file, which is never used twice: `<stamp>,<process>,<number>`.
///
/// The stamp has 16 hexadecimal digits and is above all stamps that are listed when the access
/// arrives, so names sort in the order of arrival. The process is the name of its file in
/// `processes/`, and it counts its accesses.
package struct AccessName: Hashable, Sendable {
  let stamp: UInt64
  package let process: String
  let number: Int
  package let text: String

  init(stamp: UInt64, process: String, number: Int) {
    self.init(
      stamp: stamp, process: process, number: number, "\(stamp.digits),\(process),\(number)")
  }

  /// The largest distance of a stamp ahead of the clock, in nanoseconds: an hour.
  static let farthest: UInt64 = 3_600_000_000_000

  /// Returns the stamp of an access that arrives after the listed ones, by a clock that shows
  /// `now`.
  ///
  /// - Parameter highest: the highest listed stamp that is at most ``farthest`` ahead. Only a
  ///   misbehaving member makes stamps at exactly this bound, and then two stamps may be equal.
  static func stamp(above highest: UInt64, now: UInt64) -> UInt64 {
    Mutants.has(.ownClock) ? now : max(now, min(highest + 1, now + farthest))
  }

  private init(stamp: UInt64, process: String, number: Int, _ text: String) {
    self.stamp = stamp
    self.process = process
    self.number = number
    self.text = text
  }

  /// Leaves out the process, which takes as long to hash as all other steps of a table lookup:
  /// equal names have the same stamp and number, and different names rarely do, because a new
  /// access gets a stamp above all listed ones.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(stamp)
    hasher.combine(number)
  }

  /// Nil if the text does not have this form.
  init?(_ text: String) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 3, parts.allSatisfy({ $0.utf8.count <= 16 }),
      Randomness.isName(String(parts[0])), let stamp = UInt64(parts[0], radix: 16),
      Randomness.isName(String(parts[1])), let number = Int(parts[2]), "\(number)" == parts[2]
    else { return nil }
    self.init(stamp: stamp, process: String(parts[1]), number: number, text)
  }
}

/// An access of some container.
package struct AccessToken: Hashable, Sendable {
  package let container: String
  package let name: String

  package init(container: String, name: String) {
    self.container = container
    self.name = name
  }
}
