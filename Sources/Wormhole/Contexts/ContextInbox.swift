internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The file names of contexts in `members/<name>/context/`.
///
/// A name shows the state of its context:
///
///     <from>,next      sent, and not received; a newer one takes its place
///     <from>,taking    being handled, or handled and not renamed yet
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
  private let state = Monitor(State())

  /// Files are renamed under the lock of this state.
  private struct State {
    /// Whether the member has left: its files then belong to the next incarnation, including a
    /// context that a closure is still handling.
    var isClosed = false
    /// The contexts that listeners are receiving, by sender, until their files have the received
    /// name: a context counts as received from the call of the listener.
    var told: [String: Context] = [:]
    /// The senders whose context a listener has received, until its file has the received name.
    ///
    /// The rename may fail for a moment. The listeners do not receive the context again.
    var heard: Set<String> = []
  }

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
    guard !isClosed else { throw WormholeError.hasLeft(home, "receive contexts of") }
    try naming("watch contexts of", home.name, at: home) { () throws(Errno) in
      try folder.begin { hear throws(Errno) in
        // Listing would make the folder again, although the member's directory may be about to
        // disappear.
        try home.watch(.context) { signal in if signal != .gone { hear(.lookAgain) } }
      }
    }
    listeners.withLock { $0[ObjectIdentifier(listener)] = listener }
    // The member may have left before the watch began, or before the listener was added.
    if isClosed {
      folder.stop()
      remove(listener)
      listener.left()
    }
    worker.trigger()
  }

  private func remove(_ listener: MemberListener<Context>) {
    listeners.withLock { $0[ObjectIdentifier(listener)] = nil }
  }

  private var isClosed: Bool { state.withLock { $0.isClosed } }

  func close() {
    finishHeard()
    state.withLock { $0.isClosed = true }
    folder.stop()
    for listener in listeners.withLock({ Array($0.values) }) { listener.left() }
  }

  /// Returns the context from a sender whose listeners have been called, and whose file has not the
  /// received name yet.
  func beingTold(by from: String) -> Context? { state.withLock { $0.told[from] } }

  /// Waits until delivered contexts have their received name.
  ///
  /// A rename that has failed is tried once more.
  func settle() {
    worker.drain()
    finishHeard()
  }

  private func finishHeard() {
    for from in state.withLock({ $0.heard }) {
      do throws(Errno) { _ = try finish(from) } catch { log(error) }
    }
  }

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
    log(error)
    if !isClosed { folder.retry() }
  }

  private func log(_ error: Errno) { home.log(.error, "cannot receive a context of", error) }

  /// Handles the waiting context of one sender; false if none waits or there is no listener.
  private func take(_ from: String) throws(Errno) -> Bool {
    let all = listeners.withLock { Array($0.values) }
    guard !all.isEmpty else {
      _ = try finish(from)
      return false
    }
    let taking = ContextName.taking(from)
    // Only the newest context counts: it replaces a context whose handling was interrupted.
    let isNew = try begin(from)
    guard isNew != nil, isNew == true || !Mutants.has(.skipInterrupted) else { return false }
    if let isFinished = try finish(from) { return isFinished }
    guard try home.status(of: taking, in: .context) != nil else { return false }
    guard let context = try read(taking, from) else { return try drop(taking, from) }
    state.withLock { $0.told[from] = context.received }
    // If all listeners have stopped in the meantime, none has received the context, which waits
    // for the next listener.
    guard all.map({ tell($0, context) }).contains(true) else {
      state.withLock { $0.told[from] = nil }
      return false
    }
    state.withLock { _ = $0.heard.insert(from) }
    return try finish(from) ?? false
  }

  /// Removes a damaged context; the last received context stays.
  private func drop(_ taking: String, _ from: String) throws(Errno) -> Bool {
    do throws(Errno) {
      return try state.withLock { state throws(Errno) in
        state.isClosed ? false : try home.remove(taking, from: .context)
      }
    } catch {
      // Another tool has made a directory of the name, which may have content.
      guard error == .isADirectory || error == .notPermitted else { throw error }
      return try state.withLock { state throws(Errno) in
        state.isClosed ? false : try moveToReceived(from)
      }
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

  /// Takes the newest context of a sender; false if none is new, and nil once the member has left.
  private func begin(_ from: String) throws(Errno) -> Bool? {
    try state.withLock { (state: inout State) throws(Errno) -> Bool? in
      guard !state.isClosed else { return nil }
      let isNew = try home.move(
        ContextName.next(from), from: .context, .context, as: ContextName.taking(from))
      // The file of the context before is gone.
      if isNew { state.heard.remove(from) }
      return isNew
    }
  }

  /// Gives the context that listeners have received its received name.
  ///
  /// - Returns: nil without such a context; false if its file is gone, or the member has left.
  private func finish(_ from: String) throws(Errno) -> Bool? {
    try state.withLock { (state: inout State) throws(Errno) -> Bool? in
      guard state.heard.contains(from) else { return nil }
      let isMoved = state.isClosed ? false : try moveToReceived(from)
      state.heard.remove(from)
      state.told[from] = nil
      return isMoved
    }
  }

  private func moveToReceived(_ from: String) throws(Errno) -> Bool {
    try home.move(ContextName.taking(from), from: .context, .context, as: from)
  }
}

extension Member {
  var contexts: ContextInbox { services.get { ContextInbox(container, home) } }
}
