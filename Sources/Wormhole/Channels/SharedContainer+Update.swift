internal import FoundationEssentials
public import WormholeContainerStorage
internal import WormholePropertyLists

extension SharedContainer {
  /// Changes two channels under both their locks, so that no other change interferes.
  ///
  /// The rules of `update(durability:_:)` apply to each channel. The locks are taken in the order
  /// of the names, so two such calls never wait for each other. If the body throws, neither channel
  /// is changed.
  ///
  /// The channels are committed in sequence. A reader between the two commits sees the first change
  /// and not the second. A process that dies between the commits leaves the channels in this state.
  /// If the call itself can report the state, it throws
  /// ``WormholeError/Code-swift.struct/partlyDone``. Content that must always change together
  /// belongs in one value.
  public func update<First, Second>(
    _ first: Channel<First>, _ second: Channel<Second>, durability: Durability? = nil,
    _ body: (inout First?, inout Second?) throws -> Void
  ) throws {
    let parts = (try Part(first, self), try Part(second, self))
    try update([parts.0, parts.1], durability) { try body(&parts.0.after, &parts.1.after) }
  }

  /// Changes several channels of one type under all their locks.
  ///
  /// As for two channels. The body receives the values in the order of the channels, nil for a
  /// channel without a value. It must leave as many values as channels. Each channel may be passed
  /// only once.
  public func update<Value>(
    _ channels: [Channel<Value>], durability: Durability? = nil,
    _ body: (inout [Value?]) throws -> Void
  ) throws {
    let parts = try channels.map { try Part($0, self) }
    try update(parts, durability) {
      var values = parts.map(\.after)
      try body(&values)
      precondition(values.count == parts.count, "as many values as channels")
      for (part, value) in zip(parts, values) { part.after = value }
    }
  }

  private func update(
    _ parts: [any UpdatePart], _ durability: Durability?, _ body: () throws -> Void
  ) throws {
    guard !parts.isEmpty else { return try body() }
    let durability = durability ?? options.durability
    try storage.change(
      parts.map(\.slot), "update channels", durability: durability, patience: patience
    ) { contents in
      for (part, content) in zip(parts, contents) { try part.open(content) }
      try body()
      return try parts.map { try $0.change(durability) }
    }
    // An earlier call may have made the change, or a part of it, without the sync of the name.
    guard durability == .power else { return }
    for part in parts where part.isFound { try part.slot.syncName("update channels") }
  }
}

/// The part of an update that concerns one channel.
private protocol UpdatePart: AnyObject {
  var slot: Slot { get }
  /// Whether the last change has found the value as it is to be.
  var isFound: Bool { get }
  func open(_ content: Slot.Content) throws(WormholeError)
  func change(_ durability: Durability) throws(WormholeError) -> SlotChange
}

private final class Part<Value: Codable & Sendable>: UpdatePart {
  let slot: Slot
  private let reader: SlotReader
  private let writer: SlotWriter
  private var before: Value?
  private var until: Date?
  private var count = VersionCount(0)
  private var isSynced = true
  private(set) var isFound = false
  var after: Value?

  init(_ channel: Channel<Value>, _ container: SharedContainer) throws(WormholeError) {
    precondition(
      channel.container === container, "'\(channel.name)' is a channel of another container")
    slot = try channel.slot.get()
    reader = channel.reader("update channel")
    writer = try channel.writer()
  }

  func open(_ content: Slot.Content) throws(WormholeError) {
    let opened = try reader.open(content)
    before = try opened.flatMap { opened throws(WormholeError) in
      try reader.snapshot(of: opened.file, isRecovered: opened.isRecovered, as: Value.self).value
    }
    until = opened.flatMap { $0.file.isExpired ? nil : $0.file.header.until }
    after = before
    isSynced = content.isSynced
    do throws(WormholeError) {
      count = try writer.count(content)
    } catch {
      guard error.code == .unreachable else { throw error }
      throw WormholeError(
        .unsupported, "update channels", slot.name, because: error.reason,
        hint: "change this channel by itself, or content that changes together in one channel")
    }
  }

  func change(_ durability: Durability) throws(WormholeError) -> SlotChange {
    isFound = isUnchanged(before, after) && (durability != .power || isSynced)
    if isFound { return .none }
    return .put(try writer.seal(after, count, until: until, "update channel"), note: count.note)
  }
}
