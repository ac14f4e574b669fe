internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Finds unsettled messages, from outside the receiver.
extension MemberDirectory {
  /// Calls the body with each delayed, waiting or claimed message.
  ///
  /// A message that moves in the meantime may be reported more than once, at last with the location
  /// where it was found last.
  func forEachMessage(_ body: (MessageLocation) -> Void) throws(Errno) {
    try forEachMessageFile {
      if let name = DelayedName($0) { body(.delayed(name)) }
    } waiting: {
      if let file = WaitingFile(listed: $0) { body(.waiting(file)) }
    } claimed: {
      body(.inHand($0, $1))
    }
  }

  /// Lists as ``forEachMessage(_:)`` does; delayed and waiting messages are file names in the
  /// kernel's form, and may be names that the library did not make.
  ///
  /// - Parameter waiting: receives ``WaitingFile/listed``, or a name in the inbox.
  func forEachMessageFile(
    delayed: (UnsafePointer<CChar>) -> Void, waiting: (UnsafePointer<CChar>) -> Void,
    claimed: (ClaimedName, MemberDirectory) -> Void
  ) throws(Errno) {
    try look { () throws(Errno) in
      try list(.later, delayed)
      try list(.inbox, waiting)
      try forEachInHand { name, holder in
        if let file = WaitingFile(name, in: holder) {
          file.listed.withCString(waiting)
        } else {
          claimed(name, holder)
        }
      }
      return false
    }
  }

  /// Whether a waiting or claimed message satisfies the condition; looks no further than the first.
  func hasMessage(where isWanted: (MessageLocation) -> Bool) throws(Errno) -> Bool {
    var isFound = false
    try look { () throws(Errno) in
      isFound = try contains(.inbox) { file in
        MessageName(file).map { isWanted(.waiting(WaitingFile($0))) } ?? false
      }
      guard !isFound else { return true }
      for holder in try holders() where !isFound {
        isFound = try holder.contains(.claimed) { file in
          guard let claimed = ClaimedName(String(cString: file)) else { return false }
          return isWanted(MessageLocation(claimed, holder))
        }
      }
      return isFound
    }
    return isFound
  }

  /// Claims a waiting message by one rename; false if the message is gone.
  func claim(_ claimed: ClaimedName) throws(Errno) -> Bool {
    try move(claimed.name.text, from: .inbox, .claimed, as: claimed.text)
  }

  /// Removes the file of a settled message.
  func dropFile(of name: MessageName) {
    do throws(Errno) {
      _ = try remove(name.fileName, from: .files)
    } catch {
      container.log(
        .warning, "cannot remove the file of message '\(name.id)': \(error)",
        about: LogSubject(member: self.name, message: name.id), because: error)
    }
  }

  /// Returns the location of a message; nil if the message is settled.
  func location(of sent: SentName) throws(Errno) -> MessageLocation? {
    var location: MessageLocation?
    try look { () throws(Errno) in
      if let delayed = sent.delayed {
        if try status(of: delayed.text, in: .later) != nil {
          location = .delayed(delayed)
          return true
        }
        try list(.inbox) { file in
          if let name = MessageName(file), sent.matches(name) { location = .waiting(.init(name)) }
        }
      } else if try status(of: sent.name.text, in: .inbox) != nil {
        location = .waiting(.init(sent.name))
      }
      if location == nil {
        try forEachInHand { if sent.matches($0.name) { location = MessageLocation($0, $1) } }
      }
      return location != nil
    }
    return location
  }

  /// Calls the body with each claimed message.
  func forEachInHand(
    _ body: (ClaimedName, MemberDirectory) -> Void
  ) throws(Errno) {
    for holder in try holders() {
      for claimed in try holder.claimedNames() { body(claimed, holder) }
    }
  }

  /// The names of the messages that are claimed in this directory, unordered.
  func claimedNames() throws(Errno) -> [ClaimedName] {
    try names(in: .claimed) { ClaimedName(String(cString: $0)) }
  }

