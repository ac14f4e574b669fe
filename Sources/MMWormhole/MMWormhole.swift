internal import DropIns
@_exported public import Foundation
internal import Syscalls
internal import Wormhole

/// Passes messages between the programs of a group, under identifiers; of each the last is kept.
///
/// The interface is MMWormhole's. Underneath each identifier is a channel of the group's container:
/// a message that was passed is there for everybody at once, is never seen half, and is heard by
/// all who listen, in whatever process, once.
///
/// May be used from any thread.
open class MMWormhole: NSObject, @unchecked Sendable {
  // All that changes is behind the monitor.

  /// How messages are written and read; another one may be set before the first listener is.
  ///
  /// Set later, it has listeners hear what it brings, and what is under way from the one before.
  open var wormholeMessenger: any MMWormholeTransiting {
    get { state.withLock { $0.messenger } }
    set {
      state.withLock { $0.messenger = newValue }
      restart()
    }
  }

  /// Where listeners are called; by default the main queue, which the program has to run.
  ///
  /// What is under way already comes on the queue before, unless a later message takes its place.
  open var listenerQueue: DispatchQueue {
    get { callbacks.queue }
    set { state.withLock { $0.callbacks = CallbackQueue(newValue, for: Self.waiting) } }
  }

  /// Is told of all that fails, which the calls have no way to report; on any thread.
  ///
  /// Without it ``DropInLog`` is told. What the other side of a watch session does not receive as a
  /// file, the session's delegate is told: ``MMWormholeSession`` tells the log. A messenger of the
  /// program's own answers for itself.
  open var failureHandler: (@Sendable (any Error) -> Void)? {
    get { state.withLock { $0.failureHandler } }
    set { state.withLock { $0.failureHandler = newValue } }
  }

  private struct State {
    var messenger: any MMWormholeTransiting
    var callbacks: CallbackQueue
    var failureHandler: (@Sendable (any Error) -> Void)?
    /// By the identifier's bytes, as strings that look alike may be different identifiers.
    var listeners: [[UInt8]: MessageListener] = [:]
  }

  private let group: String
  private let directory: String?
  private let state: Monitor<State>
  private var callbacks: CallbackQueue { state.withLock { $0.callbacks } }
  private static let waiting = "a listener of MMWormhole"

  // MARK: Making one

  /// Makes one that keeps messages in files.
  ///
  /// As ``init(applicationGroupIdentifier:optionalDirectory:transitingType:)``.
  public convenience init?(
    applicationGroupIdentifier identifier: String, optionalDirectory directory: String? = nil
  ) {
    self.init(
      applicationGroupIdentifier: identifier, optionalDirectory: directory, transitingType: .file)
  }

  /// Makes one for a group.
  ///
  /// It is nil if the group's container cannot be had; ``DropInLog`` says why.
  ///
  /// - Parameters:
  ///   - identifier: the group.
  ///   - directory: where messages lie below the group's directory; nil: there itself.
  ///   - transitingType: how they get to the others.
  public init?(
    applicationGroupIdentifier identifier: String, optionalDirectory directory: String? = nil,
    transitingType: MMWormholeTransitingType
  ) {
    guard
      let messenger = transitingType.messenger(group: identifier, directory: directory)
    else { return nil }
    group = identifier
    self.directory = directory
    state = Monitor(
      State(messenger: messenger, callbacks: CallbackQueue(for: Self.waiting)))
    super.init()
  }

  deinit {
    for listener in state.withLock({ $0.listeners }).values { listener.stop() }
  }

  // MARK: Messages

  /// Passes a message, in the place of the one before, and tells all who listen.
  ///
  /// `nil` for a message takes the one before away, and is heard as `nil`. `nil` for an identifier
  /// does nothing.
  open func passMessageObject(_ messageObject: (any NSCoding)?, identifier: String?) {
    guard let identifier else { return }
    let messenger = wormholeMessenger
    attempt {
      if let messenger = messenger as? any ThrowingMessenger {
        try messenger.pass(messageObject, identifier) { [weak self] error in
          guard let self else { return DropInLog.tell(.error, error) }
          fail(error)
        }
      } else if messenger.writeMessageObject(messageObject, forIdentifier: identifier) {
        try notice(identifier).post()
      }
    }
  }

  /// The message of an identifier, which stays; nil if there is none.
  open func message(withIdentifier identifier: String?) -> Any? {
    guard let identifier else { return nil }
    let messenger = wormholeMessenger
    if let messenger = messenger as? any ThrowingMessenger {
      return attempt { try messenger.message(identifier) } ?? nil
    }
    return messenger.messageObject(forIdentifier: identifier)
  }

