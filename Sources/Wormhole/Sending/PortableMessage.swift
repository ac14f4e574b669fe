package import FoundationEssentials
package import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// A message with all that is needed to send it anew, in this container or another.
package struct PortableMessage: Sendable {
  /// The death of a dead letter.
  package struct Death: Sendable {
    package let reason: String
    package let attempts: Int
    package let when: Date

    package init(reason: String, attempts: Int, when: Date) {
      (self.reason, self.attempts, self.when) = (reason, attempts, when)
    }
  }

  /// The receiver: a member, or a queue.
  package var to: String
  package var isQueue: Bool
  package var id: String
  package var from: String?
  package var kind: String
  package var headers: [String: String]
  package var orderingKey: String?
  package var isUrgent: Bool
  package var sentAt: Date
  package var expires: Date?
  package var notBefore: Date?
  /// Nil for a file without a value.
  package var value: PropertyListValue?
  /// The sender's name of the file, and its size; nil for a message without a file.
  package var file: (name: String, size: Int)?
  /// Nil unless the message is a dead letter.
  package var death: Death?

  package init(
    to: String, isQueue: Bool, id: String, from: String?, kind: String,
    headers: [String: String], orderingKey: String?, isUrgent: Bool, sentAt: Date,
    expires: Date?, notBefore: Date?, value: PropertyListValue?, file: (name: String, size: Int)?,
    death: Death?
  ) {
    (self.to, self.isQueue, self.id, self.from, self.kind) = (to, isQueue, id, from, kind)
    (self.headers, self.orderingKey, self.isUrgent) = (headers, orderingKey, isUrgent)
    (self.sentAt, self.expires, self.notBefore) = (sentAt, expires, notBefore)
    (self.value, self.file, self.death) = (value, file, death)
  }
}

/// The file of a stored message, read in pieces.
package final class PortableFile: Sendable {
  private let file: Descriptor
  private let size: Int
  private let id: String

  fileprivate init(_ file: consuming Descriptor, size: Int, id: String) {
    (self.size, self.id) = (size, id)
    self.file = file
  }

  /// Throws if the file does not have the size that its message states, as after a power cut.
  fileprivate func checkSize() throws {
    let found = try file.status().size
    guard found == size else { throw mismatch(.damaged, found) }
  }

  private func mismatch(_ code: WormholeError.Code, _ found: Int) -> WormholeError {
    WormholeError(
      code, "read file of message", id,
      because: "the file has \(found) bytes, and \(size) were sent")
  }

  /// Calls the body with the pieces of the file, in order: as many bytes as the message states.
  package func forEachPiece(of length: Int, _ body: (Data) throws -> Void) throws {
    var offset = 0
    while offset < size {
      var piece = Data(count: min(length, size - offset))
      let start = offset
      let count = try piece.withUnsafeMutableBytes { buffer in
        try file.readFully(into: buffer, at: start)
      }
      guard count == piece.count else { throw mismatch(.conflict, offset + count) }
      try body(piece)
      offset += count
    }
  }
}

extension SharedContainer {
  /// Calls the body with each message that waits for a member or a queue, and with each dead
  /// letter: in the order of delivery, interrupted messages first and dead letters last.
  ///
  /// The messages that a living receiver has claimed, and the expired ones, are left out. One
  /// message is in memory at a time, and the names of one mailbox.
  ///
  /// - Parameter failure: receives the error of a message that cannot be read, which is left out.
  package func forEachPortableMessage(
    _ body: (PortableMessage, PortableFile?) throws -> Void, failure: (WormholeError) -> Void
  ) throws {
    let unreadable: [WormholeError.Code] = [.damaged, .refused, .permissionDenied, .tooLarge]
    for folder in [Container.Folder.members, .queues] {
      for name in try storage.names(in: folder) {
        guard let home = try storage.existingMember(name, in: folder) else { continue }
        let reader = PortableMessageReader(home, options)
        for (part, holder) in try home.storedParts() {
          for file in try holder.names(in: part, { String(cString: $0) }).sorted() {
            var isRead = false
            do {
              try reader.read(file, part, of: holder) { message, content in
                isRead = true
                try body(message, content)
              }
            } catch let error as WormholeError where !isRead && unreadable.contains(error.code) {
              failure(error)
            }
          }
        }
      }
    }
  }
}

extension MemberDirectory {
  /// The directories with messages that wait for an attempt, and with dead letters.
  fileprivate func storedParts() throws -> [(MemberDirectory.Part, MemberDirectory)] {
    var holders: [MemberDirectory] = []
    for worker in try workers() where try !worker.isPresent() { holders.append(worker) }
    // In the directory of a queue, claims wait for another attempt.
    if try folder == .queues || !isPresent() { holders.append(self) }
    return holders.map { (.claimed, $0) } + [(.inbox, self), (.later, self), (.dead, self)]
  }
}

