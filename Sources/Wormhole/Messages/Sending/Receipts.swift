public import SharedContainer
internal import Syscalls

/// The receipts of one sender that nobody has read yet, which are bounded: a sender may be away for
/// a long time, or for good.
enum Receipts {
  /// What the smallest takes on disk.
  static let block = 4096

  private static func room(of size: Int) -> Int {
    // A file may say that it is larger than any disk.
    max(1, (min(size, 1 << 40) + block - 1) / block) * block
  }

  /// Drops the oldest if there are too many.
  ///
  /// To look each time would cost more than to place one. So it is a matter of chance, the more
  /// likely the larger the new one is: between two looks come on average no more than a sixteenth
  /// of what there may be, from however many processes.
  ///
  /// - Parameters:
  ///   - size: of the one that has come.
  ///   - largest: how many bytes they may take together.
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
    found.sort { $0.receipt.name.stamp < $1.receipt.name.stamp }
    for (receipt, room) in found where sum > largest / 8 * 7 {
      _ = try home.remove(receipt.text, from: .receipts)
      sum -= room
    }
  }

  /// The same, by whoever has placed one there: if it cannot be done now, the log is told.
  static func bound(_ home: MemberDirectory, after size: Int, _ hole: Wormhole) {
    do throws(Errno) {
      try bound(home, after: size, largest: hole.options.mail.largestReceipts)
    } catch {
      hole.log(
        .warning, "cannot drop old receipts of '\(home.name)': \(error)",
        about: LogSubject(member: home.name), because: error)
    }
  }

  static func list(_ home: MemberDirectory) throws(Errno) -> [ReceiptName] {
    var found: [ReceiptName] = []
    try home.list(.receipts) { name in
      if let receipt = ReceiptName(String(cString: name)) { found.append(receipt) }
    }
    return found
  }
}

/// Outcomes that a member has not been told.
extension Wormhole.Peer {
  /// How messages of the peer have ended that it has not been told of, in the order in which they
  /// were sent; what was sent is not read for that.
  ///
  /// To look changes nothing: it is told all the same when it asks.
  public var untoldOutcomes: [Wormhole.Outcome] {
    get throws(WormholeError) {
      guard let home = try hole.container.existingMember(name) else { return [] }
      var untold: [Wormhole.Outcome] = []
      for receipt in try receipts(of: home) {
        if let outcome = try Wormhole.Outcome(receipt, in: home, hole) {
          untold.append(outcome.withoutContent)
        }
      }
      return untold
    }
  }

  /// Drops what the peer has not been told of how its messages ended: it never is.
  ///
  /// - Returns: how many outcomes that were.
  @discardableResult
  public func clearUntoldOutcomes() throws(WormholeError) -> Int {
    guard let home = try hole.container.existingMember(name) else { return 0 }
    var count = 0
    for receipt in try receipts(of: home) {
      do throws(Errno) {
        if try home.remove(receipt.text, from: .receipts) { count += 1 }
      } catch {
        throw WormholeError(error, "clear outcomes of", name)
      }
    }
    return count
  }

  private func receipts(of home: MemberDirectory) throws(WormholeError) -> [ReceiptName] {
    do throws(Errno) {
      return try Receipts.list(home).sorted { $0.name < $1.name }
    } catch {
      throw WormholeError(error, "list outcomes of", name)
    }
  }
}
