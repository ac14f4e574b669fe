/// The name of an access's file, which is never used twice: `<stamp>,<process>,<number>`.
///
/// The stamp, 16 hexadecimal digits, is above that of all who are there when it arrives, so names
/// compare as their accesses came. The process is that of the file in `processes/`, and it counts
/// its accesses.
package struct AccessName: Hashable, Sendable {
  let stamp: UInt64
  package let process: String
  let number: Int
  package let text: String

  init(stamp: UInt64, process: String, number: Int) {
    let digits = String(stamp, radix: 16)
    let text = String(repeating: "0", count: 16 - digits.utf8.count) + digits
    self.init(stamp: stamp, process: process, number: number, "\(text),\(process),\(number)")
  }

  private init(stamp: UInt64, process: String, number: Int, _ text: String) {
    self.stamp = stamp
    self.process = process
    self.number = number
    self.text = text
  }

  /// Without the process, which takes as long to hash as all else in a look at a table: two names
  /// that are equal have the same stamp and number, and two that are not rarely have, as an access
  /// comes with a stamp above all that are there.
  package func hash(into hasher: inout Hasher) {
    hasher.combine(stamp)
    hasher.combine(number)
  }

  /// Nil if it is in no form of ours.
  init?(_ text: String) {
    let parts = text.split(separator: ",", omittingEmptySubsequences: false)
    guard parts.count == 3, parts.allSatisfy({ $0.utf8.count <= 16 }),
      Staging.isOurs(String(parts[0])), let stamp = UInt64(parts[0], radix: 16),
      Staging.isOurs(String(parts[1])), let number = Int(parts[2]), "\(number)" == parts[2]
    else { return nil }
    self.init(stamp: stamp, process: String(parts[1]), number: number, text)
  }
}

/// What the file of an access says: written once, before anybody sees it.
package struct AccessEntry: Sendable {
  package let claim: AccessClaim
  /// The accesses that its thread was inside of already, of this container and of others.
  package let held: [AccessToken]
  /// Hidden directories beside what it replaces.
  let hidden: [String]

  /// The largest file that is read.
  static let largestFile = 1 << 20
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
