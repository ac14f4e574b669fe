internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholeSyscalls

extension Peer {
  /// Cancels the waiting and the delayed messages of the peer, whichever process has sent them; a
  /// sender is notified on request.
  ///
  /// Claimed messages stay, and so do those that wait for another attempt. A message that is
  /// claimed during the call is not cancelled. A delayed message that becomes due during the call
  /// is.
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
    let later = try naming(operation, name, at: home, home.names(in: .later) { DelayedName($0) })
    let files = try naming(operation, name, at: home) { () throws(Errno) in
      try home.names(in: .inbox) { MessageName($0).map { WaitingFile($0) } }
        + home.unclaimed { _ in true }
    }
    /// Returns how many messages were cancelled.
    func cancel(
      _ file: WaitingFile, _ delayed: DelayedName? = nil
    ) throws(WormholeError) -> Int {
      let name = file.name
      try OffPool.checkCancellation(operation, self.name)
      guard try filter.includes(file.text, in: delayed == nil ? file.part : .later) else {
        return 0
      }
      let sender = try naming(operation, self.name, at: home, senders.home(of: name))
      let isDone =
        if let delayed {
          try MessageCancellation.end(delayed, at: home, .cancelled, sender, container)
        } else {
          try MessageCancellation.end(name, at: home, .cancelled, sender, container)
        }
      return isDone ? name.count : 0
    }
    var count = 0
    for file in files.sorted(by: { $0.name < $1.name }) { count += try cancel(file) }
    // Another process moves a delayed message into the inbox when the message is due.
    var due: Set<String> = []
    for delayed in later.sorted(by: { $0.name < $1.name }) {
      let cancelled = try cancel(WaitingFile(delayed.name), delayed)
      count += cancelled
      guard cancelled == 0 else { continue }
      let status = try naming(operation, name, at: home, home.status(of: delayed.text, in: .later))
      if status == nil { due.insert(delayed.name.unique) }
    }
    guard !due.isEmpty else { return count }
    let moved = try naming(operation, name, at: home) { () throws(Errno) in
      try home.names(in: .inbox) { file in
        MessageName(file).flatMap { due.contains($0.unique) ? $0 : nil }
      }
    }
    for name in moved.sorted() { count += try cancel(WaitingFile(name)) }
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

/// Decides which waiting messages or dead letters are removed.
struct PurgeFilter {
  private let kind: String?
  /// The latest time of sending of a removed message; nil for any time.
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
    _ file: String, in part: MemberDirectory.Part
  ) throws(WormholeError) -> Bool {
    guard kind != nil || latest != nil else { return true }
    let header: MessageFile.Header?
    do throws(WormholeError) {
      header = try reader.header(file, part)
    } catch {
      // The kind and the time are unknown: no later read tells them.
      guard error.meansUnreadable else { throw error }
      return false
    }
    guard let header else { return false }
    if let kind, header.kind != kind { return false }
    guard let latest else { return true }
    return header.sent <= latest
  }
}
