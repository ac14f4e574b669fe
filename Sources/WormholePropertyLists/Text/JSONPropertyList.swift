import FoundationEssentials

/// Property lists as JSON, for people and scripts.
///
/// Values that JSON lacks are written as a dictionary with one key that begins with a dollar sign:
///
/// | value                    | JSON                                        |
/// |--------------------------|---------------------------------------------|
/// | date                     | `{"$date": "2026-09-29T03:34:38.123456Z"}`  |
/// | data                     | `{"$data": "aGVsbG8="}`                     |
/// | not a number, infinities | `{"$real": "nan"}`, `"inf"`, `"-inf"`       |
/// | a date too far away for a calendar | `{"$date": 1e+300}`, seconds since 2001 |
///
/// If a dictionary's only key is one of these, or begins with two dollar signs, one more dollar
/// sign is put in front of the key. Integers are written in full, and a number without fraction and
/// exponent is read as an integer; reals always have a fraction or an exponent, with as few digits
/// as reading back the same value needs. JSON's null is the text `$null`, nil in files. The same
/// text in JSON is refused, because reading back would give null, and so is an integer beyond 64
/// bits. To the limits each value of the table is one object, as in the other forms.
package enum JSONPropertyList {
  /// Reads a whole text.
  package static func decode(
    _ text: [UInt8], limits: PropertyListLimits = .default
  ) throws(PropertyListError) -> PropertyListValue {
    var reader = JSONReader(cursor: try TextCursor(text, limits: limits))
    return try reader.read()
  }

  /// Writes a text, with sorted keys; on one line, or indented and with a line feed at the end.
  package static func encode(
    _ value: PropertyListValue, pretty: Bool = false, limits: PropertyListLimits = .default
  ) throws(PropertyListError) -> String {
    var writer = JSONWriter(isPretty: pretty)
    do {
      return try writer.write(value, limits: limits)
    } catch {
      var error = error
      error.isWriting = true
      throw error
    }
  }

  static let date = "$date"
  static let data = "$data"
  static let real = "$real"

  /// Returns whether a dictionary would be read as another value if its key were written unchanged.
  static func isReserved(_ dictionary: [String: PropertyListValue]) -> Bool {
    guard dictionary.count == 1, let key = dictionary.keys.first else { return false }
    return key == date || key == data || key == real || key.utf8.starts(with: "$$".utf8)
  }
}
