public import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The properties of a value that are known without decoding the value.
public struct Metadata: Hashable, Sendable {
  /// The version, which rises with every change of the channel, including a clear.
  ///
  /// Versions start at 1, or above the versions of all channels that were permanently removed
  /// from the container.
  public let version: Int
  /// The time of the change, by the sender's clock.
  public let writtenAt: Date
  /// The sender's ``Options/writerName``; empty if the channel was permanently removed and
  /// the remover is not known.
  public let writer: String
  /// Whether the channel has no value, because it was cleared or its value has expired.
  public let isCleared: Bool
  /// Whether the latest value is damaged and this is the stored previous value.
  ///
  /// A power cut may cause the damage; the next change of the channel repairs it.
  public let isRecovered: Bool
  /// When the value expires, by the wall clock; nil for never.
  ///
  /// If the moment has passed, ``isCleared`` is true.
  public private(set) var expiresAt: Date?
  /// The machine that is the channel's home, if the value is a copy; nil for a channel of this
  /// machine, and empty if the machine cannot be read.
  public private(set) var home: String?
  /// When the home machine last stated that the copy is its latest value, by the clock of this
  /// machine; nil for a channel of this machine.
  public private(set) var confirmedAt: Date?

  /// How long ago the home machine last stated that the copy is its latest value; nil for a channel
  /// of this machine.
  public var age: Duration? {
    confirmedAt.map { max(.zero, .seconds(clamping: Date().timeIntervalSince($0))) }
  }

  init(version: Int, sent: Date, from: String, isCleared: Bool, isRecovered: Bool) {
    self.version = version
    self.writtenAt = sent
    self.writer = from
    self.isCleared = isCleared
    self.isRecovered = isRecovered
  }

  init(_ file: Envelope.OpenFile, isRecovered: Bool) {
    let header = file.header
    version = header.version
    writtenAt = header.sent
    writer = header.from
    isCleared = !file.hasValue || file.isExpired
    expiresAt = header.until
    self.isRecovered = isRecovered
    if let home = header.home { note(home) }
  }

  /// The same with what the slot's `home.plist` states, if the value is a copy.
  func confirmed(_ slot: Slot) throws(WormholeError) -> Metadata {
    guard home != nil, let home = try slot.home(), home.version == version else { return self }
    var metadata = self
    metadata.note(home)
    return metadata
  }

  private mutating func note(_ home: ChannelHome) {
    self.home = home.machine ?? self.home ?? ""
    confirmedAt = [confirmedAt, home.since].compactMap { $0 }.max()
  }
}

/// The content of a channel at one moment: a value, or the fact that the channel was cleared.
public struct Snapshot<Value: Sendable>: Sendable {
  /// The name of the channel.
  public let channel: String
  /// Version, time and sender.
  public let metadata: Metadata
  /// The value; nil if the channel was cleared.
  public let value: Value?

  /// Inlined, because the runtime looks up the types of the result and of the value at each call.
  @inline(__always)
  init(channel: String, metadata: Metadata, value: Value?) {
    self.channel = channel
    self.metadata = metadata
    self.value = value
  }

  /// The same with what the slot's `home.plist` states, if the value is a copy.
  func confirmed(_ slot: Slot) throws(WormholeError) -> Snapshot {
    guard metadata.home != nil else { return self }
    return Snapshot(channel: channel, metadata: try metadata.confirmed(slot), value: value)
  }

  /// The version, which rises with every change of the channel.
  public var version: Int { metadata.version }

  /// How long ago the home machine last stated that this copy is its latest value; nil for a
  /// channel of this machine.
  public var age: Duration? { metadata.age }
}

extension Snapshot: Equatable where Value: Equatable {}
extension Snapshot: Hashable where Value: Hashable {}

// MARK: From content

/// Decodes the content of a slot for readers.
struct SlotReader: Sendable {
  let limits: PropertyListLimits
  /// The name and the operation in error messages.
  let name: String
  let operation: String
  var userInfo: [CodingUserInfoKey: any Sendable] = [:]
  /// The hint of errors about damage.
  var damageHint = "put a new value; the damaged file moves to damaged/"
  /// The wall clock, in nanoseconds since 1970, by which values expire.
  let clock: @Sendable () -> Int64

  private var decoder: BinaryDecoder {
    var decoder = BinaryDecoder(limits: limits)
    decoder.userInfo = userInfo
    return decoder
  }

  /// Returns nil if the slot was never written.
  func open(
    _ content: Slot.Content
  ) throws(WormholeError) -> (file: Envelope.OpenFile, isRecovered: Bool)? {
    guard let (bytes, isRecovered) = try bytes(of: content) else { return nil }
    let file = try WormholeError.reading(operation, name) {
      try Envelope.OpenFile(bytes, decoder, clock)
    }
    // An expired value stands in for nothing: a reader must not take the damage for a clear.
    if isRecovered, file.isExpired, !Mutants.has(.recoverExpired) {
      throw WormholeError(
        .damaged, operation, name,
        because: "the latest value is damaged or missing, and the kept value has expired",
        hint: damageHint)
    }
    return (file, isRecovered)
  }

  /// Returns nil if the slot was never written.
  func metadata(
    of content: Slot.Content
  ) throws(WormholeError) -> Metadata? {
    guard let (file, isRecovered) = try open(content) else { return nil }
    return Metadata(file, isRecovered: isRecovered)
  }

  /// Returns nil if the slot was never written.
  func snapshot<Value: Decodable>(
    of content: Slot.Content, as type: Value.Type = Value.self
  ) throws(WormholeError) -> Snapshot<Value>? {
    guard let (file, isRecovered) = try open(content) else { return nil }
    return try snapshot(of: file, isRecovered: isRecovered)
  }

  @inline(__always)
  func snapshot<Value: Decodable>(
    of file: Envelope.OpenFile, isRecovered: Bool, as type: Value.Type = Value.self
  ) throws(WormholeError) -> Snapshot<Value> {
    let value =
      try file.isExpired
      ? nil
      : WormholeError.reading(operation, name, as: type) {
        try decoder.decode(type, forKey: Envelope.value, from: file.document)
      }
    return Snapshot(
      channel: name, metadata: Metadata(file, isRecovered: isRecovered),
      value: value)
  }

  /// The same for a watch result, which may contain the opened file already.
  func open(
    _ finding: WatchResult
  ) throws(WormholeError) -> (file: Envelope.OpenFile, isRecovered: Bool)? {
    if let file = finding.file, case .success(.value(_, let isRecovered)) = finding.content {
      return (file, isRecovered)
    }
    return try open(finding.content.get())
  }

  private func bytes(
    of content: Slot.Content
  ) throws(WormholeError) -> (bytes: [UInt8], isRecovered: Bool)? {
    switch content {
    case .nothing: return nil
    case .value(let bytes, let isRecovered): return (bytes, isRecovered)
    case .tooLarge(let size): throw Slot.tooLarge(size, operation, name)
    case .damaged(let reason):
      throw WormholeError(
        .damaged, operation, name, because: reason, hint: damageHint)
    }
  }
}
