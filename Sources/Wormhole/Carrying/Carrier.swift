internal import FoundationEssentials
package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Stands in for members and guests of other machines: the part of a bridge that works in the
/// container.
///
/// A carrier is no member. For each member of another machine it has a ``Proxy``, a directory like
/// a member's with `elsewhere.plist`. Programs send to a proxy as to any member. The life of a
/// message that goes to another machine:
///
///     inbox/<name>  →  claimed/<name>~1  →  the sender's receipts/<name>.ok, or nowhere
///
/// The first step is ``Proxy/claim(_:)``, and the second ``Proxy/settle(_:_:)``, after the other
/// machine has stored the message or has reported its outcome. In between the message is in
/// transit.
///
/// A message that comes from another machine is written beside the inbox first, and gets its name
/// in the inbox by one rename, ``deliver(_:in:as:to:)``. Its sender is a proxy here, so its
/// receiver settles it as any other message, and the outcome lies in the proxy's `receipts/`:
/// ``Proxy/outcomes(atMost:)``.
///
/// Nothing is kept in memory. A carrier that is killed between two steps finds what is left to do
/// in the directories, and each step may be repeated.
package final class Carrier: Sendable {
  let container: SharedContainer
  let senders: SenderHomes
  private let latest = Monitor<MessageStamp?>(nil)
  /// See ``takeRequests(_:)``.
  let requests = Monitor<RequestHandler?>(nil)

  package init(_ container: SharedContainer) throws(WormholeError) {
    try container.storage.checkOwner("carry messages of", container.directory)
    try WormholeError.checkNoCopy("carry messages of", container.directory)
    self.container = container
    senders = SenderHomes(container.storage)
  }

  var now: MessageStamp {
    get throws(WormholeError) { try MessageStamp(container.storage) }
  }

  // MARK: Proxies

  /// A member, a guest or a queue of another machine.
  package enum Resident: Hashable, Sendable {
    case member(String)
    /// Called by 16 hexadecimal digits.
    case guest(Incarnation)
    case queue(String)

    package var name: String {
      switch self {
      case .member(let name), .queue(let name): name
      case .guest(let digits): digits.rawValue
      }
    }

    var folder: Container.Folder {
      switch self {
      case .member: .members
      case .guest: .guests
      case .queue: .queues
      }
    }
  }

  /// The addressee of messages, as a member or a queue of this machine.
  func peer(_ resident: Resident) -> Peer {
    let peer = container.peer(resident.name)
    return if case .queue = resident { peer.ofQueue } else { peer }
  }

  /// Returns the proxy of a resident whose home is the machine; made if need be.
  ///
  /// While a program of this machine has the name, this is refused with
  /// ``WormholeError/Code-swift.struct/nameTaken``, and with
  /// ``WormholeError/Code-swift.struct/conflict`` while messages are claimed that such a program
  /// has not settled: only the next one may have them, marked.
  package func proxy(
    of resident: Resident, on machine: String
  ) throws(WormholeError) -> Proxy {
    if case .queue(let name) = resident { return try proxy(ofQueue: name, on: machine) }
    // A sweeper may take a new guest for a dead one, and another tool may remove any directory.
    for _ in 0..<100 {
      let home = try container.storage.member(resident.name, in: resident.folder)
      let known = try elsewhere(of: home)?.machine
      guard known != machine else { return Proxy(self, home, resident, machine) }
      if try makeProxy(home, resident, machine) { return Proxy(self, home, resident, machine) }
    }
    throw WormholeError(
      .exhausted, Self.standing, resident.name,
      because: "other processes removed its directory repeatedly",
      hint: "find the program that removes the directory")
  }

  static let standing = "stand in for"

  func elsewhere(of home: MemberDirectory) throws(WormholeError) -> Elsewhere? {
    try naming(Self.standing, home.name, at: home, home.elsewhere)
  }

  /// Returns false if the directory is no longer in its place.
  private func makeProxy(
    _ home: MemberDirectory, _ resident: Resident, _ machine: String
  ) throws(WormholeError) -> Bool {
    let presence: Presence?
    let (isInUse, isNamed): (Bool, Bool)
    do throws(Errno) {
      presence = try home.takePresence()
      isInUse = if try home.elsewhere == nil { try home.hasClaims } else { false }
      isNamed = try home.isNamed
    } catch {
      if home.isStale { return false }
      throw WormholeError(error, Self.standing, home.name, at: home)
    }
    guard let presence else {
      if case .guest = resident, !Mutants.has(.refuseSweptGuest) {
        // No program here has the digits of a guest of another machine. A sweeper looks whether the
        // new guest is dead, and may remove the directory.
        Thread.pause(.milliseconds(1))
        return false
      }
      throw WormholeError(
        .nameTaken, Self.standing, home.name, because: "a process of this machine has the name",
        hint: "end the process, or move the member's home to this machine")
    }
    defer { presence.release() }
    guard isNamed else { return false }
    guard !isInUse else {
      throw WormholeError(
        .conflict, Self.standing, home.name,
        because: "it has claimed messages that no program has settled",
        hint: "let a program join under the name once more, and handle the messages")
    }
    let now = container.storage.options.environment.sinceEpoch()
    try home.write(Elsewhere(machine: machine, since: Date(sinceEpoch: now)))
    return true
  }

  /// All proxies of the container, of members, guests and queues, whichever process has made them.
  ///
  /// A directory that its owner has closed to this user is none, since a carrier has made it.
  package func proxies() throws(WormholeError) -> [Proxy] {
    var found: [Proxy] = []
    for resident in try residents() {
      do throws(WormholeError) {
        if let proxy = try existingProxy(of: resident) { found.append(proxy) }
      } catch {
        guard error.code == .permissionDenied || error.code == .refused else { throw error }
        container.log(
          .warning, "cannot carry for '\(resident.name)': \(error)",
          about: LogSubject(member: resident.name), because: error)
      }
    }
    return found
  }

  /// The proxy of a resident; nil if the directory is missing, or is no proxy.
  package func existingProxy(of resident: Resident) throws(WormholeError) -> Proxy? {
    let home = try container.storage.existingMember(resident.name, in: resident.folder)
    guard let home else { return nil }
    return try naming(
      "find members of other machines in", home.path, at: home
    ) { () throws(Errno) in
      // Otherwise what this machine's workers have claimed would be taken for messages in transit.
      guard let elsewhere = try home.elsewhere, !elsewhere.isSettling else { return nil }
      return Proxy(self, home, resident, elsewhere.machine)
    }
  }

  /// The members and the queues.
  func members() throws(WormholeError) -> [Resident] {
    try container.storage.names(in: .members).map { .member($0) }
      + container.storage.names(in: .queues).map { .queue($0) }
  }

  private func residents() throws(WormholeError) -> [Resident] {
    let members = try members()
    do throws(Errno) {
      let guests = try container.storage.guestNames().compactMap { Incarnation(rawValue: $0) }
      return members + guests.map { .guest($0) }
    } catch {
      throw WormholeError(
        error, "list the guests of", container.directory, in: container.storage,
        Container.Folder.guests.rawValue)
    }
  }

  // MARK: Messages for members of this machine

  /// Reads the file of a message that another machine has sent.
  package func message(
    _ name: MessageName, _ bytes: [UInt8]
  ) throws(WormholeError) -> CarriedMessage {
    try CarriedMessage(name, bytes, container.options.limits)
  }

  /// Returns the name under which a message of another machine is delivered here: it comes after
  /// all names returned earlier, and keeps everything else that the sender has chosen.
  package func arrivalName(of name: MessageName) throws(WormholeError) -> MessageName {
    let now = try self.now
    return name.stamped(
      latest.withLock { latest in
        let next = max(now, latest.map { $0.advanced(by: 1) } ?? now)
        latest = next
        return next
      })
  }

  /// Delivers a message by one rename; false if the file is gone, because it was delivered before.
  ///
  /// - Parameters:
  ///   - file: the message, complete; see ``CarriedMessage/delivered(from:expires:isRepeated:)``.
  ///   - directory: a directory of the carrier; see ``Container/bridge(_:)``.
  ///   - name: see ``arrivalName(of:)``.
  ///   - receiver: the member, which need never have joined.
  package func deliver(
    _ file: String, in directory: OpenDirectory, as name: MessageName, to receiver: Resident
  ) throws(WormholeError) -> Bool {
    try deliver("deliver message to", peer(receiver), .inbox, "inbox") { home throws(Errno) in
      try home.move(file, of: directory, to: .inbox, as: name.text)
    }
  }

  /// Runs a body that puts a file into a part of a receiver's directory; a directory that another
  /// process removes is made again.
  ///
  /// - Parameter place: the part in the words of the error, if the directory never lasts.
  func deliver<Result>(
    _ operation: String, _ receiver: Peer, _ part: MemberDirectory.Part, _ place: String,
    _ body: (MemberDirectory) throws(Errno) -> Result
  ) throws(WormholeError) -> Result {
    for _ in 0..<100 {
      let home = try container.receivers.home(of: receiver, in: container.storage)
      do throws(Errno) {
        return try body(home)
      } catch {
        guard error == .noSuchFile else { throw WormholeError(error, operation, home, part) }
        container.receivers.forget(home)
      }
    }
    throw WormholeError(
      .conflict, operation, receiver.name,
      because: "another process removes the \(place) of the receiver repeatedly",
      hint: "find the program that removes the \(place)")
  }

  /// Gives a message that is delivered next its file, durably; nil if the file is gone.
  ///
  /// - Parameters:
  ///   - file: the complete file, which also keeps its own name.
  ///   - directory: a directory of the carrier; see ``Container/bridge(_:)``.
  ///   - name: see ``arrivalName(of:)``.
  /// - Returns: a lock without which a sweeper takes the file for one without a message: to be held
  ///   until the message is delivered.
  package func attach(
    _ file: String, in directory: OpenDirectory, to name: MessageName, of receiver: Resident
  ) throws(WormholeError) -> AttachedFile? {
    let home = try container.receivers.home(of: peer(receiver), in: container.storage)
    do throws(Errno) {
      guard
        let opened = try ignoring(
          .noSuchFile, directory.descriptor.open(file, .readOnlyNonBlocking))
      else { return nil }
      // A sweeper has the lock for a moment only.
      var attempts = 0
      while try !opened.tryLock(.exclusive) {
        guard attempts < 100 else { throw .busy }
        attempts += 1
        Thread.pause(.milliseconds(1))
      }
      let attached = AttachedFile(opened)
      try attached.file.setMode(container.storage.options.sharing.fileMode)
      guard try home.link(file, of: directory, to: .files, as: name.fileName) else { return nil }
      try home.makeDurable(.files)
      return attached
    } catch {
      container.receivers.forget(home)
      throw WormholeError(error, "deliver message to", home, .files)
    }
  }

  /// Makes the names of all delivered messages of a receiver durable.
  package func makeDurable(_ receiver: Resident) throws(WormholeError) {
    let home = try container.receivers.home(of: peer(receiver), in: container.storage)
    try naming("deliver message to", home, .inbox) { () throws(Errno) in
      try home.makeDurable(.inbox)
    }
  }

  /// Cancels a delivered message that no receiver has claimed, by its ID and its sender.
  ///
  /// - Returns: false if there is none; its outcome then comes by itself.
  package func cancel(_ sent: MessageName, to receiver: Resident) throws(WormholeError) -> Bool {
    guard
      let home = try container.storage.existingMember(receiver.name, in: receiver.folder)
    else { return false }
    var found: MessageName?
    var sender: MemberDirectory?
    try naming("cancel message", sent.id, at: home) { () throws(Errno) in
      try home.list(.inbox) { file in
        if let name = MessageName(file), name.unique == sent.unique { found = name }
      }
      // A worker of a queue may have claimed the message in vain.
      if found == nil { found = try home.unclaimed { $0.unique == sent.unique }.first?.name }
      sender = try found.flatMap { (name) throws(Errno) in try senders.home(of: name) }
    }
    guard let found else { return false }
    return try MessageCancellation.end(found, at: home, .cancelled, sender, container)
  }
}

/// The lock on a file whose message is on its way into the inbox.
package final class AttachedFile: Sendable {
  fileprivate let file: Descriptor

  fileprivate init(_ file: consuming Descriptor) { self.file = file }

  // A child that is being spawned may have a copy of the descriptor.
  deinit { try? file.unlock() }
}

extension MemberDirectory {
  /// Whether a receiver has claimed messages and not settled them.
  fileprivate var hasClaims: Bool {
    get throws(Errno) { try contains(.claimed) { ClaimedName(String(cString: $0)) != nil } }
  }
}
