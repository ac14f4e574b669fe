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
  open var wormholeMessenger: any MMWormholeTransiting {
    get { state.withLock { $0.messenger } }
    set {
      state.withLock { $0.messenger = newValue }
      restart()
    }
  }

  /// Where listeners are called; by default the main queue, which the program has to run.
  ///
  /// What is under way already comes on the queue before.
  open var listenerQueue: DispatchQueue {
    get { callbacks.queue }
    set { state.withLock { $0.callbacks = CallbackQueue(newValue, for: Self.waiting) } }
  }

  /// Is told of all that fails, which the calls have no way to report; on any thread.
  ///
  /// Without it ``DropInLog`` is told.
  open var failureHandler: (@Sendable (any Error) -> Void)? {
    get { state.withLock { $0.failureHandler } }
    set { state.withLock { $0.failureHandler = newValue } }
  }

  private struct State {
    var messenger: any MMWormholeTransiting
    var callbacks: CallbackQueue
    var failureHandler: (@Sendable (any Error) -> Void)?
    var listeners: [String: Listener] = [:]
  }

  private let group: String
  private let directory: String
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
    self.directory = directory ?? ""
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
      if let files = messenger as? MMWormholeFileTransiting {
        try files.pass(messageObject, identifier)
      } else if let session = messenger as? MMWormholeSessionTransiting {
        // The other side is told by the session.
        try session.pass(messageObject, identifier)
      } else if messenger.writeMessageObject(messageObject, forIdentifier: identifier) {
        try notice(identifier).post()
      } else {
        throw WormholeError(
          .system, "pass message", identifier, because: "the messenger could not write it")
      }
    }
  }

  /// The message of an identifier, which stays; nil if there is none.
  open func message(withIdentifier identifier: String?) -> Any? {
    guard let identifier else { return nil }
    let messenger = wormholeMessenger
    if let files = messenger as? MMWormholeFileTransiting {
      return attempt { try files.message(identifier) } ?? nil
    }
    return messenger.messageObject(forIdentifier: identifier)
  }

  /// Takes the message of an identifier away; listeners are not called.
  open func clearMessageContents(forIdentifier identifier: String?) {
    guard let identifier else { return }
    let messenger = wormholeMessenger
    if let files = messenger as? MMWormholeFileTransiting {
      attempt { try files.clear(identifier) }
    } else {
      messenger.deleteContent(forIdentifier: identifier)
    }
  }

  /// Takes all messages away; listeners are not called.
  open func clearAllMessageContents() {
    let messenger = wormholeMessenger
    if let files = messenger as? MMWormholeFileTransiting {
      attempt { try files.clearAll() }
    } else {
      messenger.deleteContentForAllMessages()
    }
  }

  // MARK: Listening

  /// Calls a closure with each message that is passed from now on, one's own as well; of messages
  /// in quick succession with the last.
  ///
  /// One closure for each identifier: a later one takes the earlier one's place. For more, make
  /// another object.
  @preconcurrency
  open func listenForMessage(
    withIdentifier identifier: String?, listener: (@Sendable (Any?) -> Void)?
  ) {
    guard let identifier else { return }
    guard let listener else { return stopListeningForMessage(withIdentifier: identifier) }
    begin(Listener(listener), identifier)
  }

  /// Ends the listening for an identifier; what is under way is not heard any more.
  open func stopListeningForMessage(withIdentifier identifier: String?) {
    guard let identifier else { return }
    state.withLock { $0.listeners.removeValue(forKey: identifier) }?.stop()
  }

  private func begin(_ listener: Listener, _ identifier: String) {
    let before = state.withLock { state in
      let before = state.listeners[identifier]
      state.listeners[identifier] = listener
      return before
    }
    before?.stop()
    let messenger = wormholeMessenger
    attempt {
      if let files = messenger as? MMWormholeFileTransiting {
        listener.watch(
          try files.watch(identifier) { [weak self, weak listener] message in
            guard let self, let listener else { return }
            self.callbacks.call { listener.hear(message) }
          } failure: { [weak self] error in
            self?.fail(error)
          })
      } else {
        let notice = try notice(identifier)
        listener.watch(
          try notice.watch { [weak self, weak listener] in
            guard let self, let listener else { return }
            self.callbacks.call {
              listener.hear(Passed(messenger.messageObject(forIdentifier: identifier)))
            }
          })
      }
    }
  }

  /// After another messenger was set.
  private func restart() {
    for (identifier, listener) in state.withLock({ $0.listeners }) {
      begin(Listener(listener.heard), identifier)
    }
  }

  /// What tells of messages of a messenger that is the program's own.
  private func notice(_ identifier: String) throws(WormholeError) -> Wormhole.Notice {
    try SharedOpenings.group(group).notice("MMWormhole/\(directory)/\(identifier)")
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

/// A closure that listens, and the watch that tells it.
private final class Listener: Sendable {
  let heard: @Sendable (Any?) -> Void
  private let gate = Gate()
  private let watching = Monitor<Wormhole.Subscription?>(nil)

  init(_ heard: @escaping @Sendable (Any?) -> Void) { self.heard = heard }

  func watch(_ watching: Wormhole.Subscription) {
    self.watching.withLock { $0 = watching }
    if !gate.isOpen { watching.stop() }
  }

  func hear(_ message: Passed) {
    if gate.isOpen { heard(message.object) }
  }

  func stop() {
    gate.close()
    watching.withLock { $0.take() }?.stop()
  }
}

// A message is read for one listener and handed to it alone.
struct Passed: @unchecked Sendable {
  let object: Any?
  init(_ object: Any?) { self.object = object }
}
