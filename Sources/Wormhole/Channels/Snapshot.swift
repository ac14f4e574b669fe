public import FoundationEssentials
internal import PropertyLists
internal import SharedContainer

extension Wormhole {
  /// What is known of a value without looking at the value itself.
  public struct Metadata: Hashable, Sendable {
    /// Rises with every change of the channel, a clear among them; begins at 1, or above all that
    /// was removed for good from the container.
    public let version: Int
    /// When it was sent, by the sender's clock.
    public let sent: Date
    /// Who sent it, as ``Options-swift.struct/name`` has it there; empty where a channel was
    /// removed for good and nobody can tell by whom.
    public let from: String
    /// Whether the channel was cleared: then there is no value.
    public let isCleared: Bool
    /// Whether the latest value is damaged, and this is the one before it that was kept.
    ///
    /// That may happen after a power cut; the next change of the channel mends it.
    public let isRecovered: Bool

    init(version: Int, sent: Date, from: String, isCleared: Bool, isRecovered: Bool) {
      self.version = version
      self.sent = sent
      self.from = from
      self.isCleared = isCleared
      self.isRecovered = isRecovered
    }

    init(_ header: Envelope.Header, isRecovered: Bool) {
      version = header.version
      sent = header.sent
      from = header.from
      isCleared = !header.hasValue
      self.isRecovered = isRecovered
    }
  }

  /// What a channel held at one moment: a value, or the word that it was cleared.
  public struct Snapshot<Value: Sendable>: Sendable {
    /// The name of the channel.
    public let channel: String
    /// Version, time and sender.
    public let metadata: Metadata
    /// The value; nil if the channel was cleared.
    public let value: Value?

    /// Rises with every change of the channel.
    public var version: Int { metadata.version }
  }
}

extension Wormhole.Snapshot: Equatable where Value: Equatable {}
extension Wormhole.Snapshot: Hashable where Value: Hashable {}

// MARK: From content

/// What a slot holds, on the way to somebody who wants it as a value.
struct SlotReader: Sendable {
  let limits: PropertyListLimits
  /// The name and the operation that errors tell.
  let name: String
  let operation: String
  var userInfo: [CodingUserInfoKey: any Sendable] = [:]
  /// What errors say about damage.
  var damageHint = "what is put next replaces it; the damaged file is set aside then"

  private var decoder: BinaryDecoder {
    var decoder = BinaryDecoder(limits: limits)
    decoder.userInfo = userInfo
    return decoder
  }

  /// Nil if nothing was ever written.
  func open(
    _ content: Slot.Content
  ) throws(WormholeError) -> (file: Envelope.Opened, isRecovered: Bool)? {
    guard let (bytes, isRecovered) = try bytes(of: content) else { return nil }
    let file = try WormholeError.reading(operation, name) {
      try Envelope.Opened(bytes, decoder)
    }
    return (file, isRecovered)
  }

  /// Nil if nothing was ever written.
  func metadata(
    of content: Slot.Content
  ) throws(WormholeError) -> Wormhole.Metadata? {
    guard let (file, isRecovered) = try open(content) else { return nil }
    return Wormhole.Metadata(file.header, isRecovered: isRecovered)
  }

  /// Nil if nothing was ever written.
  func snapshot<Value: Decodable>(
    of content: Slot.Content, as type: Value.Type = Value.self
  ) throws(WormholeError) -> Wormhole.Snapshot<Value>? {
    guard let (file, isRecovered) = try open(content) else { return nil }
    return try snapshot(of: file, isRecovered: isRecovered)
  }

  @inline(__always)
  func snapshot<Value: Decodable>(
    of file: Envelope.Opened, isRecovered: Bool, as type: Value.Type = Value.self
  ) throws(WormholeError) -> Wormhole.Snapshot<Value> {
    let value = try WormholeError.reading(operation, name) {
      try decoder.decode(type, forKey: Envelope.Key.value.rawValue, from: file.document)
    }
    return Wormhole.Snapshot(
      channel: name, metadata: Wormhole.Metadata(file.header, isRecovered: isRecovered),
      value: value)
  }

  /// What a look has found, which has opened the file already.
  func open(
    _ finding: Finding
  ) throws(WormholeError) -> (file: Envelope.Opened, isRecovered: Bool)? {
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
