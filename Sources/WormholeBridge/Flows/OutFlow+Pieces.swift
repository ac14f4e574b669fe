internal import Wormhole
internal import WormholeContainerStorage

/// Large messages and files, in pieces.
///
/// Large messages and everything else of the flow go on in turn: only few pieces have numbers that
/// the other machine has not confirmed, and they are shared out among the large messages. Messages
/// to the same member that were sent later wait, since a member has the messages of a machine in
/// their order.
extension OutFlow {
  /// How many bytes of pieces may be unconfirmed: what everything else waits for at most.
  static let mostPieceBytes = 16 * FlowPiece.bytes
  /// How many large messages may be under way, each to another member: what the other machine has
  /// on its disk before the messages arrive.
  static let mostTransfers = 8

  /// Whether a large message can go on.
  package var wantsPieces: Bool {
    !large.isEmpty && unconfirmedBytes <= Self.mostPieceBytes / 2
  }

  private var unconfirmedBytes: Int {
    var sum = 0
    for record in records.reversed().prefix(while: { $0.last > confirmed }) {
      for (offset, entry) in record.entries.enumerated() where record.first + offset > confirmed {
        sum += entry.piece?.count ?? 0
      }
    }
    return sum
  }

  /// What is bound next of the messages that wait.
  struct BundleDraft {
    /// How many bytes of pieces may still be bound; counted at the first large message.
    var bytes: Int?
    /// How many bytes of them may belong to messages to one member.
    let share: Int
    /// How many large messages may still begin.
    var begins: Int
    var entries: [FlowEntry] = []
  }

  func newDraft() -> BundleDraft {
    BundleDraft(
      share: Self.mostPieceBytes / max(1, large.count),
      begins: max(0, Self.mostTransfers - transfers.count))
  }

  /// Adds the messages that wait at a proxy, in their order; a large one is preceded by its pieces.
  func bind(
    _ proxy: Proxy, _ draft: inout BundleDraft
  ) throws(WormholeError) {
    let receiver = proxy.resident
    large.remove(receiver)
    var share = draft.share
    var current = transfers[receiver]
    if let transfer = current {
      let isGone = try proxy.sizes(of: transfer.name) == nil
      if isGone || isStranger(transfer.name) {
        // The sender has cancelled the message, or the message goes another way: the other machine
        // removes its pieces.
        draft.entries.append(FlowEntry(.dropped, to: receiver, transfer.name))
        current = nil
      }
    }
    var bound: Set<MessageName> = []
    for name in try proxy.waiting(atMost: Self.mostEntries) {
      if isStranger(name) {
        strangers.append((proxy, name))
        continue
      }
      let entry = FlowEntry(.message, to: receiver, name)
      guard !isBound(entry), !bound.contains(name), let sizes = try proxy.sizes(of: name) else {
        continue
      }
      guard sizes.file != nil || sizes.message > FlowPiece.bytes else {
        draft.entries.append(entry)
        continue
      }
      // An urgent message comes first only while nothing large is under way to the member.
      if let earlier = current, earlier.name != name {
        guard let sizes = try proxy.sizes(of: earlier.name),
          bind(earlier, sizes, &draft, &share)
        else {
          large.insert(receiver)
          return
        }
        bound.insert(earlier.name)
        current = nil
        draft.begins += 1
      }
      let transfer: FlowTransfer
      if let current {
        transfer = current
      } else if draft.begins > 0 {
        draft.begins -= 1
        transfer = FlowTransfer(to: receiver, name)
      } else {
        large.insert(receiver)
        return
      }
      guard bind(transfer, sizes, &draft, &share) else {
        large.insert(receiver)
        if Mutants.has(.overtakePieces) { continue }
        return
      }
      current = nil
      draft.begins += 1
    }
  }

  /// Adds pieces, and the message after its last one; returns whether the message is complete.
  private func bind(
    _ transfer: FlowTransfer, _ sizes: Proxy.Sizes, _ draft: inout BundleDraft,
    _ share: inout Int
  ) -> Bool {
    var transfer = transfer
    var bytes = draft.bytes ?? Self.mostPieceBytes - unconfirmedBytes
    defer { draft.bytes = bytes }
    while let piece = transfer.next(sizes) {
      guard bytes > 0, share > 0 else { return false }
      bytes -= piece.count
      share -= piece.count
      draft.entries.append(
        FlowEntry(.piece(piece), to: transfer.receiver, transfer.name))
      transfer = FlowTransfer(to: transfer.receiver, transfer.name, after: piece)
    }
    draft.entries.append(FlowEntry(.message, to: transfer.receiver, transfer.name))
    return true
  }

  /// Whether the message's sender is elsewhere and asks for the outcome; see ``strangers``.
  func isStranger(_ name: MessageName) -> Bool {
    name.wantsReceipt && residents.isElsewhere(name.sender)
  }

  /// Ends the transfers to members whose home is no longer the machine.
  ///
  /// Their messages wait still, and go to the new home from the first piece on, or to a program of
  /// this machine.
  func droppedTransfers() -> [FlowEntry] {
    func isHome(_ receiver: Carrier.Resident) -> Bool {
      residents[receiver].map { $0.machine == machine && residents.carries($0) } ?? false
    }
    large = large.filter { isHome($0) }
    return transfers.values.filter { !isHome($0.receiver) }
      .map { FlowEntry(.dropped, to: $0.receiver, $0.name) }
  }

  /// Where the transfers are after an entry.
  static func note(
    _ entry: FlowEntry, in transfers: inout [Carrier.Resident: FlowTransfer]
  ) {
    let receiver = entry.resident
    switch entry.kind {
    case .piece(let piece):
      transfers[receiver] = FlowTransfer(to: receiver, entry.name, after: piece)
    case .message, .dropped:
      if transfers[receiver]?.name == entry.name { transfers[receiver] = nil }
    case .outcome, .cancellation, .returned, .context, .job, .worked: break
    }
  }

  /// The bytes of a piece; nil if its message, or its file, is gone or shorter by now.
  ///
  /// The receiver then has an incomplete file, and its program treats the message as damaged, as on
  /// one machine.
  func bytes(of piece: FlowPiece, _ entry: FlowEntry) throws(WormholeError) -> [UInt8]? {
    // The home may have moved since the piece got its number.
    guard let proxy = try residents.receiver(entry.resident) else { return nil }
    let bytes = try proxy.read(
      piece.part, of: entry.name, at: piece.offset, count: piece.count)
    return bytes?.count == piece.count ? bytes : nil
  }
}
