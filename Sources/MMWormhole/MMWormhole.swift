@_exported public import Foundation
internal import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

/// Passes messages between the programs of a group, under identifiers; the last message of each
/// identifier is stored.
///
/// The interface is MMWormhole's. Internally, each identifier is a channel of the group's
/// container: a passed message is visible to all processes at once, is never seen half-written, and
/// reaches each listener in every process once.
///
/// May be used from any thread. As in the original's header the class is not `Sendable`: a subclass
/// of a `Sendable` class would have to repeat the conformance, in both language modes.
open class MMWormhole: NSObject, MMWormholeTransitingDelegate {
  // All mutable state is behind the monitor.

  /// The messenger that writes and reads messages; a program may replace it before the first
  /// listener.
  ///
  /// If it is replaced later, listeners receive the messages of the new messenger, and pending
  /// messages of the previous messenger.
  open var wormholeMessenger: any MMWormholeTransiting {
    get { state.withLock { $0.messenger }.object }
    set {
      let messenger = Messenger(object: newValue)
      let gone = state.withLock { exchange(&$0.messenger, with: messenger) }
      // Released without holding the lock, because its end may use the wormhole.
      _ = gone
      restart()
    }
  }

  /// The queue on which listeners are called; by default the main queue, which the program must
  /// run.
  ///
  /// A pending message still arrives on the previous queue, unless a later message replaces it.
  open var listenerQueue: DispatchQueue {
    get { callbacks.queue }
    set { state.withLock { $0.callbacks = CallbackQueue(newValue, for: Self.waiting) } }
  }

  /// Receives all failures that the calls cannot report; called on the actor to which the closure
  /// is isolated, or on any thread.
  ///
  /// Without a handler, ``DropInLog`` receives the failures. If the peer of a watch session does
  /// not receive a message sent as a file, the session's delegate is notified:
  /// ``MMWormholeSession`` writes to the log. A messenger of the program's own reports its own
  /// failures.
  open var failureHandler: (@isolated(any) (any Error) -> Void)? {
    get { state.withLock { $0.failureHandler }?.body }
    set {
      let handler = newValue.map { Handler($0) }
      let gone = state.withLock { exchange(&$0.failureHandler, with: handler) }
      // Released without holding the lock, because its objects may use the wormhole when they end.
      _ = gone
    }
  }

  private struct State {
    var messenger: Messenger
    var callbacks: CallbackQueue
    var failureHandler: Handler<any Error>?
    /// By the identifier's bytes, because strings that look alike may be different identifiers.
    var listeners: [[UInt8]: MessageListener] = [:]
  }

  private let group: String?
  private let directory: String?
  private let state: Monitor<State>
  private var callbacks: CallbackQueue { state.withLock { $0.callbacks } }
  private static let waiting = "a listener of MMWormhole"

  // MARK: Creation

