public import FoundationEssentials
public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A message dead-lettered by a member, stored for inspection.
public struct DeadLetter: Hashable, Sendable {
  /// The sender's id for the message; for a message of a batch, followed by a dot and its index.
  public let id: String
  /// The member that sent the message; nil if no member is named.
  public let from: String?
  /// The kind given by the sender; nil if the file is unreadable.
  public let kind: String?
  /// When the message was sent, by the sender's clock; nil if the file is unreadable.
  public let sentAt: Date?
  /// The headers that the sender gave; none if the file is unreadable.
  public let headers: [String: String]
  /// How many messages the file contains.
  public let count: Int
  /// The size of the file in bytes.
  public let size: Int
  /// Why the message was dead-lettered; nil if the reason is no longer stored.
  public let reason: String?
  /// How many attempts have failed.
  public let attempts: Int
  /// When the message was dead-lettered; nil if the time is no longer stored.
  public let failedAt: Date?
}

extension Peer {
  /// The peer's dead letters, in the order in which they were sent.
  public var deadLetters: [DeadLetter] {
    get throws(WormholeError) {
      guard let home = try container.storage.existingMember(name, in: folder) else { return [] }
      let found = try naming("list dead letters of", name, at: home) { () throws(Errno) in
        try home.names(in: .dead) { MessageName($0) }
      }
      let glance = QueuedMessageReader(home, container.options.limits)
      return found.sorted().compactMap { name in
        guard let message = glance.message(name, name.text, .dead, 0) else { return nil }
        let why = DeathReason.read(name, in: home)
        return DeadLetter(
          id: message.id, from: message.from, kind: message.kind, sentAt: message.sentAt,
          headers: message.headers, count: message.count, size: message.size,
          reason: why?.reason ?? message.damage,
          attempts: why?.attempts ?? 0, failedAt: why?.when)
      }
    }
  }

  /// Moves a dead letter back into the peer's inbox, to be handled again, with as many attempts as
  /// a new message.
  ///
  /// The message has the queue position of its sending time, and counts as redelivered. Its sender
  /// was notified of the dead letter, and receives no further notice. If several dead letters have
  /// the id, all are moved.
  ///
  /// - Returns: whether a dead letter had the id.
  public func retry(id: String) throws(WormholeError) -> Bool {
    try endDeadLetters(id, "retry message") { (file, home) throws(Errno) in
      try home.move(file.text, from: .dead, .inbox, as: file.retried.text)
    }
  }

  /// Removes a dead letter permanently; if several have the id, removes all of them.
  ///
  /// - Returns: whether a dead letter had the id.
  public func discard(id: String) throws(WormholeError) -> Bool {
    try endDeadLetters(id, "discard message") { (file, home) throws(Errno) in
      try discardLetter(file, in: home)
    }
  }

  /// Removes the dead letters permanently.
  ///
  /// The remaining letters are removed after a failure, too.
  ///
  /// - Parameters:
  ///   - kind: only letters of this kind; nil for all.
  ///   - age: only letters that were sent at least so long ago; nil for all.
  /// - Returns: the number of removed messages, and the first error.
  package func discardAll(
    kind: String? = nil, olderThan age: Duration? = nil
  ) throws(WormholeError) -> (count: Int, failure: WormholeError?) {
    guard let home = try container.storage.existingMember(name, in: folder) else { return (0, nil) }
    let filter = PurgeFilter(kind, age, home, container)
    let files = try naming("list dead letters of", name, at: home) { () throws(Errno) in
      try home.names(in: .dead) { MessageName($0) }
    }
    var count = 0
    var failure: WormholeError?
    for file in files.sorted() {
      do throws(WormholeError) {
        guard try filter.includes(file.text, in: .dead),
          try naming("discard message", file.id, at: home, discardLetter(file, in: home))
        else { continue }
        count += file.count
        removeReason(of: file, in: home)
      } catch {
        failure = failure ?? error
      }
    }
    return (count, failure)
  }

  private func discardLetter(
    _ file: MessageName, in home: MemberDirectory
  ) throws(Errno) -> Bool {
    guard try home.discard(file.text) else { return false }
    _ = try? home.remove(file.fileName, from: .files)
    return true
  }

  private func endDeadLetters(
    _ id: String, _ operation: String,
    _ end: (MessageName, MemberDirectory) throws(Errno) -> Bool
  ) throws(WormholeError) -> Bool {
    guard let home = try container.storage.existingMember(name, in: folder) else { return false }
    var isDone = false
    for file in try files(id, in: .dead, of: home) {
      guard try naming(operation, id, at: home, end(file, home)) else { continue }
      isDone = true
      // The message first: a reason without a message belongs to none, and is harmless.
      removeReason(of: file, in: home)
    }
    return isDone
  }

  /// Removes the reason of a letter, unless the message has become a letter again.
  ///
  /// A message that was retried before keeps its name. Its receiver may dead-letter it again at any
  /// time, with a new reason in the same file.
  private func removeReason(of file: MessageName, in home: MemberDirectory) {
    let reason = DeathReason.read(file, in: home)
    _ = try? home.remove(file.reasonFile, from: .dead)
    guard let reason, (try? home.status(of: file.text, in: .dead)) ?? nil != nil,
      DeathReason.read(file, in: home) == nil
    else { return }
    try? reason.write(beside: file, in: home)
  }
}
