internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Settles a waiting message from outside its receiver.
enum MessageCancellation {
  /// Settles a sent message; returns false if the message is claimed or gone.
  static func end(
    _ sent: SentName, at receiver: MemberDirectory, _ end: MessageEnd,
    _ sender: MemberDirectory?, _ container: SharedContainer?
  ) throws(WormholeError) -> Bool {
    guard sent.since != nil else {
      return try self.end(sent.name, at: receiver, end, sender, container)
    }
    // The message may become due, or be put back, after each search.
    for _ in 0..<3 {
      let place = try naming(
        "cancel message", sent.name.id, at: receiver, receiver.location(of: sent))
      switch place {
      case .delayed(let delayed):
        if Mutants.has(.cancelWaitingOnly) { return false }
        if try self.end(delayed, at: receiver, end, sender, container) { return true }
      case .waiting(let file):
        // The id is also that of a retried dead letter, which never expires.
        if end == .expired, file.name.isRetried { return false }
        if try self.end(file.name, at: receiver, end, sender, container) { return true }
      case .inHand, nil: return false
      }
    }
    return false
  }

  /// Settles a delayed message; returns false if it is no longer delayed.
  static func end(
    _ delayed: DelayedName, at receiver: MemberDirectory, _ end: MessageEnd,
    _ sender: MemberDirectory?, _ container: SharedContainer?
  ) throws(WormholeError) -> Bool {
    let name = delayed.arrived(at: try MessageStamp(receiver.container))
    return try self.end(name, delayed.text, in: .later, at: receiver, end, sender, container)
  }

  /// Moves a message out of the inbox, or out of the claims of its queue if the message was claimed
  /// in vain; returns false if the message is gone.
  ///
  /// One rename decides: a concurrent claim wins, or this call does. The message must not be taken
  /// out, checked and put back: a process that died in between would lose the message.
  ///
  /// - Parameters:
  ///   - sender: the sender's directory, for the receipt, if the sender wants a receipt.
  ///   - container: the caller's instance; nil if no process is to be notified.
  static func end(
    _ name: MessageName, at receiver: MemberDirectory, _ end: MessageEnd,
    _ sender: MemberDirectory?, _ container: SharedContainer?
  ) throws(WormholeError) -> Bool {
    if try self.end(name, name.text, in: .inbox, at: receiver, end, sender, container) {
      return true
    }
    // A worker may claim the message in vain once more after each search.
    for _ in 0..<3 where name.key != nil {
      let file = try naming(
        "cancel message", name.id, at: receiver, receiver.unclaimed(where: { $0 == name }).first)
      guard let file else { return false }
      if try self.end(name, file.text, in: file.part, at: receiver, end, sender, container) {
        return true
      }
    }
    return false
  }

  private static func end(
    _ name: MessageName, _ file: String, in part: MemberDirectory.Part,
    at receiver: MemberDirectory, _ end: MessageEnd, _ sender: MemberDirectory?,
    _ container: SharedContainer?
  ) throws(WormholeError) -> Bool {
    try naming("cancel message", name.id, at: receiver) { () throws(Errno) in
      if Mutants.has(.cancelByPuttingBack) {
        try putBack(name, receiver)
      }
      let receipt = ReceiptName(name, end).text
      var told = name.wantsReceipt ? sender : nil
      let isOurs = try receiver.ending(name, file, in: part) { () throws(Errno) in
        while let home = told {
          if try receiver.move(file, from: part, to: home, .receipts, as: receipt) { return true }
          guard home.isStale else { return false }
          // The sender's directory was removed, and the sender may have joined again.
          told = try SenderHomes(receiver.container).home(of: name)
        }
        return try receiver.remove(file, from: part)
      }
      // The process that settles a message also removes its file; most messages have none.
      if isOurs { _ = try? receiver.remove(name.fileName, from: .files) }
      if isOurs, let told, let container {
        let size = (try? told.status(of: receipt, in: .receipts))?.size
        Receipts.bound(told, after: size ?? 0, container)
      }
      return isOurs
    }
  }

  /// Asks whoever carries a message to another machine to cancel it; returns false if no message
  /// is on its way.
  ///
  /// The request is a file beside the message, and outlives this process and the carrier's. The
  /// carrier removes the request with the message.
  static func request(
    _ isWanted: (MessageName) -> Bool, at receiver: MemberDirectory
  ) throws(WormholeError) -> Bool {
    try naming("cancel message", receiver.name, at: receiver) { () throws(Errno) in
      var isMade = false
      guard try receiver.elsewhere != nil else { return false }
      func claims() throws(Errno) -> [ClaimedName] {
        try receiver.claimedNames().filter { isWanted($0.name) }
      }
      for claimed in try claims() {
        let request = claimed.name.cancellationFile
        try ignoring(.fileExists, receiver.place([], as: request, in: .claimed))
        // Settled in the meantime, perhaps by a carrier that has not seen the request.
        if try claims().contains(where: { $0.name == claimed.name }) {
          isMade = true
        } else {
          _ = try receiver.remove(request, from: .claimed)
        }
      }
      return isMade
    }
  }

  /// Moves a message out and back, as no caller may; for tests.
  private static func putBack(_ name: MessageName, _ receiver: MemberDirectory) throws(Errno) {
    guard try receiver.move(name.text, from: .inbox, .live, as: name.text) else { return }
    Processes.yield()
    _ = try receiver.move(name.text, from: .live, .inbox, as: name.text)
  }
}
