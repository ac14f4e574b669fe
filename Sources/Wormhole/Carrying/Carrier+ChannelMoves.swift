internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Channels whose home moves to another machine, by an operator's command only.
extension Carrier {
  /// The last content of a channel at its former home, and the changes that other machines asked
  /// for last.
  package struct ChannelLegacy: Equatable, Sendable {
    package var content: ChannelContent?
    package var operations: [String: String]

    package init(_ content: ChannelContent?, _ operations: [String: String]) {
      (self.content, self.operations) = (content, operations)
    }
  }

  /// Makes a channel of this machine a copy of another machine's: no program of this machine
  /// changes the channel from here on.
  ///
  /// May be repeated, as long as the other machine has not taken the channel.
  package func giveAway(
    _ channel: String, to machine: String
  ) throws(WormholeError) -> ChannelLegacy {
    let operation = "move channel"
    let slot = try container.storage.slot(.channels, channel)
    let writer = SlotWriter(slot, of: container, name: channel)
    let reader = SlotReader(
      limits: container.options.limits, name: channel, operation: operation,
      clock: container.options.environment.sinceEpoch)
    var legacy = ChannelLegacy(nil, [:])
    let outcome = try WormholeError.writing(operation, channel) {
      try slot.change("move", durability: .power, patience: writer.patience) { found in
        // The note of an own change says nothing of the home.
        let count = VersionCount(
          found, limits: container.options.limits,
          sinceEpoch: container.options.environment.sinceEpoch())
        guard let snapshot = try reader.snapshot(of: found, as: PropertyListValue.self),
          let present = count.present, present > 0
        else { return .none }
        let content = ChannelContent(
          version: present, sent: snapshot.metadata.writtenAt, writer: snapshot.metadata.writer,
          value: snapshot.value, until: snapshot.metadata.expiresAt)
        legacy = ChannelLegacy(content, count.operations ?? [:])
        guard count.home?.machine != machine else { return .none }
        let fields = Envelope.Header(
          version: present, sent: content.sent, from: content.writer,
          until: content.until, operations: count.operations, home: ChannelHome(machine: machine))
        return .put(try Self.seal(content.value, fields, container))
      }
    }
    if outcome == .unchanged { try slot.syncName(operation) }
    try slot.setHome(ChannelHome(machine: machine))
    return legacy
  }

  /// The machine to which a channel of this machine was given away; nil for none.
  package func heir(ofChannel channel: String) throws(WormholeError) -> String? {
    guard let home = try container.storage.slot(.channels, channel).home() else { return nil }
    // A power cut may bring back the file of a former home, beside a value of this machine.
    let metadata = try container.channel(channel, of: PropertyListValue.self).metadata
    return metadata == nil || metadata?.home != nil ? home.machine : nil
  }

  /// Makes a copy a channel of this machine, with what its former home has left.
  ///
  /// May be repeated: a channel of this machine stays as it is.
  package func adopt(_ legacy: ChannelLegacy, as channel: String) throws(WormholeError) {
    let operation = "move channel"
    let slot = try container.storage.slot(.channels, channel)
    let writer = SlotWriter(slot, of: container, name: channel)
    let outcome = try WormholeError.writing(operation, channel) {
      try slot.change("move", durability: .power, patience: writer.patience) { found in
        let count = VersionCount(
          found, limits: container.options.limits,
          sinceEpoch: container.options.environment.sinceEpoch())
        // A damaged copy states no home of its own: only the file beside the value does.
        let isCopy = try count.home != nil || count.present == nil && slot.home() != nil
        guard let content = legacy.content, count.present == 0 || isCopy else { return .none }
        // With a version of its own the content is new for every copy.
        let fields = Envelope.Header(
          version: min(max(content.version, count.present ?? 0), VersionCount.last - 1) + 1,
          sent: content.sent,
          from: content.writer, until: content.until, operations: legacy.operations)
        return .put(try Self.seal(content.value, fields, container))
      }
    }
    // An earlier call may have failed to sync what it has put.
    if outcome == .unchanged { try slot.syncName(operation) }
    try slot.removeHome()
  }

  static func seal(
    _ value: PropertyListValue?, _ fields: Envelope.Header, _ container: SharedContainer
  ) throws -> [UInt8] {
    let encoder = BinaryEncoder(limits: container.options.limits)
    return try value.map { try Envelope.seal($0, fields, encoder) }
      ?? Envelope.seal(fields, encoder)
  }
}
