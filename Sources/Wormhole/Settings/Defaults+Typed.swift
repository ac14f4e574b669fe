public import FoundationEssentials
public import WormholeContainerStorage
public import WormholePropertyLists
internal import WormholeSyscalls

/// Values by their type, with the conversions of user defaults.
extension Defaults {
  /// Returns the value of a key, of any type; nil if there is none.
  public func object(forKey key: String) throws(WormholeError) -> PropertyListValue? {
    try value(PropertyListValue.self, forKey: key)
  }

  /// Returns the text of a key, or the digits of a number; nil if there is neither.
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

  /// Returns the whole number of a key.
  ///
  /// A real loses its fraction, a text is converted if it is a whole number, and a truth value
  /// becomes 1 or 0.
  ///
  /// Without a number, or if `Int` cannot represent the number, the result is 0.
  public func integer(forKey key: String) throws(WormholeError) -> Int {
    switch try object(forKey: key) {
    case .real(let number): Int(exactly: number.rounded(.towardZero)) ?? 0
    case .string(let text): Int(text) ?? 0
    case .boolean(let isTrue): isTrue ? 1 : 0
    case let value: value?.intValue ?? 0
    }
  }

  /// Returns the number of a key.
  ///
  /// A text is converted if it is a number, and a truth value becomes 1 or 0.
  ///
  /// Without a number the result is 0.
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

  /// Returns the address of a key; nil if the key has no text.
  ///
  /// A text with a scheme is an address. Any other text is the path of a file, from the home
  /// directory if the text begins with `~/`.
  public func url(forKey key: String) throws(WormholeError) -> URL? {
    guard case .string(let text)? = try object(forKey: key) else { return nil }
    if let url = URL(string: text), url.scheme != nil { return url }
    guard text.begins(with: "~/"), let home = Processes.environment("HOME") else {
      return URL(filePath: text)
    }
    return URL(filePath: home + text.dropFirst())
  }

  /// Sets a key to an address, as text; nil removes it.
  ///
  /// A file address is stored as its path, any other address as a whole.
  public func set(_ url: URL?, forKey key: String) throws(WormholeError) {
    let text = url.map { $0.isFileURL ? $0.path : $0.absoluteString }
    try set(text, forKey: key)
  }

  /// Returns the truth value of a key.
  ///
  /// A number is true unless it is 0. The texts `YES`, `true` and `1` are true, regardless of case.
  ///
  /// Without a value the result is false.
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

  /// Returns the bytes of a key; nil if there are none.
  public func data(forKey key: String) throws(WormholeError) -> Data? {
    try object(forKey: key)?.dataValue
  }

  /// Returns the date of a key; nil if there is none.
  public func date(forKey key: String) throws(WormholeError) -> Date? {
    try object(forKey: key)?.dateValue
  }

  /// Returns the array of a key; nil if the value is not an array.
  public func array(forKey key: String) throws(WormholeError) -> [PropertyListValue]? {
    try object(forKey: key)?.arrayValue
  }

  /// Returns the texts of an array; nil if the value is not an array, or not all elements are
  /// texts.
  public func stringArray(forKey key: String) throws(WormholeError) -> [String]? {
    guard let values = try array(forKey: key) else { return nil }
    let texts = values.compactMap(\.stringValue)
    return texts.count == values.count ? texts : nil
  }

  /// Returns the dictionary of a key; nil if the value is not a dictionary.
  public func dictionary(
    forKey key: String
  ) throws(WormholeError) -> [String: PropertyListValue]? {
    try object(forKey: key)?.dictionaryValue
  }
}
