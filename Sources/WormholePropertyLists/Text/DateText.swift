package import FoundationEssentials

/// Dates in ISO 8601, in UTC, with as many digits of a second as reading back the same date needs.
package enum DateText {
  /// The range of a four-digit year, in seconds since 2001: the years 1 to 9999.
  private static let range = -63_113_904_000.0..<252_423_993_600.0

  /// Returns the text of a date; nil if the date is outside those years, or between all texts.
  package static func format(_ date: Date, fraction: Bool = true) -> String? {
    let seconds = date.timeIntervalSinceReferenceDate
    guard range.contains(seconds) else { return nil }
    let whole = seconds.rounded(.down)
    if seconds == whole || !fraction { return text(Int(whole)) }
    // The difference is exact: both numbers are multiples of the same power of two.
    let rest = seconds - whole
    // A quotient of two exact numbers is rounded as the parser rounds its digits.
    var (digits, power) = (3, 1e3)
    while digits <= 12 {
      let number = (rest * power).rounded()
      if number < power, whole + number / power == seconds {
        return text(Int(whole), Int(number), digits: digits)
      }
      (digits, power) = (digits + 3, power * 1e3)
    }
    let base = text(Int(whole)).dropLast()
    for digits in [3, 6, 9, 12, 18] {
      let text = base + "." + fractionText(rest, digits: digits) + "Z"
      if parse(text) == date { return String(text) }
    }
    return nil
  }

  /// - Parameters:
  ///   - fraction: the digits behind the point, as one number.
  ///   - digits: how many digits.
  private static func text(_ seconds: Int, _ fraction: Int = 0, digits: Int = 0) -> String {
    let (day, time) = seconds.flooredQuotient(by: 86400)
    let (year, month, date) = civil(day)
    return String(unsafeUninitializedCapacity: 34) { bytes in
      var count = 0
      func put(_ number: Int, _ width: Int, _ end: Unicode.Scalar) {
        var rest = number
        for place in stride(from: count + width - 1, through: count, by: -1) {
          bytes.initializeElement(at: place, to: UInt8(ascii: "0") + UInt8(rest % 10))
          rest /= 10
        }
        bytes.initializeElement(at: count + width, to: UInt8(ascii: end))
        count += width + 1
      }
      put(year, 4, "-")
      put(month, 2, "-")
      put(date, 2, "T")
      put(time / 3600, 2, ":")
      put(time / 60 % 60, 2, ":")
      put(time % 60, 2, digits == 0 ? "Z" : ".")
      if digits > 0 { put(fraction, digits, "Z") }
      return count
    }
  }

  private static func fractionText(_ rest: Double, digits: Int) -> String {
    var rest = rest
    var text = ""
    for _ in 0..<digits - 1 {
      rest *= 10
      let digit = rest.rounded(.down)
      text += String(Int(digit))
      rest -= digit
    }
    return text + String(min(9, Int((rest * 10).rounded())))
  }

  /// Parses `2026-09-29T03:34:38.5Z`, with or without a fraction, with `Z` or an offset.
  package static func parse(_ text: some StringProtocol) -> Date? {
    var digits = Digits(Array(text.utf8))
    guard let year = digits.number(4), digits.skip("-"), let month = digits.number(2),
      digits.skip("-"), let day = digits.number(2), digits.skip("T") || digits.skip(" "),
      let hour = digits.number(2), digits.skip(":"), let minute = digits.number(2),
      digits.skip(":"), let second = digits.number(2), year >= 1, (1...12).contains(month),
      (1...days(in: month, year)).contains(day), hour < 24, minute < 60, second < 60
    else { return nil }
    var fraction = 0.0
    if digits.skip(".") {
      guard let value = digits.fraction() else { return nil }
      fraction = value
    }
    guard let offset = digits.offset(), digits.isAtEnd else { return nil }
    let whole = days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second - offset
    return Date(timeIntervalSinceReferenceDate: Double(whole) + fraction)
  }

  // The calendar is Gregorian throughout, as ISO 8601 requires. A year here begins in March, so
  // that the leap day is the year's last day; 400 such years have 146 097 days.

  /// The first of January 2001, in days since the first of March of the year 0.
  private static let epoch = 730_791

  private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
    let shifted = month > 2 ? year : year - 1
    let monthsSinceMarch = (month + 9) % 12
    return 365 * shifted + shifted / 4 - shifted / 100 + shifted / 400
      + (153 * monthsSinceMarch + 2) / 5 + day - 1 - epoch
  }

  private static func civil(_ day: Int) -> (year: Int, month: Int, day: Int) {
    let day = day + epoch
    // The estimate is at most a year too high.
    var year = (day * 400 + 146_096) / 146_097
    while start(year) > day { year -= 1 }
    let dayOfYear = day - start(year)
    let monthsSinceMarch = (5 * dayOfYear + 2) / 153
    let date = dayOfYear - (153 * monthsSinceMarch + 2) / 5 + 1
    let month = monthsSinceMarch < 10 ? monthsSinceMarch + 3 : monthsSinceMarch - 9
    return (month > 2 ? year : year + 1, month, date)
  }

  private static func start(_ year: Int) -> Int {
    365 * year + year / 4 - year / 100 + year / 400
  }

  private static func days(in month: Int, _ year: Int) -> Int {
    switch month {
    case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
    case 4, 6, 9, 11: 30
    default: 31
    }
  }
}

/// A reader of numbers of fixed length.
private struct Digits {
  let bytes: [UInt8]
  var index = 0

  init(_ bytes: [UInt8]) { self.bytes = bytes }

  var isAtEnd: Bool { index == bytes.count }

  mutating func skip(_ character: Unicode.Scalar) -> Bool {
    guard index < bytes.count, bytes[index] == UInt8(ascii: character) else { return false }
    index += 1
    return true
  }

  mutating func number(_ length: Int) -> Int? {
    guard bytes.count - index >= length else { return nil }
    var value = 0
    for _ in 0..<length {
      guard (0x30...0x39).contains(bytes[index]) else { return nil }
      value = 10 * value + Int(bytes[index] - 0x30)
      index += 1
    }
    return value
  }

  mutating func fraction() -> Double? {
    let start = index
    while index < bytes.count, (0x30...0x39).contains(bytes[index]) { index += 1 }
    guard index > start, index - start <= 30 else { return nil }
    return Double("0." + String(decoding: bytes[start..<index], as: UTF8.self))
  }

  /// Seconds east of Greenwich.
  mutating func offset() -> Int? {
    if skip("Z") { return 0 }
    let sign = skip("+") ? 1 : skip("-") ? -1 : 0
    guard sign != 0, let hours = number(2), hours < 24 else { return nil }
    _ = skip(":")
    guard let minutes = number(2), minutes < 60 else { return nil }
    return sign * (hours * 3600 + minutes * 60)
  }
}

extension Int {
  /// Returns quotient and remainder; the remainder is never negative.
  fileprivate func flooredQuotient(by divisor: Int) -> (Int, Int) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}
