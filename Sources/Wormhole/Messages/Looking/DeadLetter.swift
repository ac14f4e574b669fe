public import FoundationEssentials
internal import PropertyLists
public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// A message that a member has given up, kept for somebody to look at.
  public struct DeadLetter: Hashable, Sendable {
    /// The sender's name for it; for one message of a batch, with a dot and its place there.
    public let id: String
    /// The member who sent it; nil if nobody is named.
    public let from: String?
    /// What the sender called it; nil if it cannot be read.
    public let kind: String?
    /// When it was sent, by the sender's clock; nil if it cannot be read.
    public let sent: Date?
    /// How many messages it holds.
    public let count: Int
    /// How many bytes its file has.
    public let size: Int
    /// Why it was given up; nil if that is no longer kept.
    public let reason: String?
    /// How often it was handled in vain.
    public let attempts: Int
    /// When it was given up; nil if that is no longer kept.
    public let given: Date?
  }
}

extension Wormhole.Peer {
  /// What the peer has given up, in the order in which it was sent.
  public var deadLetters: [Wormhole.DeadLetter] {
    get throws(WormholeError) {
      guard let home = try hole.container.existingMember(name) else { return [] }
      var found: [MessageName] = []
      do throws(Errno) {
        try home.list(.dead) { if let name = MessageName($0) { found.append(name) } }
      } catch {
        throw WormholeError(error, "list dead letters of", name)
      }
      let glance = QueuedMessageReader(home, hole.options.limits)
      return found.sorted().compactMap { name in
        guard let message = glance.message(name, name.text, .dead, 0) else { return nil }
        let why = DeathReason.read(name, in: home)
        return Wormhole.DeadLetter(
          id: message.id, from: message.from, kind: message.kind, sent: message.sent,
          count: message.count, size: message.size, reason: why?.reason ?? message.damage,
          attempts: why?.attempts ?? 0, given: why?.when)
      }
    }
  }

  /// Puts a dead letter back into the peer's inbox, to be handled once more, with as many attempts
  /// as a new message.
  ///
  /// It has the place of when it was sent, and counts as redelivered. Its sender has been told that
  /// it was given up, and is told nothing more. If several have the id, all of them are put back.
  ///
  /// - Returns: whether there was one.
  public func retry(id: String) throws(WormholeError) -> Bool {
    try endDeadLetters(id, "retry message") { (file, home) throws(Errno) in
      try home.move(file.text, from: .dead, .inbox, as: file.retried.text)
    }
  }

  /// Removes a dead letter for good; all that have the id, if there are several.
  ///
  /// - Returns: whether there was one.
  public func discard(id: String) throws(WormholeError) -> Bool {
    try endDeadLetters(id, "discard message") { (file, home) throws(Errno) in
      guard try home.discard(file.text) else { return false }
      _ = try? home.remove(file.fileName, from: .files)
      return true
    }
  }

  private func endDeadLetters(
    _ id: String, _ operation: String,
    _ end: (MessageName, MemberDirectory) throws(Errno) -> Bool
  ) throws(WormholeError) -> Bool {
    guard let home = try hole.container.existingMember(name) else { return false }
    var isDone = false
    for file in try files(id, in: .dead, of: home) {
      do throws(Errno) {
        guard try end(file, home) else { continue }
        isDone = true
        // The message first: a reason without one is nobody's, and harmless.
        _ = try home.remove(file.reasonFile, from: .dead)
      } catch {
        throw WormholeError(error, operation, id)
      }
    }
    return isDone
  }
}
