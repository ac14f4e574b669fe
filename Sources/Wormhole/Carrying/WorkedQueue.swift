internal import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// A queue of another machine, on the machine of its workers: what the home has lent, and how it
/// has ended.
///
/// The workers work in the queue's `away/` as in any queue. A worker of this machine that has ended
/// or hangs is looked after here. What no worker can have is given back to the home.
package final class WorkedQueue: Sendable {
  /// The keys of a lent message's `origin`.
  package enum Key {
    package static let (attempt, isMarked) = ("attempt", "marked")
  }

  /// The end of a message, until the home has it.
  package struct EndedMessage: Sendable {
    package let file: String
    package let origin: PropertyListValue?
    package let end: LoanEnd
  }

  /// What is there now.
  package struct Look: Sendable {
    /// How many messages the workers handle at the same time.
    package var room = 0
    /// The origins of the messages that have not ended.
    package var held: [PropertyListValue] = []
    package var ended: [EndedMessage] = []

    package init() {}
  }

  private static let (undone, failed) = ("undone", "failed")

  package let name: String
  package let proxy: Proxy
  private let container: SharedContainer
  private let away: MemberDirectory
  private let patrol: QueuePatrol
  /// The origins, by the names that the messages have here.
  private let origins = Monitor<[String: PropertyListValue]>([:])

  package init(_ proxy: Proxy) throws(WormholeError) {
    self.proxy = proxy
    container = proxy.carrier.container
    name = proxy.name
    do throws(Errno) {
      away = try proxy.home.away()
      patrol = QueuePatrol(away, "", container)
      try patrol.begin()
    } catch {
      throw WormholeError(error, "lend messages of queue", proxy.name, at: proxy.home)
    }
  }

  package func stop() { patrol.stop() }

  package func look() throws(WormholeError) -> Look {
    var look = Look()
    try naming("list messages to", name, at: away) { () throws(Errno) in
      let places = try unsettled { worker throws(Errno) in
        if try worker.isPresent() { look.room += worker.workerRoom }
      }
      var ends: [(file: String, name: MessageName, end: String)] = []
      try away.list(.receipts) { file in
        let file = String(cString: file)
        guard let dot = file.lastIndex(of: "."), let name = MessageName(String(file[..<dot]))
        else { return }
        ends.append((file, name, String(file[file.index(after: dot)...])))
      }
      for (home, part, file, name) in places {
        if let origin = try? readOrigin(of: name, file, part, home) { look.held.append(origin) }
      }
      for (file, name, end) in ends.sorted(by: { $0.name < $1.name }) {
        var origin: PropertyListValue?
        do throws(WormholeError) {
          origin = try readOrigin(of: name, file, .receipts, away)
        } catch {
          // An end without an origin is removed. This end may be readable at the next look.
          if error.mayPass { continue }
        }
        look.ended.append(EndedMessage(file: file, origin: origin, end: self.end(end, name)))
      }
      let present = Set(places.map(\.3.text) + ends.map(\.name.text))
      origins.withLock { $0 = $0.filter { present.contains($0.key) } }
    }
    return look
  }

  /// Returns the place of each message that is not settled.
  ///
  /// - Parameter body: is called with each worker, before its directory is listed.
  private func unsettled(
    _ body: (MemberDirectory) throws(Errno) -> Void = { _ in }
  ) throws(Errno) -> [(MemberDirectory, MemberDirectory.Part, String, MessageName)] {
    var places: [(MemberDirectory, MemberDirectory.Part, String, MessageName)] = []
    for worker in try away.workers() {
      try body(worker)
      for claimed in try worker.claimedNames() {
        places.append((worker, .claimed, claimed.text, claimed.name))
      }
    }
    places += try waiting().map { (away, $0.part, $0.file, $0.name) }
    return places
  }

  private func waiting() throws(Errno) -> [(
    part: MemberDirectory.Part, file: String, name: MessageName, claimed: ClaimedName?
  )] {
    var found: [(MemberDirectory.Part, String, MessageName, ClaimedName?)] = []
    try away.list(.inbox) { file in
      if let name = MessageName(file) { found.append((.inbox, name.text, name, nil)) }
    }
    for claimed in try away.claimedNames() {
      found.append((.claimed, claimed.text, claimed.name, claimed))
    }
    return found
  }

  /// The origin of a message; nil if the file is missing, or has no origin that can be read.
  private func readOrigin(
    of name: MessageName, _ file: String, _ part: MemberDirectory.Part, _ home: MemberDirectory
  ) throws(WormholeError) -> PropertyListValue? {
    if let known = origins.withLock({ $0[name.text] }) { return known }
    guard case .sound(let bytes, _) = try home.read(file, in: part, "read message"),
      let origin = try? CarriedMessage(name, bytes, container.options.limits).origin
    else { return nil }
    origins.withLock { $0[name.text] = origin }
    return origin
  }

  private func end(_ mark: String, _ name: MessageName) -> LoanEnd {
    switch mark {
    case MessageEnd.ok.rawValue: return .acknowledged
    case MessageEnd.dead.rawValue:
      let reason = DeathReason.read(name, in: away)
      return .dead(reason: reason?.reason ?? "", attempts: reason?.attempts ?? 1)
    case Self.failed: return .failed
    // The home finds that the message has expired, and tells its sender.
    default: return .undone
    }
  }

  /// Removes the end of a message, after the home has stored it.
  package func forget(_ file: String) throws(WormholeError) {
    try naming("settle message of", name, at: away) { () throws(Errno) in
      _ = try away.remove(file, from: .receipts)
      if let dot = file.lastIndex(of: "."), let name = MessageName(String(file[..<dot])) {
        _ = try away.remove(name.reasonFile, from: .dead)
      }
    }
  }

  /// Gives the messages that no worker has back to the home.
  package func giveBack() throws(WormholeError) {
    try naming("give back messages of", name, at: away) { () throws(Errno) in
      for (part, file, name, claimed) in try waiting() {
        let begun = claimed.map { isBegun($0, file, part) } ?? false
        let end = begun ? Self.failed : Self.undone
        _ = try away.move(file, from: part, .receipts, as: "\(name.text).\(end)")
      }
    }
  }

  /// Takes messages away from the workers of this machine, because the home has given them to
  /// others: the acknowledgement of such a message is refused.
  package func revoke(_ isLate: (PropertyListValue) -> Bool) throws(WormholeError) {
    guard !Mutants.has(.neverRevoke) else { return }
    try naming("give back messages of", name, at: away) { () throws(Errno) in
      for (home, part, file, name) in try unsettled() {
        guard let origin = try? readOrigin(of: name, file, part, home), isLate(origin) else {
          continue
        }
        // The home finds that the end is late, as it would find of an acknowledgement.
        _ = try home.move(
          file, from: part, to: away, .receipts, as: "\(name.text).\(Self.failed)")
      }
    }
  }

  /// Whether a worker of this machine has begun with a message that waits again.
  private func isBegun(
    _ claimed: ClaimedName, _ file: String, _ part: MemberDirectory.Part
  ) -> Bool {
    let origin = try? readOrigin(of: claimed.name, file, part, away)
    if claimed.attempt >= origin?[Key.attempt]?.intValue ?? 1 { return true }
    return claimed.isInterrupted && origin?[Key.isMarked]?.boolValue != true
  }
}

extension Carrier {
  /// Gives a lent message to this machine's workers, by one rename; false if the file is gone.
  ///
  /// - Parameters:
  ///   - file: the message, complete, in a directory of the carrier.
  ///   - name: see ``arrivalName(of:)``.
  ///   - attempt: the number of the attempt that is about to begin.
  ///   - isMarked: whether an attempt before the first counted one was interrupted.
  package func lend(
    _ file: String, in directory: OpenDirectory, as name: MessageName, attempt: Int,
    isMarked: Bool, to queue: String
  ) throws(WormholeError) -> Bool {
    let home = try container.storage.member(queue, in: .queues)
    return try naming("lend message to", home, .away) { () throws(Errno) in
      let back = ClaimedName(name, attempt: attempt, isInterrupted: isMarked)
        .returned(after: .undone)
      return try home.away().move(
        file, of: directory, to: back == nil ? .inbox : .claimed, as: back?.text ?? name.text)
    }
  }
}
