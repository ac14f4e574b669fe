internal import WormholeSyscalls

/// The name of an access's file, which is never used twice: `<stamp>,<process>,<number>`.
///
/// The stamp has 16 hexadecimal digits and is above all stamps that are listed when the access
/// arrives, so names sort in the order of arrival. The process is the name of its file in
/// `processes/`, and it counts its accesses.
///
/// Only numbers are stored. A waiter has a name for each access before it, and drops thousands of
/// names when these accesses have ended: strings would have to be released one by one.
package struct AccessName: Hashable, Sendable {
  let stamp: UInt64
  /// The number that the digits of the process's name state.
  let processNumber: UInt64
  let number: Int

  /// - Parameter process: the name of a file in `processes/`, with 16 hexadecimal digits.
  init(stamp: UInt64, process: String, number: Int) {
    guard Randomness.isName(process), let processNumber = UInt64(process, radix: 16) else {
      preconditionFailure("'\(process)' is not the name of a process")
    }
    self.stamp = stamp
    self.processNumber = processNumber
    self.number = number
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

  /// The name of the process's file in `processes/`.
  package var process: String { processNumber.digits }

  package var text: String {
    var (length, rest) = (1, number)
    while rest > 9 { (length, rest) = (length + 1, rest / 10) }
    return String(unsafeUninitializedCapacity: Self.prefix + length) { text in
      stamp.write(to: text, at: 0)
      text[16] = Self.comma
      processNumber.write(to: text, at: 17)
      text[33] = Self.comma
      rest = number
      for place in (0..<length).reversed() {
        text[Self.prefix + place] = UInt8(ascii: "0") + UInt8(rest % 10)
        rest /= 10
      }
      return Self.prefix + length
    }
  }

  // MARK: Reading

  /// The length of the text before the access's number.
  private static let prefix = 34
  /// The largest number of digits in the access's number.
  private static let mostDigits = 16
  private static let comma = UInt8(ascii: ",")

  /// Nil if the text does not have this form.
  init?(_ text: String) {
    var text = text
    guard let name = text.withUTF8({ AccessName(bytes: $0) }) else { return nil }
    self = name
  }

  /// Nil if the name does not have this form.
  init?(_ name: UnsafePointer<CChar>) {
    let length = name.length
    let read = name.withMemoryRebound(to: UInt8.self, capacity: length) {
      AccessName(bytes: UnsafeBufferPointer(start: $0, count: length))
    }
    guard let read else { return nil }
    self = read
  }

  /// Without a string for each part: an arriving access reads the names of all others.
  private init?(bytes: UnsafeBufferPointer<UInt8>) {
    guard bytes.count > Self.prefix, bytes.count <= Self.prefix + Self.mostDigits,
      bytes[16] == Self.comma, bytes[33] == Self.comma,
      let stamp = UInt64(digitsIn: bytes, at: 0),
      let processNumber = UInt64(digitsIn: bytes, at: 17)
    else { return nil }
    // One name has one text: no zero precedes another digit.
    guard bytes[Self.prefix] != UInt8(ascii: "0") || bytes.count == Self.prefix + 1 else {
      return nil
    }
    var (number, place) = (0, Self.prefix)
    while place < bytes.count {
      let byte = bytes[place]
      guard byte >= UInt8(ascii: "0"), byte <= UInt8(ascii: "9") else { return nil }
      number = number * 10 + Int(byte - UInt8(ascii: "0"))
      place += 1
    }
    self.stamp = stamp
    self.processNumber = processNumber
    self.number = number
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