  /// Takes the message of an identifier away; listeners are not called, also not by a message that
  /// waits for their queue.
  open func clearMessageContents(forIdentifier identifier: String?) {
    guard let identifier else { return }
    let messenger = wormholeMessenger
    if let messenger = messenger as? any ThrowingMessenger {
      attempt { forget(identifier, upTo: try messenger.clear(identifier)) }
    } else {
      messenger.deleteContent(forIdentifier: identifier)
    }
  }

  /// Takes all messages away; as ``clearMessageContents(forIdentifier:)``.
  ///
  /// One that cannot be taken away keeps no other.
  open func clearAllMessageContents() {
    let messenger = wormholeMessenger
    if let messenger = messenger as? any ThrowingMessenger {
      attempt { try messenger.clearAll { forget($0, upTo: $1) } }
    } else {
      messenger.deleteContentForAllMessages()
    }
  }

  private func forget(_ identifier: String, upTo version: Int) {
    state.withLock { $0.listeners[Array(identifier.utf8)] }?.forget(upTo: version)
  }

  // MARK: Listening

  /// Calls a closure with each message that is passed from now on, one's own as well; of messages
  /// in quick succession with the last.
  ///
  /// One closure for each identifier: a later one takes the earlier one's place, and is called with
  /// what was on its way to that. For more, make another object.
  @preconcurrency
  open func listenForMessage(
    withIdentifier identifier: String?, listener: (@Sendable (Any?) -> Void)?
  ) {
    guard let identifier else { return }
    guard let listener else { return stopListeningForMessage(withIdentifier: identifier) }
    let hearer = MessageListener.Hearer(hear: listener)
    let (listening, gone) = state.withLock { state in
      let bytes = Array(identifier.utf8)
      if let known = state.listeners[bytes] { return (known, known.replace(hearer)) }
      let new = MessageListener(identifier, hearer)
      state.listeners[bytes] = new
      return (new, nil)
    }
    // Let go of where no lock is held.
    _ = gone
    if !listening.isWatching { start(listening) }
  }

  /// Ends the listening for an identifier; what is under way is not heard any more.
  open func stopListeningForMessage(withIdentifier identifier: String?) {
    guard let identifier else { return }
    state.withLock { $0.listeners.removeValue(forKey: Array(identifier.utf8)) }?.stop()
  }

  private func start(_ listener: MessageListener) {
    var messenger: any MMWormholeTransiting
    repeat {
      messenger = wormholeMessenger
      listener.watch(attempt { try watch(for: listener, messenger) })
      // Another thread may have set another one meanwhile.
    } while messenger !== wormholeMessenger
  }

  private func watch(
    for listener: MessageListener, _ messenger: any MMWormholeTransiting
  ) throws(WormholeError) -> Wormhole.Subscription {
    let identifier = listener.identifier
    guard let files = messenger as? MMWormholeFileTransiting else {
      return try notice(identifier).watch { [weak self, weak listener] in
        guard let self, let listener else { return }
        let found = MessageListener.Found(version: nil) {
          Passed(messenger.messageObject(forIdentifier: identifier))
        }
        listener.found(found, on: callbacks)
      } failure: { [weak self] error in
        self?.fail(error)
      }
    }
    return try files.watch(identifier) { [weak self, weak listener] message, version in
      guard let self, let listener else { return }
      guard let message else { return listener.forget(upTo: version) }
      listener.found(MessageListener.Found(version: version) { message }, on: callbacks)
    } failure: { [weak self] error in
      self?.fail(error)
    }
  }

  /// After another messenger was set.
  private func restart() {
    for listener in state.withLock({ $0.listeners }).values {
      listener.forgetVersions()
      start(listener)
    }
  }

  /// What tells of messages of a messenger that is the program's own.
  private func notice(_ identifier: String) throws(WormholeError) -> Wormhole.Notice {
    try SharedOpenings.group(group).notice(MessagePlace(directory).name(of: identifier))
  }

  // MARK: Failures

  @discardableResult
  private func attempt<Result>(_ body: () throws -> Result) -> Result? {
    do {
      return try body()
    } catch {
      fail(error)
      return nil
    }
  }

  private func fail(_ error: any Error) {
    if let handler = failureHandler { return handler(error) }
    DropInLog.tell(.error, error)
  }
}