/// Reads the messages of one mailbox.
private struct PortableMessageReader {
  private let home: MemberDirectory
  private let limits: PropertyListLimits
  private let now: Date

  init(_ home: MemberDirectory, _ options: Options) {
    self.home = home
    limits = options.limits
    now = Date(sinceEpoch: options.environment.sinceEpoch())
  }

  /// Passes on the messages of a file; none for a foreign file, and for one that is gone by now.
  func read(
    _ file: String, _ part: MemberDirectory.Part, of holder: MemberDirectory,
    _ body: (PortableMessage, PortableFile?) throws -> Void
  ) throws {
    let name: MessageName
    var notBefore: Date?
    var isRepeated = false
    switch part {
    case .claimed:
      guard let claim = ClaimedName(file) else { return }
      (name, isRepeated) = (claim.name, claim.next().isRepeated)
    case .later:
      guard let delayed = DelayedName(file) else { return }
      (name, notBefore) = (delayed.name, Date(sinceEpoch: delayed.due))
    default:
      guard let plain = MessageName(file) else { return }
      name = plain
    }
    let operation = "read message"
    let content: PropertyListValue
    switch try holder.read(file, in: part, operation) {
    case .missing: return
    case .damaged(let reason, _):
      throw WormholeError(.damaged, operation, name.id, because: reason)
    case .sound(let bytes, _):
      content = try WormholeError.reading(operation, name.id) {
        try BinaryPropertyList.decode(bytes, limits: limits)
      }
    }
    let header = try QueuedMessageReader(holder, limits).header(file, part)
    guard let header else { return }
    let expires = part == .dead ? nil : header.expiry(of: name, isRepeated: isRepeated)
    if let expires, expires <= now { return }
    var message = PortableMessage(
      to: home.name, isQueue: home.folder == .queues, id: name.id, from: name.senderName,
      kind: header.kind, headers: header.headers?.fields ?? [:], orderingKey: header.orderingKey,
      isUrgent: name.isUrgent, sentAt: header.sent, expires: expires,
      notBefore: notBefore, value: content["value"],
      file: header.file.map { ($0.receivedName, $0.size) }, death: nil)
    if part == .dead {
      let why = DeathReason.read(name, in: home)
      message.death = .init(
        reason: why?.reason ?? "the reason is no longer stored", attempts: why?.attempts ?? 0,
        when: why?.when ?? header.sent)
    }
    if let stated = header.file {
      guard let content = try self.file(of: name, size: stated.size) else {
        // A message that was handled in the meantime is gone with its file.
        guard try holder.status(of: file, in: part) != nil else { return }
        throw WormholeError(
          .damaged, "read file of message", name.id, because: "the file does not exist")
      }
      try content.checkSize()
      return try body(message, content)
    }
    guard case .array(let values)? = content["values"] else { return try body(message, nil) }
    for (index, value) in values.enumerated() {
      var one = message
      (one.id, one.value) = ("\(name.id).\(index)", value)
      try body(one, nil)
    }
  }

  /// Opens the file of a message; nil if there is none.
  private func file(of name: MessageName, size: Int) throws -> PortableFile? {
    try naming("read file of message", name.id) { () throws(Errno) in
      try ignoring(.noSuchFile) { () throws(Errno) -> PortableFile? in
        // The file of a worker's message is in the queue's directory.
        guard let files = try home.existing(.files) else { return nil }
        let file = try files.descriptor.open(name.fileName, .readOnlyNonBlocking)
        return PortableFile(file, size: size, id: name.id)
      } ?? nil
    }
  }
}

extension Peer {
  /// Sends a stored message anew, behind all messages that wait, marked as redelivered; a dead
  /// letter becomes a dead letter again.
  ///
  /// - Parameter path: the file of a message with a file, which is moved.
  package func restore(
    _ message: PortableMessage, file path: String?, durability: Durability
  ) throws(WormholeError) {
    var options = SendOptions(
      durability: durability, notBefore: message.notBefore, isUrgent: message.isUrgent,
      id: message.id, kind: message.kind, orderingKey: message.orderingKey,
      headers: message.headers, wantsOutcome: false)
    // The ID of a message in a batch may be too long with its index.
    if (try? MessageName.escape(id: message.id)) == nil { options.id = nil }
    options.isRedelivered = true
    options.death = message.death
    options.expires = message.expires
    let peer = message.isQueue ? ofQueue : self
    guard let path else {
      _ = try peer.send(message.value ?? .dictionary([:]), options)
      return
    }
    options.notBefore = nil
    if let value = message.value {
      _ = try peer.send(file: path, metadata: value, mode: .moving, options)
    } else {
      _ = try peer.send(file: path, mode: .moving, options)
    }
  }
}
