package import FoundationEssentials
internal import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// Channels with a home on one machine, and copies on others.
extension Carrier {
  package typealias ChannelChange = HomeChange<PropertyListValue>
  package typealias ChannelAnswer = HomeAnswer<PropertyListValue>

  /// The content of a channel, on its way to a copy.
  package struct ChannelContent: Equatable, Sendable {
    package let version: Int
    package let sent: Date
    package let writer: String
    /// Nil if the channel was cleared.
    package let value: PropertyListValue?
    /// When the value expires, by the wall clock; nil for never.
    package var until: Date?

    package init(
      version: Int, sent: Date, writer: String, value: PropertyListValue?, until: Date?
    ) {
      (self.version, self.sent, self.writer) = (version, sent, writer)
      (self.value, self.until) = (value, until)
    }
  }

  // MARK: At home

  /// The content of a channel of this machine; nil if it was never written.
  package func content(of channel: String) throws(WormholeError) -> ChannelContent? {
    try container.channel(channel, of: PropertyListValue.self).latest.map {
      ChannelContent(
        version: $0.version, sent: $0.metadata.writtenAt, writer: $0.metadata.writer,
        value: $0.value, until: $0.metadata.expiresAt)
    }
  }

  /// The largest number of machines whose last changes a value hands on.
  package static let mostMachines = 256

  /// Makes a change that another machine has asked for, under the channel's own lock.
  ///
  /// The value has the ID of the machine's last change, in the same file. So a change that is asked
  /// again is made once, whenever the carrier or this process was killed. Every later change hands
  /// the IDs on. A program made before the IDs existed drops the IDs; then the answer to a change
  /// that is asked again is that another version is present.
  package func make(
    _ change: ChannelChange, for machine: String
  ) throws(WormholeError) -> ChannelAnswer {
    let operation = "change channel"
    let slot = try container.storage.slot(.channels, change.channel)
    let writer = SlotWriter(slot, of: container, name: change.channel)
    let reader = SlotReader(
      limits: container.options.limits, name: change.channel, operation: operation,
      clock: container.options.environment.sinceEpoch)
    var answer = ChannelAnswer(.refused)
    let beside = Mutants.has(.operationsBeside) ? try operationBeside(change, machine) : nil
    let outcome = try WormholeError.writing(operation, change.channel) {
      try slot.change("change", durability: .power, patience: writer.patience) { content in
        var count = try writer.count(content)
        let present = count.present
        let last = Mutants.has(.operationsBeside) ? beside : count.operations?[machine]
        if last == change.operation, let present {
          answer = ChannelAnswer(.made, version: present)
          return .none
        }
        guard change.expected == nil || change.expected == present else {
          let snapshot = try reader.snapshot(of: content, as: PropertyListValue.self)
          answer = ChannelAnswer(
            .differs, version: present ?? 0, value: snapshot?.value,
            until: snapshot?.metadata.isCleared == false ? snapshot?.metadata.expiresAt : nil)
          return .none
        }
        count.handOn(change.operation, of: machine)
        guard count.operations?.count ?? 0 <= Self.mostMachines else {
          answer = ChannelAnswer(
            .refused, reason: "\(Self.mostMachines) machines have changed the channel already")
          return .none
        }
        answer = ChannelAnswer(.made, version: count.next)
        return .put(
          try writer.seal(change.value, count, until: change.until, operation), note: count.note)
      }
    }
    // The call that has made the change may have failed to sync it, or may have been killed.
    if outcome == .unchanged, answer.result == .made { try slot.syncName(operation) }
    if Mutants.has(.operationsBeside) { try noteBeside(change, machine) }
    return answer
  }

  // MARK: Elsewhere

