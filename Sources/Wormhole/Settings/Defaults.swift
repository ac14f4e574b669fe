public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Settings that processes share, with the names of user defaults.
///
/// All keys of a suite are in one file under one lock: a change of one key never undoes another
/// process's change of a different key. Every read returns the current content of the file:
/// nothing has to be synchronised. Calls may be made from any thread, and can fail as a channel's
/// calls can.
public final class Defaults: Sendable {
  /// The suite's name.
  public let suite: String
  let container: SharedContainer
  let slot: Result<Slot, WormholeError>
  private let registered = Monitor<[String: PropertyListValue]>([:])
  let known = Monitor(KnownSuite())

  init(_ suite: String, _ container: SharedContainer) {
    self.suite = suite
    self.container = container
    slot = Result { () throws(WormholeError) in
      try Self.naming("use defaults", suite) { () throws(WormholeError) in
        try container.storage.slot(prefix: Container.Folder.suitePrefix, suite)
      }
    }
  }

  // MARK: Reading

  /// Registers values for unset keys; only for this object, and not stored.
  ///
  /// A key that is registered again replaces its earlier registration.
  public func register(defaults: [String: PropertyListValue]) {
    registered.withLock { $0.merge(defaults) { $1 } }
  }

  /// Returns all keys that are set or registered, with their values.
  public func dictionaryRepresentation() throws(WormholeError) -> [String: PropertyListValue] {
    let stored = try read { (reader, content) throws(WormholeError) in
      try reader.snapshot(of: content, as: [String: PropertyListValue].self)?.value
    }
    return registered.withLock { $0 }.merging(stored ?? [:]) { $1 }
  }

  /// Returns the value of a key, decoded; nil if the key is neither set nor registered.
  ///
  /// Throws ``WormholeError/Code-swift.struct/typeMismatch`` if the value is of another type.
  public func value<Value: Decodable & Sendable>(
    _ type: Value.Type = Value.self, forKey key: String
  ) throws(WormholeError) -> Value? {
    let stored: Value? = try read { (reader, content) throws(WormholeError) in
      try reader.entry(key, of: content)
    }
    if let stored { return stored }
    return try registered(key)
  }

  func registered<Value: Decodable & Sendable>(_ key: String) throws(WormholeError) -> Value? {
    guard let value = registered.withLock({ $0[key] }) else { return nil }
    return try WormholeError.reading("read defaults", suite, as: Value.self) {
      try DefaultsEntry<Value>(key, in: .dictionary([key: value])).value
    }
  }

  private func read<Result>(
    _ body: (SlotReader, Slot.Content) throws(WormholeError) -> Result
  ) throws(WormholeError) -> Result {
    try Self.naming("read defaults", suite) { () throws(WormholeError) in
      try body(reader, slot.get().read())
    }
  }

  var reader: SlotReader {
    SlotReader(
      limits: container.options.limits, name: suite, operation: "read defaults",
      damageHint: "remove all settings with removeAll() or "
        + "'wormhole defaults delete \(suite.shellWord)'; the damaged file moves to damaged/",
      clock: container.options.environment.sinceEpoch)
  }

  // MARK: Writing

  /// Sets a key to any value that can be encoded; nil removes it.
  ///
  /// Watchers of the key are notified if the value differs from before.
  public func set<Value: Encodable>(
    _ value: Value?, forKey key: String
  ) throws(WormholeError) {
    let value = try WormholeError.writing("write defaults", suite) {
      try value.map { try PropertyListValue(encoding: $0, limits: container.options.limits) }
    }
    try write(key, value)
  }

  /// Removes a key; afterwards its value is the registered one, if any.
  public func removeObject(forKey key: String) throws(WormholeError) {
    try write(key, nil)
  }

  /// Removes all keys, also of a damaged suite.
  public func removeAll() throws(WormholeError) { _ = try replace(with: [:]) }

  /// Sets all keys at once, also of a damaged suite, and returns the suite's new version.
  package func replace(
    with values: [String: PropertyListValue]
  ) throws(WormholeError) -> Int {
    try Self.naming("write defaults", suite) { () throws(WormholeError) in
      let writer = SlotWriter(try slot.get(), of: container, name: suite)
      return try writer.put("write", values, ifVersion: nil, nil)
    }
  }

  /// Changes several keys at once, or one key depending on its previous value.
  ///
  /// No process sees only a part of the changes. The body receives the stored values, without
  /// registered ones. It runs under the suite's lock, on the calling thread, as the body of
  /// `update(durability:_:)` does. An error of the body is rethrown, and nothing is changed in
  /// this case.
  public func update(_ body: (inout [String: PropertyListValue]) throws -> Void) throws {
    _ = try changing(body)
  }

  private func write(_ key: String, _ value: PropertyListValue?) throws(WormholeError) {
    try Self.naming("write defaults", suite) { () throws(WormholeError) in
      _ = try change(key, toSeparate: value)
    }
  }

  /// Does nothing, because there is nothing to wait for; exists for code with such calls.
  @discardableResult
  public func synchronize() -> Bool { true }

  /// Makes errors name the suite, and not the file that contains the suite.
  static func naming<Result>(
    _ operation: String, _ suite: String, _ body: () throws(WormholeError) -> Result
  ) throws(WormholeError) -> Result {
    do throws(WormholeError) {
      return try body()
    } catch {
      throw error.named(suite, operation)
    }
  }
}

extension SharedContainer {
  /// Returns the settings of a suite.
  ///
  /// No file is made or read before the first use; a name that cannot be used is an error then.
  /// Registered values belong to the returned object.
  public func defaults(_ suite: String) -> Defaults { Defaults(suite, self) }
}

/// A single key's value in a dictionary, read without the remaining values.
struct DefaultsEntry<Value: Decodable & Sendable>: Decodable, Sendable {
  static var key: CodingUserInfoKey { CodingUserInfoKey(rawValue: "wormhole.key")! }

  let value: Value?

  init(from decoder: any Decoder) throws {
    let storage = try decoder.container(keyedBy: PathKey.self)
    let name = PathKey(stringValue: decoder.userInfo[Self.key] as? String ?? "")
    value = storage.contains(name) ? try storage.decode(Value.self, forKey: name) : nil
  }

  /// Reads the value from a dictionary in memory.
  init(_ key: String, in values: PropertyListValue) throws {
    let bytes = try BinaryPropertyList.encode(["value": values])
    var decoder = BinaryDecoder()
    decoder.userInfo[Self.key] = key
    self = try decoder.decode([String: DefaultsEntry<Value>].self, from: bytes)["value"]!
  }
}

extension SlotReader {
  /// Returns the value of one key in a slot that contains a dictionary.
  func entry<Value: Decodable & Sendable>(
    _ key: String, of content: Slot.Content
  ) throws(WormholeError) -> Value? {
    try looking(for: key, of: Value.self).snapshot(of: content, as: DefaultsEntry<Value>.self)?
      .value?.value
  }

  func entry<Value: Decodable & Sendable>(
    _ key: String, of finding: WatchResult
  ) throws(WormholeError) -> Value? {
    let reader = looking(for: key, of: Value.self)
    guard let (file, isRecovered) = try reader.open(finding) else { return nil }
    return try reader.snapshot(of: file, isRecovered: isRecovered, as: DefaultsEntry<Value>.self)
      .value?
      .value
  }

  private func looking<Value: Decodable & Sendable>(for key: String, of: Value.Type) -> SlotReader {
    var reader = self
    reader.userInfo[DefaultsEntry<Value>.key] = key
    return reader
  }
}