  /// Creates an object that stores messages in files.
  ///
  /// As ``init(applicationGroupIdentifier:optionalDirectory:transitingType:)``.
  public convenience init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String? = nil
  ) {
    self.init(
      applicationGroupIdentifier: identifier, optionalDirectory: directory, transitingType: .file)
  }

  /// Creates an object for a group.
  ///
  /// If the group's container cannot be opened, ``DropInLog`` contains the reason. Each later call
  /// tries again, and ``failureHandler`` receives its failure.
  ///
  /// - Parameters:
  ///   - identifier: the group; nil only for messages of a watch session.
  ///   - directory: the directory of the messages below the group's directory; nil: the group's
  ///     directory itself.
  ///   - transitingType: the transport of the messages.
  public init(
    applicationGroupIdentifier identifier: String?, optionalDirectory directory: String? = nil,
    transitingType: MMWormholeTransitingType
  ) {
    group = identifier
    self.directory = directory
    state = Monitor(
      State(
        messenger: Messenger(
          object: transitingType.messenger(group: identifier, directory: directory)),
        callbacks: CallbackQueue(for: Self.waiting)))
    super.init()
  }

  deinit {
    for listener in state.withLock({ $0.listeners }).values { listener.stop() }
  }

  // MARK: Messages

  /// Passes a message, in place of the previous message, and notifies all listeners.
  ///
  /// If the message is `nil`, the previous message is removed, and listeners receive `nil`. If the
  /// identifier is `nil`, the call does nothing.
  open func passMessageObject(_ messageObject: (any NSCoding)?, identifier: String?) {
    guard let identifier else { return }
    let messenger = wormholeMessenger
    attempt {
      if let messenger = messenger.builtIn {
        try messenger.pass(messageObject, identifier) {
          let me = WeakWormhole(self)
          return { error in
            guard let self = me.object else { return DropInLog.tell(.error, error) }
            self.fail(error)
          }
        }
      } else if messenger.writeMessageObject(messageObject, forIdentifier: identifier) {
        try notice(identifier).post()
      }
    }
  }

  /// Returns the message of an identifier, which stays stored; nil if the identifier has no
  /// message.
  open func message(withIdentifier identifier: String?) -> Any? {
    guard let identifier else { return nil }
    let messenger = wormholeMessenger
    if let messenger = messenger.builtIn {
      return attempt { try messenger.message(identifier) } ?? nil
    }
    return messenger.messageObject(forIdentifier: identifier)
  }

  /// Removes the message of an identifier; no listener is called, not even for a message that waits
  /// for a listener's queue.
  open func clearMessageContents(forIdentifier identifier: String?) {
    guard let identifier else { return }
    let messenger = wormholeMessenger
    if let messenger = messenger.builtIn {
      attempt { forget(identifier, upTo: try messenger.clear(identifier)) }
    } else {
      messenger.deleteContent(forIdentifier: identifier)
    }
  }

  /// Removes all messages; as ``clearMessageContents(forIdentifier:)``.
  ///
  /// If a message cannot be removed, the others are removed nevertheless.
  open func clearAllMessageContents() {
    let messenger = wormholeMessenger
    if let messenger = messenger.builtIn {
      attempt { try messenger.clearAll { forget($0, upTo: $1) } }
    } else {
      messenger.deleteContentForAllMessages()
    }
  }

  private func forget(_ identifier: String, upTo version: MessageVersion?) {
    guard let version else { return }
    state.withLock { $0.listeners[Array(identifier.utf8)] }?.forget(upTo: version)
  }

  // MARK: Listening

  /// Calls a closure with each message that is passed from now on.
  ///
  /// Does the same as the function of this name that takes a closure with its isolation, which
  /// calls this function. A subclass overrides this one.
  @_disfavoredOverload
  open func listenForMessage(
    withIdentifier identifier: String?, listener: ((Any?) -> Void)?
  ) {
    listen(identifier, listener)
  }

  /// Sets the closure of an identifier; a subclass of the module overrides this function, because
  /// an override in a program may reach it without the public function.
  func listen(_ identifier: String?, _ listener: ((Any?) -> Void)?) {
    guard let identifier else { return }
    guard let listener else { return stopListeningForMessage(withIdentifier: identifier) }
    let hearer = MessageListener.Hearer(listener)
    let (listening, gone) = state.withLock { state in
      let bytes = Array(identifier.utf8)
      if let known = state.listeners[bytes] { return (known, known.replace(hearer)) }
      let new = MessageListener(identifier, hearer)
      state.listeners[bytes] = new
      return (new, nil)
    }
    // Released without holding the lock.
    _ = gone
    if !listening.isWatching { start(listening) }
  }

  /// Ends the listening for an identifier; pending messages are no longer delivered.
  open func stopListeningForMessage(withIdentifier identifier: String?) {
    guard let identifier else { return }
    state.withLock { $0.listeners.removeValue(forKey: Array(identifier.utf8)) }?.stop()
  }

  /// Calls the listener of an identifier, as a transport does for a message that it has received.
  open func notifyListenerForMessage(
    withIdentifier identifier: String?, message: (any NSCoding)?
  ) {
    guard let identifier,
      let listener = state.withLock({ $0.listeners[Array(identifier.utf8)] })
    else { return }
    let passed = UncheckedBox<Any?>(message)
    listener.found(MessageListener.Found(version: nil) { passed }, on: callbacks)
  }

  /// - Parameter creates: whether a missing container is created.
  private func start(_ listener: MessageListener, creates: Bool = true) {
    var messenger: any MMWormholeTransiting
    repeat {
      messenger = wormholeMessenger
      listener.watch(attempt { try watch(for: listener, messenger, creates: creates) })
      // Another thread may have replaced the messenger in the meantime.
    } while messenger !== wormholeMessenger
  }

  private func watch(
    for listener: MessageListener, _ messenger: any MMWormholeTransiting, creates: Bool
  ) throws(WormholeError) -> Subscription {
    let identifier = listener.identifier
    let me = WeakWormhole(self)
    guard let files = messenger.builtIn, files.watchesChannels else {
      let messenger = Messenger(object: messenger)
      return try notice(identifier, creates: creates).watch { [weak listener] in
        guard let self = me.object, let listener else { return }
        let found = MessageListener.Found(version: nil) {
          UncheckedBox<Any?>(messenger.object.messageObject(forIdentifier: identifier))
        }
        listener.found(found, on: self.callbacks)
      } failure: { [weak listener] error in
        me.object?.fail(error)
        me.follow(listener, after: error)
      }
    }
    return try files.watch(identifier, creates: creates) { [weak listener] message, version in
      guard let self = me.object, let listener else { return }
      guard let message else { return listener.forget(upTo: version) }
      listener.found(MessageListener.Found(version: version) { message }, on: self.callbacks)
    } failure: { [weak listener] error in
      me.object?.fail(error)
      me.follow(listener, after: error)
    }
  }

  /// Lets a listener continue in the next container of the group, and makes none; returns false if
  /// none exists, or if it cannot be watched yet.
  func continueListening(_ listener: MessageListener) -> Bool {
    guard SharedOpenings.hasContainer(group) else { return false }
    start(listener, creates: false)
    return listener.isWatching
  }

  /// Restarts all listeners after the messenger was replaced.
  private func restart() {
    for listener in state.withLock({ $0.listeners }).values { start(listener) }
  }

  /// The notice that announces messages of the program's own messenger.
  private func notice(
    _ identifier: String, creates: Bool = true
  ) throws(WormholeError) -> Notice {
    try SharedOpenings.group(group, creates: creates)
      .notice(MessagePlace(directory).name(of: identifier))
  }

  // MARK: Failures

  @discardableResult
  func attempt<Result>(_ body: () throws -> Result) -> Result? {
    do {
      return try body()
    } catch {
      fail(error)
      return nil
    }
  }

  func fail(_ error: any Error) {
    if let handler = state.withLock({ $0.failureHandler }) { return handler.call(error) }
    DropInLog.tell(.error, error)
  }
}