  /// Stores the content of a channel whose home is another machine, or that the stored content is
  /// still the latest.
  ///
  /// Watchers of the channel are notified of new content. A channel of this machine with content of
  /// its own is refused: its changes would be lost.
  ///
  /// - Parameters:
  ///   - desk: takes the changes that programs of this machine make; nil for none.
  ///   - since: when the home last stated that the content is its latest; nil for now.
  package func store(
    _ content: ChannelContent?, of channel: String, from machine: String,
    changesTo desk: ChangeDesk?, since: Date? = nil
  ) throws(WormholeError) {
    let operation = "store copy of channel"
    let slot = try container.storage.slot(.channels, channel)
    let writer = SlotWriter(slot, of: container, name: channel)
    let now = since ?? Date(sinceEpoch: container.storage.options.environment.sinceEpoch())
    let home = ChannelHome(
      machine: machine, since: now, version: content?.version ?? 0, carrier: desk?.address)
    let isCopy = try slot.home() != nil
    if !isCopy {
      // Under the lock, no program of this machine can make a first change meanwhile.
      try WormholeError.writing(operation, channel) {
        _ = try slot.change("store copy of", patience: writer.patience) { found in
          guard case .nothing = found else {
            throw WormholeError(
              .conflict, operation, channel,
              because: "the channel has content of this machine",
              hint: "move its home to this machine, or remove the channel here")
          }
          try slot.setHome(home)
          return .none
        }
      }
    }
    if let content {
      try WormholeError.writing(operation, channel) {
        _ = try slot.change("store copy of", patience: writer.patience) { found in
          let count = writer.countAnywhere(found)
          guard count.present != content.version || count.home == nil else { return .none }
          let fields = Envelope.Header(
            version: content.version, sent: content.sent, from: content.writer,
            until: content.until, home: ChannelHome(machine: machine, since: now))
          // The next change has to read that this is a copy.
          return .put(try Self.seal(content.value, fields, container))
        }
      }
    }
    // Without content, only the file beside the value states the home.
    if isCopy { try slot.setHome(home, durability: content == nil ? .power : .process) }
  }

  /// Takes the changes that programs of this machine make of copies, as a guest.
  ///
  /// - Parameter handler: called for each change, with a closure for the answer. The closure may be
  ///   called later, on any thread.
  package func takeChanges(
    _ handler: @escaping ChangeDesk.Handler
  ) throws(WormholeError) -> ChangeDesk {
    try ChangeDesk(container, handler)
  }
}

/// Where changes of copies arrive, as long as the object is kept and ``stop()`` was not called.
package final class ChangeDesk: Sendable {
  package typealias Handler =
    @Sendable (Carrier.ChannelChange, @escaping @Sendable (Carrier.ChannelAnswer) -> Void) -> Void

  private let guest: Guest
  private let subscription: Subscription

  /// The guest's address, for `home.plist`.
  package var address: String { guest.address }

  init(
    _ container: SharedContainer, _ handler: @escaping Handler
  ) throws(WormholeError) {
    guest = try container.guest()
    let kind = Channel<PropertyListValue>.changeKind
    subscription = guest.respond(toKind: kind) { request in
      do throws(WormholeError) {
        handler(try request.value()) { answer in
          // The requester asks again if this fails.
          _ = try? request.reply(answer)
        }
      } catch {
        request.refuse(error.reason)
      }
    }
  }

  /// Takes no more changes: they fail as unreachable.
  package func stop() {
    subscription.stop()
    guest.leave()
  }
}

/// The IDs in a file beside the value, as they must not be kept; for tests.
extension Carrier {
  private static let besideName = "operations.plist"

  private func operationBeside(
    _ change: ChannelChange, _ machine: String
  ) throws(WormholeError) -> String? {
    let bytes = try? container.storage.read(Self.besideName, in: container.storage.bridge())
    return bytes.flatMap { try? BinaryPropertyList.decode($0)["\(change.channel),\(machine)"] }?
      .stringValue
  }

  private func noteBeside(_ change: ChannelChange, _ machine: String) throws(WormholeError) {
    let list = PropertyListValue.dictionary(
      ["\(change.channel),\(machine)": .string(change.operation)])
    guard let bytes = try? BinaryEncoder().encode(list) else { return }
    try? container.storage.replace(
      Self.besideName, in: container.storage.bridge().descriptor, by: bytes, sync: false)
  }
}
