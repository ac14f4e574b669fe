public import WormholeContainerStorage
internal import WormholeSyscalls

/// The unread receipts of one sender.
///
/// Their size is limited, because a sender may be away for a long time, or permanently.
enum Receipts {
  /// What the smallest receipt takes on disk.
  static let block = 4096

  private static func room(of size: Int) -> Int {
    // A file may claim to be larger than any disk.
    max(1, (min(size, 1 << 40) + block - 1) / block) * block
  }

  /// Drops the oldest receipts if all together are too large.
  ///
  /// A check at each arrival would cost more than placing a receipt. Checks are therefore random,
  /// and more likely for a larger receipt: between two checks, all processes together add on
  /// average no more than a sixteenth of the limit.
  ///
  /// - Parameters:
  ///   - size: the size of the new receipt.
  ///   - largest: the limit for all receipts together, in bytes.
  static func bound(
    _ home: MemberDirectory, after size: Int, largest: Int
  ) throws(Errno) {
    let rounds = largest / 16 / room(of: size)
    let chance = home.container.options.environment.random()
    guard rounds <= 1 || chance % UInt64(rounds) == 0 else { return }
    var found: [(receipt: ReceiptName, room: Int)] = []
    for receipt in try list(home) {
      let size = try home.status(of: receipt.text, in: .receipts)?.size
      if let size { found.append((receipt, room(of: size))) }
    }
    var sum = found.reduce(0) { $0 + $1.room }
    guard sum > largest else { return }
    // Whoever carries outcomes to another machine takes them all, and no sender is told twice.
    guard try home.elsewhere == nil || Mutants.has(.dropCarriedReceipts) else { return }
    found.sort { $0.receipt.name.stamp < $1.receipt.name.stamp }
    for (receipt, room) in found where sum > largest / 8 * 7 {
      _ = try home.remove(receipt.text, from: .receipts)
      sum -= room
    }
  }

  /// As ``bound(_:after:largest:)``, for a process that has placed a receipt: a failure is logged.
  static func bound(_ home: MemberDirectory, after size: Int, _ container: SharedContainer) {
    do throws(Errno) {
      try bound(home, after: size, largest: container.options.mailbox.maximumReceiptBytes)
    } catch {
      home.log(.warning, "cannot drop old receipts of", error)
    }
  }

  static func list(_ home: MemberDirectory) throws(Errno) -> [ReceiptName] {
    try home.names(in: .receipts) { ReceiptName(String(cString: $0)) }
  }
}

/// Pending outcomes of a member.
extension Peer {
  /// The peer's pending outcomes, in the order in which the messages were sent, without the sent
  /// values.
  ///
  /// Reading changes nothing: the outcomes are still reported when the peer asks.
  public var pendingOutcomes: [Outcome] {
    get throws(WormholeError) {
      guard let home = try container.storage.existingMember(name, in: folder) else { return [] }
      var untold: [Outcome] = []
      for receipt in try receipts(of: home) {
        if let outcome = try Outcome(receipt, in: home, container) {
          untold.append(outcome.withoutContent)
        }
      }
      return untold
    }
  }

  /// Removes the peer's pending outcomes without a report, now or later.
  ///
  /// - Returns: how many outcomes were removed.
  @discardableResult
  public func removePendingOutcomes() throws(WormholeError) -> Int {
    guard let home = try container.storage.existingMember(name, in: folder) else { return 0 }
    var count = 0
    for receipt in try receipts(of: home) {
      try naming("clear outcomes of", name, at: home) { () throws(Errno) in
        if try home.remove(receipt.text, from: .receipts) { count += 1 }
      }
    }
    return count
  }

  private func receipts(of home: MemberDirectory) throws(WormholeError) -> [ReceiptName] {
    try naming("list outcomes of", name, at: home) { () throws(Errno) in
      try Receipts.list(home).sorted { $0.name < $1.name }
    }
  }
}

extension MessageEnd {
  init(_ end: Outcome.Status) {
    self =
      switch end {
      case .delivered: .ok
      case .cancelled: .cancelled
      case .expired: .expired
      case .deadLettered: .dead
      }
  }
}

extension Outcome.Status {
  init(_ receipt: ReceiptName, to name: String?, _ storage: Container) {
    switch receipt.end {
    case .ok: self = .delivered
    case .cancelled: self = .cancelled
    case .expired: self = .expired
    case .dead:
      // The receiver is a member or a queue; only its own letter has the message's name.
      let homes = [Container.Folder.members, .queues].lazy.compactMap { folder in
        name.flatMap { try? storage.existingMember($0, in: folder) }
      }
      let why = homes.compactMap { DeathReason.read(receipt.name, in: $0) }.first
      let several = receipt.name.count > 1 ? "some messages of the batch are dead letters" : nil
      self = .deadLettered(
        reason: why?.reason ?? several ?? "the reason is no longer stored")
    }
  }
}
