public import FoundationEssentials
public import PropertyLists
public import SharedContainer
internal import Syscalls

/// Values by their type, with the conversions that user defaults make.
extension Wormhole.Defaults {
  /// The value of a key, whatever it is; nil if there is none.
  public func object(forKey key: String) throws(WormholeError) -> PropertyListValue? {
    try value(PropertyListValue.self, forKey: key)
  }

  /// The text of a key, or the digits of a number; nil if there is neither.
  public func string(forKey key: String) throws(WormholeError) -> String? {
    switch try object(forKey: key) {
    case .string(let text): text
    case .integer(let number): String(number)
    case .unsigned(let number): String(number)
    case .real(let number): String(number)
    case .boolean(let isTrue): isTrue ? "1" : "0"
    default: nil
    }
  }

  /// The whole number of a key: also of a real, without its fraction, of a text that is one, and of
  /// a truth, as 1 or 0.
  ///
  /// It is 0 if there is none, or if `Int` cannot hold it.
  public func integer(forKey key: String) throws(WormholeError) -> Int {
    switch try object(forKey: key) {
    case .real(let number): Int(exactly: number.rounded(.towardZero)) ?? 0
    case .string(let text): Int(text) ?? 0
    case .boolean(let isTrue): isTrue ? 1 : 0
    case let value: value?.intValue ?? 0
    }
  }

  /// The number of a key: also of a text that is one, and of a truth, as 1 or 0.
  ///
  /// It is 0 if there is none.
  public func double(forKey key: String) throws(WormholeError) -> Double {
    switch try object(forKey: key) {
    case .integer(let number): Double(number)
    case .unsigned(let number): Double(number)
    case .string(let text): Double(text) ?? 0
    case .boolean(let isTrue): isTrue ? 1 : 0
    case let value: value?.doubleValue ?? 0
    }
  }

  /// As ``double(forKey:)``, with fewer digits.
  public func float(forKey key: String) throws(WormholeError) -> Float {
    Float(try double(forKey: key))
  }

  /// The address of a key: of a text that is one, with a scheme, and else of the file whose path it
  /// is, from the home directory if it begins with `~/`; nil if there is no text.
  public func url(forKey key: String) throws(WormholeError) -> URL? {
    guard case .string(let text)? = try object(forKey: key) else { return nil }
    if let url = URL(string: text), url.scheme != nil { return url }
    guard text.begins(with: "~/"), let home = Processes.environment("HOME") else {
      return URL(filePath: text)
    }
    return URL(filePath: home + text.dropFirst())
  }

  /// Sets a key to an address, as text: the path of a file, and of others the whole; nil removes
  /// it.
  public func set(_ url: URL?, forKey key: String) throws(WormholeError) {
    let text = url.map { $0.isFileURL ? $0.path : $0.absoluteString }
    try set(text, forKey: key)
  }

  /// The truth of a key: also of a number, which is true unless it is 0, and of the texts `YES`,
  /// `true` and `1`, in whatever case.
  ///
  /// It is false if there is none.
  public func bool(forKey key: String) throws(WormholeError) -> Bool {
    switch try object(forKey: key) {
    case .boolean(let isTrue): isTrue
    case .integer(let number): number != 0
    case .unsigned(let number): number != 0
    case .real(let number): number != 0
    case .string(let text): ["yes", "true", "1"].contains(text.lowercased())
    default: false
    }
  }

  /// The bytes of a key; nil if there are none.
  public func data(forKey key: String) throws(WormholeError) -> Data? {
    try object(forKey: key)?.dataValue
  }

  /// The moment of a key; nil if there is none.
  public func date(forKey key: String) throws(WormholeError) -> Date? {
    try object(forKey: key)?.dateValue
  }

  /// The values in order of a key; nil if it is no array.
  public func array(forKey key: String) throws(WormholeError) -> [PropertyListValue]? {
    try object(forKey: key)?.arrayValue
  }

  /// The texts in order of a key; nil if it is no array, or holds anything else.
  public func stringArray(forKey key: String) throws(WormholeError) -> [String]? {
    guard let values = try array(forKey: key) else { return nil }
    let texts = values.compactMap(\.stringValue)
    return texts.count == values.count ? texts : nil
  }

  /// The named values of a key; nil if it is no dictionary.
  public func dictionary(
    forKey key: String
  ) throws(WormholeError) -> [String: PropertyListValue]? {
    try object(forKey: key)?.dictionaryValue
  }
}
