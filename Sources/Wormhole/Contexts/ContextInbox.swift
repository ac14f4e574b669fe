internal import Dispatch
internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// The names of contexts in `members/<name>/context/`.
///
/// They tell how far a context has come:
///
///     <from>,next      sent, and not received; a newer one takes its place
///     <from>,taking    being handled
///     <from>           received last
enum ContextName {
  static func next(_ from: String) -> String { "\(from),next" }
  static func taking(_ from: String) -> String { "\(from),taking" }

  /// The sender of any; nil for all other names.
  static func sender(_ file: String) -> String? {
    waiting(file) ?? (EscapedName.unescape(file) == nil ? nil : file)
  }

  /// The sender of one that is not yet received; nil for all other names.
  static func waiting(_ file: String) -> String? {
    for end in [",next", ",taking"] where file.ends(with: end) {
      let from = String(file.dropLast(end.count))
      return EscapedName.unescape(from) == nil ? nil : from
    }
    return nil
  }
}

/// Receives the contexts of one member, and tells all who listen.
final class ContextInbox: Sendable {
  let hole: Wormhole
  private let home: MemberDirectory
  private let queue = DispatchQueue(label: "wormhole.contexts")
  private let listeners = Monitor<[ObjectIdentifier: MemberListener<Wormhole.Context>]>(
    [:])
  private let watch = Monitor<NamedWatch?>(nil)
  private let isClosed = Monitor(false)
  private let later = LaterLook()
  /// What listeners are being told, by sender: it is received from the moment they hear of it.
  private let told = Monitor<[String: Wormhole.Context]>([:])

  init(_ hole: Wormhole, _ home: MemberDirectory) {
    self.hole = hole
    self.home = home
  }

  /// One who is told once it has been added.
  func listener(
    on queue: DispatchQueue?, _ handler: @escaping @Sendable (Wormhole.Context) -> Bool,
    left: @escaping @Sendable () -> Void = {}
  ) -> MemberListener<Wormhole.Context> {
    MemberListener(of: hole.container, on: queue, handler, left: left) { self.remove($0) }
  }

  func add(_ listener: MemberListener<Wormhole.Context>) throws(WormholeError) {
    try hole.container.checkOwner("watch contexts of", home.name)
    guard !isClosed.withLock({ $0 }) else {
      throw WormholeError(
        .notJoined, "receive contexts of", home.name, because: "it has left", hint: "join again")
    }
    try watch.withLock { watch throws(WormholeError) in
      guard watch == nil else { return }
      do throws(Errno) {
        watch = try home.watch(.context) { [weak self] signal in
          // To look would make it again, and it may go with the member's directory.
          guard let self, signal != .gone else { return }
          queue.async { self.look() }
        }
      } catch {
        throw WormholeError(error, "watch contexts of", home.name)
      }
    }
    listeners.withLock { $0[ObjectIdentifier(listener)] = listener }
    // It may have left before it could tell this one.
    if isClosed.withLock({ $0 }) {
      remove(listener)
      listener.left()
    }
    queue.async { self.look() }
  }

  private func remove(_ listener: MemberListener<Wormhole.Context>) {
    listeners.withLock { $0[ObjectIdentifier(listener)] = nil }
  }

  func close() {
    isClosed.withLock { $0 = true }
    watch.withLock { $0.take() }?.stop()
    for listener in listeners.withLock({ Array($0.values) }) { listener.left() }
  }

  /// What listeners are being told by somebody at the moment.
  func beingTold(by from: String) -> Wormhole.Context? { told.withLock { $0[from] } }

  /// Waits until what listeners have been told is where it belongs.
  func settle() { queue.sync {} }

  // MARK: On the queue

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
        // Others' are not kept back by it.
        lookLater(error)
      }
    }
  }

  private func lookLater(_ error: Errno) {
    hole.log(
      .error, "cannot receive a context of '\(home.name)': \(error)",
      about: LogSubject(member: home.name), because: error)
    guard !isClosed.withLock({ $0 }) else { return }
    later.plan(on: queue) { [weak self] in self?.look() }
  }

  /// Handles what waits from one sender; false if nothing does, or nobody listens.
  private func take(_ from: String) throws(Errno) -> Bool {
    let all = listeners.withLock { Array($0.values) }
    guard !all.isEmpty else { return false }
    let taking = ContextName.taking(from)
    // Once it has its name among the received.
    defer { told.withLock { _ = $0.removeValue(forKey: from) } }
    // The newest alone counts: it takes the place of one whose handling was cut off.
    guard try move(ContextName.next(from), to: taking) != nil else { return false }
    guard try home.status(of: taking, in: .context) != nil else { return false }
    if let context = try read(taking, from) {
      told.withLock { $0[from] = context.received }
      // Whoever stopped meanwhile has not heard it: it waits for the next.
      guard all.map({ tell($0, context) }).contains(true) else { return false }
    }
    return try move(taking, to: from) ?? false
  }

  /// Nil for one that is damaged, which nobody is told of.
  private func read(_ file: String, _ from: String) throws(Errno) -> Wormhole.Context? {
    do throws(WormholeError) {
      return try Wormhole.Context(file, from: from, in: home, hole)
    } catch {
      throw error.errno.map { Errno(rawValue: $0) } ?? .inputOutput
    }
  }

  private func tell(
    _ listener: MemberListener<Wormhole.Context>, _ context: Wormhole.Context
  ) -> Bool {
    let call = { @Sendable in
      var isHeard = false
      listener.gate.call { isHeard = listener.handler(context) }
      return isHeard
    }
    return listener.queue?.sync(execute: call) ?? call()
  }

  /// Nil once the member has left: what lies there is then for whoever joins next, and so is what a
  /// closure is still in the middle of.
  private func move(_ old: String, to new: String) throws(Errno) -> Bool? {
    try isClosed.withLock { isClosed throws(Errno) in
      isClosed ? nil : try home.move(old, from: .context, .context, as: new)
    }
  }
}
