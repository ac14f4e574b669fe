internal import WormholeContainerStorage
internal import WormholePropertyLists

/// The headers of a message or a request: a dictionary of strings in the file.
///
/// A sender may be any program, so a reader checks the rules too: headers that break a rule are
/// ignored, and counted in ``ignored``.
struct SenderHeaders: Codable, Hashable, Sendable {
  /// The largest number of headers.
  static let most = 64
  /// The largest size of a key in bytes.
  static let longestKey = 64
  /// The largest size of all keys and values together in bytes.
  static let mostBytes = 8192

  private(set) var fields: [String: String] = [:]
  /// The number of headers in the file that break a rule.
  private(set) var ignored = 0

  /// Checks the headers of a message that is sent; nil without headers.
  init?(
    _ fields: [String: String], _ operation: @autoclosure () -> String,
    _ peer: @autoclosure () -> String
  ) throws(WormholeError) {
    guard !fields.isEmpty else { return nil }
    if let problem = Self.problem(of: fields), !Mutants.has(.anyHeader) {
      throw WormholeError(
        .invalidName, operation(), peer(), because: problem,
        hint: "send fewer or shorter headers, with keys of 'A-Z a-z 0-9 - _ .' and values without "
          + "zero bytes")
    }
    self.fields = fields
  }

  private static func problem(of fields: [String: String]) -> String? {
    guard fields.count <= most else {
      return "there are \(fields.count) headers, and the limit is \(most)"
    }
    for (key, value) in fields.sorted(by: { $0.key < $1.key }) {
      if let problem = problem(of: key, value) { return problem }
    }
    let size = fields.reduce(0) { $0 + $1.key.utf8.count + $1.value.utf8.count }
    return size > mostBytes ? "the headers have \(size) bytes, and the limit is \(mostBytes)" : nil
  }

  private static func problem(of key: String, _ value: String) -> String? {
    let size = key.utf8.count
    if !(1...longestKey).contains(size) {
      let shown = key.prefix(longestKey)
      return
        "the key '\(shown)' of a header has \(size) bytes, and the limits are 1 and \(longestKey)"
    }
    if !key.utf8.allSatisfy(isPlain) {
      return "the key '\(key)' of a header contains another character than 'A-Z a-z 0-9 - _ .'"
    }
    return value.utf8.contains(0) ? "the header '\(key)' contains a zero byte" : nil
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"),
      UInt8(ascii: "."):
      true
    default: false
    }
  }

  /// Reads the headers of a file in the order of their keys, as far as they keep the rules.
  init(from decoder: any Decoder) {
    // Anything but a dictionary is one header that breaks a rule.
    guard let storage = try? decoder.container(keyedBy: PathKey.self) else {
      ignored = 1
      return
    }
    var size = 0
    for key in storage.allKeys.sorted(by: { $0.stringValue < $1.stringValue }) {
      let name = key.stringValue
      guard fields.count < Self.most, let value = try? storage.decode(String.self, forKey: key),
        Self.problem(of: name, value) == nil,
        size + name.utf8.count + value.utf8.count <= Self.mostBytes
      else {
        ignored += 1
        continue
      }
      size += name.utf8.count + value.utf8.count
      fields[name] = value
    }
  }

  func encode(to encoder: any Encoder) throws {
    var storage = encoder.container(keyedBy: PathKey.self)
    for (key, value) in fields.sorted(by: { $0.key < $1.key }) {
      try storage.encode(value, forKey: PathKey(stringValue: key))
    }
  }

  /// The text of a log entry about ignored headers; nil if none was ignored.
  func complaint(of subject: @autoclosure () -> String) -> String? {
    guard ignored > 0 else { return nil }
    return "ignored \(ignored) headers of \(subject()): they break the limits of headers"
  }
}
