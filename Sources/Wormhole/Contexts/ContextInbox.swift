internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The file names of contexts in `members/<name>/context/`.
///
/// A name shows the state of its context:
///
///     <from>,next      sent, and not received; a newer one takes its place
///     <from>,taking    being handled
///     <from>           received last
enum ContextName {
  static let waitingMark = ",next"
  static func next(_ from: String) -> String { from + waitingMark }
  static func taking(_ from: String) -> String { "\(from),taking" }

  /// Returns the sender of any context; nil for all other names.
  static func sender(_ file: String) -> String? {
    waiting(file) ?? (EscapedName.unescape(file) == nil ? nil : file)
  }

  /// Returns the sender of a context that is not received yet; nil for all other names.
  static func waiting(_ file: String) -> String? {
    for end in [waitingMark, ",taking"] where file.ends(with: end) {
      let from = String(file.dropLast(end.count))
      return EscapedName.unescape(from) == nil ? nil : from
    }
    return nil
  }
}

/// Receives the contexts of one member for all listeners.
final class ContextInbox: Service {
  let container: SharedContainer
  private let home: MemberDirectory
  private let worker = Worker(staysOffWatcher: true)
  private let folder: NoticedFolder
  private let listeners = Monitor<[ObjectIdentifier: MemberListener<Context>]>(
    [:])
  private let isClosed = Monitor(false)
  /// The contexts that listeners are receiving now, by sender: a context counts as received from
  /// the call of the listener.
  private let told = Monitor<[String: Context]>([:])

  init(_ container: SharedContainer, _ home: MemberDirectory) {
    self.container = container
    self.home = home
    folder = NoticedFolder(worker)
    worker.begin { [weak self] in self?.look() }
  }

  /// Returns a listener that is notified once it has been added.
  func listener(
    on queue: (any CallQueue)?, _ handler: @escaping @Sendable (Context) -> Bool,
    left: @escaping @Sendable () -> Void = {}
  ) -> MemberListener<Context> {
    MemberListener(of: container.storage, on: queue, handler, left: left) { self.remove($0) }
  }

  func add(_ listener: MemberListener<Context>) throws(WormholeError) {
    try container.storage.checkOwner("watch contexts of", home.name)
    guard !isClosed.withLock({ $0 }) else {
      throw WormholeError(
        .notJoined, "receive contexts of", home.name, because: "the member has left",
        hint: "join again")
    }
    try naming("watch contexts of", home.name, at: home) { () throws(Errno) in
      try folder.begin { hear throws(Errno) in
        // Listing would make the folder again, although the member's directory may be about to
        // disappear.
        try home.watch(.context) { signal in if signal != .gone { hear(.lookAgain) } }
      }
    }
    listeners.withLock { $0[ObjectIdentifier(listener)] = listener }
    // The member may have left before the watch began, or before the listener was added.
    if isClosed.withLock({ $0 }) {
      folder.stop()
      remove(listener)
      listener.left()
    }
    worker.trigger()
  }

  private func remove(_ listener: MemberListener<Context>) {
    listeners.withLock { $0[ObjectIdentifier(listener)] = nil }
  }

  func close() {
    isClosed.withLock { $0 = true }
    folder.stop()
    for listener in listeners.withLock({ Array($0.values) }) { listener.left() }
  }

  /// Returns the context from a sender that listeners are receiving now.
  func beingTold(by from: String) -> Context? { told.withLock { $0[from] } }

  /// Waits until delivered contexts have their received name.
  func settle() { worker.drain() }

  // MARK: In a run of the worker

  private func look() {
    var senders: Set<String> = []
    do throws(Errno) {
      try home.list(.context) { file in
        if let from = ContextName.waiting(String(cString: file)) { senders.insert(from) }
      }
    } catch {
      lookLater(error)
    }
    for from in senders.sorted() {
      do throws(Errno) {
        while try take(from) {}
      } catch {
        // An error with one sender must not delay the contexts of further senders.
        lookLater(error)
      }
    }
  }

  private func lookLater(_ error: Errno) {
    home.log(.error, "cannot receive a context of", error)
    guard !isClosed.withLock({ $0 }) else { return }
    folder.retry()
  }

  /// Handles the waiting context of one sender; false if none waits or there is no listener.
  private func take(_ from: String) throws(Errno) -> Bool {
    let all = listeners.withLock { Array($0.values) }
    guard !all.isEmpty else { return false }
    let taking = ContextName.taking(from)
    // Remove the entry after the file has its received name.
    defer { told.withLock { _ = $0.removeValue(forKey: from) } }
    // Only the newest context counts: it replaces a context whose handling was interrupted.
    let isNew = try move(ContextName.next(from), to: taking)
    guard isNew != nil, isNew == true || !Mutants.has(.skipInterrupted) else { return false }
    guard try home.status(of: taking, in: .context) != nil else { return false }
    guard let context = try read(taking, from) else { return try drop(taking, from) }
    told.withLock { $0[from] = context.received }
    // If all listeners have stopped in the meantime, none has received the context, which waits
    // for the next listener.
    guard all.map({ tell($0, context) }).contains(true) else { return false }
    return try move(taking, to: from) ?? false
  }

  /// Removes a damaged context; the last received context stays.
  private func drop(_ taking: String, _ from: String) throws(Errno) -> Bool {
    do throws(Errno) {
      return try isClosed.withLock { isClosed throws(Errno) in
        isClosed ? false : try home.remove(taking, from: .context)
      }
    } catch {
      // Another tool has made a directory of the name, which may have content.
      guard error == .isADirectory || error == .notPermitted else { throw error }
      return try move(taking, to: from) ?? false
    }
  }

  /// Returns nil for a damaged context, which no listener receives.
  private func read(_ file: String, _ from: String) throws(Errno) -> Context? {
    do throws(WormholeError) {
      return try Context(file, from: from, in: home, container)
    } catch {
      throw error.errno.map { Errno(rawValue: $0) } ?? .inputOutput
    }
  }

  private func tell(
    _ listener: MemberListener<Context>, _ context: Context
  ) -> Bool {
    let call = { @Sendable in
      var isHeard = false
      listener.gate.call { isHeard = listener.handler(context) }
      return isHeard
    }
    return listener.queue?.wait(for: call) ?? call()
  }

  /// Returns nil once the member has left: its files then belong to the next incarnation, including
  /// a context that a closure is still handling.
  private func move(_ old: String, to new: String) throws(Errno) -> Bool? {
    try isClosed.withLock { isClosed throws(Errno) in
      isClosed ? nil : try home.move(old, from: .context, .context, as: new)
    }
  }
}

extension Member {
  var contexts: ContextInbox { services.get { ContextInbox(container, home) } }
}