  /// Returns the messages that were returned to a queue as if never claimed, in order.
  func unclaimed(where isWanted: (MessageName) -> Bool) throws(Errno) -> [WaitingFile] {
    guard folder == .queues else { return [] }
    return try claimedNames().compactMap { WaitingFile($0, in: self) }.filter { isWanted($0.name) }
      .sorted { $0.name < $1.name }
  }

  /// The directories with claims: the workers of a queue and the queue, or the member alone.
  private func holders() throws(Errno) -> [MemberDirectory] { try workers() + [self] }

  /// Lists the delayed, the waiting and then the claimed messages, because messages move in this
  /// direction.
  ///
  /// But a message may also be requeued or start its next attempt, and a listing may miss a name
  /// that changes. So if a name has appeared or disappeared in the meantime, all are listed again,
  /// three times at most.
  ///
  /// - Parameter isEnough: lists the messages; returns whether the result is sufficient despite any
  ///   changes.
  private func look(_ isEnough: () throws(Errno) -> Bool) throws(Errno) {
    for _ in 0..<3 {
      // Change times are rounded down to the last tick of the system clock.
      let begin = Clocks.sinceEpoch - 20_000_000
      if try isEnough() { return }
      var changes = [try lastChange(of: .later), try lastChange(of: .inbox)]
      for holder in try holders() { changes.append(try holder.lastChange(of: .claimed)) }
      guard changes.contains(where: { $0 ?? .min >= begin }), !Mutants.has(.listOnce) else {
        return
      }
    }
  }
}

/// The location of an unsettled message.
enum MessageLocation {
  case delayed(DelayedName)
  case waiting(WaitingFile)
  /// Claimed, in the directory of a member or of a worker; or, in the directory of a queue, to be
  /// claimed again.
  case inHand(ClaimedName, MemberDirectory)

  /// The location of a file among the claims of a directory.
  init(_ claimed: ClaimedName, _ holder: MemberDirectory) {
    if let file = WaitingFile(claimed, in: holder) {
      self = .waiting(file)
    } else {
      self = .inHand(claimed, holder)
    }
  }

  var isInHand: Bool { if case .inHand = self { true } else { false } }

  var name: MessageName {
    switch self {
    case .delayed(let delayed): delayed.name
    case .waiting(let file): file.name
    case .inHand(let claimed, _): claimed.name
    }
  }
}

/// The file of a message that waits for its first attempt.
///
/// The file is in the inbox. With an ordering key, a message that was claimed in vain waits in the
/// `claimed/` of its queue instead.
struct WaitingFile: Hashable, Sendable {
  let name: MessageName
  let part: MemberDirectory.Part
  /// The name of the file in its part.
  let text: String

  init(_ name: MessageName) { self.init(name, .inbox, name.text) }

  /// Nil for a message that was attempted, or that a worker has.
  init?(_ claimed: ClaimedName, in holder: MemberDirectory) {
    guard claimed.isUnclaimed, !holder.isWorker else { return nil }
    self.init(claimed.name, .claimed, claimed.text)
  }

  private init(_ name: MessageName, _ part: MemberDirectory.Part, _ text: String) {
    (self.name, self.part, self.text) = (name, part, text)
  }

  // MARK: In a listing of both parts

  /// The name of the file, and a slash behind the name of a file in `claimed/`.
  ///
  /// The name alone does not tell the part: a file in the inbox may have any name. No file name
  /// contains a slash.
  var listed: String { part == .claimed ? text + "/" : text }

  /// Nil for a text in another form.
  init?(listed: UnsafePointer<CChar>) {
    if listed.last(of: UInt8(ascii: "/")) != nil {
      guard let claimed = ClaimedName(String(String(cString: listed).dropLast())) else {
        return nil
      }
      self.init(claimed.name, .claimed, claimed.text)
    } else {
      guard let name = MessageName(listed) else { return nil }
      self.init(name)
    }
  }
}
