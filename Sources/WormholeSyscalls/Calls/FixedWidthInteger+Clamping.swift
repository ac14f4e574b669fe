/// Arithmetic with numbers that any program may have written: no result ends the process.
extension FixedWidthInteger {
  /// Returns the sum; the greatest or the least number if the sum is beyond the range.
  package func addingClamped(_ other: Self) -> Self {
    let (sum, isOutside) = addingReportingOverflow(other)
    return isOutside ? (other < 0 ? .min : .max) : sum
  }

  /// Returns the difference; the greatest or the least number if it is beyond the range.
  package func subtractingClamped(_ other: Self) -> Self {
    let (difference, isOutside) = subtractingReportingOverflow(other)
    return isOutside ? (other < 0 ? .max : .min) : difference
  }

  /// Takes the whole part of a number, as far as the range goes; 0 for NaN.
  package init(clamping number: Double) {
    // A conversion of the greatest number to `Double` rounds up, beyond the range.
    self =
      Self(exactly: number.rounded(.towardZero)) ?? (number.isNaN ? 0 : number < 0 ? .min : .max)
  }
}

extension Duration {
  /// Returns a duration of so many seconds, clamped to 146 billion years; zero for NaN.
  ///
  /// `seconds(_:)` ends the process for a number that no duration can hold.
  package static func seconds(clamping seconds: Double) -> Duration {
    let most = Double(1 << 62)
    return seconds.isNaN ? .zero : .seconds(min(max(seconds, -most), most))
  }
}