extension MMWormhole {
  /// Calls a closure with each message that is passed from now on, including the process's own
  /// messages; of messages in quick succession, with the last.
  ///
  /// Each identifier has one closure: a later closure replaces the earlier one, and receives its
  /// pending messages. For more closures, create another object.
  ///
  /// - Parameter listener: is called on ``listenerQueue``; a closure that is isolated to an actor
  ///   is called there.
  public func listenForMessage(
    withIdentifier identifier: String?, listener: @escaping @isolated(any) (Any?) -> Void
  ) {
    let handler = Handler(listener)
    // The call of an override to its superclass: the override must not be called again.
    if MessageListener.setter == ObjectIdentifier(self) {
      return listen(identifier) { handler.call($0) }
    }
    // A subclass may override the function that takes no isolation, and pass on a closure of its
    // own, which is called at the same place.
    MessageListener.$isolation.withValue(handler.isolation) {
      MessageListener.$setter.withValue(ObjectIdentifier(self)) {
        listenForMessage(
          withIdentifier: identifier, listener: { handler.call($0) } as ((Any?) -> Void)?)
      }
    }
  }
}

// A wormhole in a closure that any thread calls: the class guards its state.
private struct WeakWormhole: @unchecked Sendable {
  private(set) weak var object: MMWormhole?
  init(_ object: MMWormhole) { self.object = object }

  /// Lets a listener continue in the next container of the group, after a program has removed the
  /// last one.
  func follow(_ listener: MessageListener?, after error: any Error) {
    guard let listener, (error as? WormholeError)?.code == .notAContainer else { return }
    // The pause lets the program end its removal.
    DispatchQueue.global().retry { [self, weak listener] in
      guard let object, let listener, !listener.isStopped else { return true }
      return object.continueListening(listener)
    }
  }
}

// A messenger is called by the threads that use the wormhole, as in the original.
private struct Messenger: @unchecked Sendable {
  let object: any MMWormholeTransiting
}
