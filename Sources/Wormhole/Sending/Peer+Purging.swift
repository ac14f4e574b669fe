internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholeSyscalls

extension Peer {
  /// Cancels the waiting and the delayed messages of the peer, whichever process has sent them; a
  /// sender is notified on request.
  ///
  /// Claimed messages stay, and so do those that wait for another attempt. A message that is
  /// claimed during the call is not cancelled.
  ///
  /// - Parameters:
  ///   - kind: only messages of this kind; nil for all.
  ///   - age: only messages that were sent at least so long ago, by the clock of the senders; nil
  ///     for all.
  /// - Returns: how many messages were cancelled.
  @discardableResult
  public func purge(
    kind: String? = nil, olderThan age: Duration? = nil
  ) throws(WormholeError) -> Int {
    let operation = "purge the queue of"
    guard let home = try container.storage.existingMember(name, in: folder) else { return 0 }
    let filter = PurgeFilter(kind, age, home, container)
    let senders = SenderHomes(container.storage)
    var (later, names): ([MessageName], [MessageName]) = ([], [])
    try naming(operation, name, at: home) { () throws(Errno) in
      try home.list(.later) { if let name = MessageName($0) { later.append(name) } }
      try home.list(.inbox) { if let name = MessageName($0) { names.append(name) } }
    }
    var count = 0
    let all =
      names.sorted().map { ($0, nil as DelayedName?) }
      + later.sorted().map { ($0, DelayedName($0.text)) }
    for (name, delayed) in all {
      try OffPool.checkCancellation(operation, self.name)
      guard try filter.includes(name, in: delayed == nil ? .inbox : .later) else { continue }
      let sender = try naming(operation, self.name, at: home, senders.home(of: name))
      let isDone =
        if let delayed {
          try MessageCancellation.end(delayed, at: home, .cancelled, sender, container)
        } else {
          try MessageCancellation.end(name, at: home, .cancelled, sender, container)
        }
      if isDone { count += name.count }
    }
    return count
  }

  /// Cancels the waiting messages in the peer's inbox.
  ///
  /// The async overload; a cancelled task leaves the rest of the messages.
  @discardableResult
  public func purge(
    kind: String? = nil, olderThan age: Duration? = nil
  ) async throws(WormholeError) -> Int {
    try await OffPool.run("purge the queue of", name) { () throws(WormholeError) in
      try self.purge(kind: kind, olderThan: age)
    }
  }
}

/// Decides which waiting messages are purged.
private struct PurgeFilter {
  private let kind: String?
  /// The latest time of sending of a purged message; nil for any time.
  private let latest: Date?
  private let reader: QueuedMessageReader

  init(
    _ kind: String?, _ age: Duration?, _ home: MemberDirectory, _ container: SharedContainer
  ) {
    self.kind = kind
    latest = age.map { age in
      Date(sinceEpoch: container.options.environment.sinceEpoch())
        .addingTimeInterval(-Double(age.inNanosecondsClamped) / 1e9)
    }
    reader = QueuedMessageReader(home, container.options.limits)
  }

  func includes(
    _ name: MessageName, in part: MemberDirectory.Part
  ) throws(WormholeError) -> Bool {
    guard kind != nil || latest != nil else { return true }
    let header: MessageFile.Header?
    do throws(WormholeError) {
      header = try reader.header(name.text, part)
    } catch {
      // The kind and the time of a damaged message are unknown.
      guard error.code == .damaged else { throw error }
      return false
    }
    guard let header else { return false }
    if let kind, header.kind != kind { return false }
    guard let latest else { return true }
    return header.sent <= latest
  }
}
