public import Foundation
public import WatchConnectivity
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Listens for messages that the peer of a watch session passes, by any of the three transports.
///
/// ``sharedListening()`` is the delegate of the process's session, and the only object that
/// receives; other objects pass messages. The article *WatchConnectivity* explains
/// how a process learns its side.
public final class MMWormholeSession: MMWormhole, WCSessionDelegate, @unchecked Sendable {
  // The mutable state is behind the monitor.

  private struct State {
    var listeners: [String: @Sendable (Any?) -> Void] = [:]
    /// The numbers of the context messages already delivered.
    var numbers: [String: Int] = [:]
    var callbacks = CallbackQueue(for: "a listener of MMWormholeSession")
  }

  private static let shared = MMWormholeSession(
    applicationGroupIdentifier: nil, transitingType: .sessionContext)
  private let state = Monitor(State())

  /// Returns the only session object.
  public static func sharedListening() -> MMWormholeSession { shared }

  /// Activates the session of this process.
  ///
  /// The program sets all listeners first: a message that arrives earlier finds no listener.
  public func activateListening() {
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  /// Activates the session of this process, by the name of the method in the original's header.
  public func activateSessionListening() { activateListening() }

  /// The queue on which listeners are called; by default the main queue, which the program must
  /// run.
  public override var listenerQueue: DispatchQueue {
    get { state.withLock { $0.callbacks.queue } }
    set {
      state.withLock {
        $0.callbacks = CallbackQueue(newValue, for: "a listener of MMWormholeSession")
      }
    }
  }

  /// Calls a closure with each message that the peer passes under an identifier; a later closure
  /// replaces the earlier one, and receives its pending messages.
  @preconcurrency
  public override func listenForMessage(
    withIdentifier identifier: String?, listener: (@Sendable (Any?) -> Void)?
  ) {
    guard let identifier else { return }
    let before = state.withLock { state in
      defer { state.listeners[identifier] = listener }
      return state.listeners[identifier]
    }
    _ = before
  }

  /// Ends the listening for an identifier; pending messages are no longer delivered.
  public override func stopListeningForMessage(withIdentifier identifier: String?) {
    listenForMessage(withIdentifier: identifier, listener: nil)
  }

  /// Returns the message of an identifier that arrived last in a context; nil if no message
  /// arrived.
  public override func message(withIdentifier identifier: String?) -> Any? {
    MMWormholeSessionContextTransiting().messageObject(forIdentifier: identifier)
  }

  /// Calls the listener of an identifier.
  public override func notifyListenerForMessage(
    withIdentifier identifier: String?, message: (any NSCoding)?
  ) {
    guard let identifier else { return }
    let passed = Passed(message)
    state.withLock { $0.callbacks }.call { [state] in
      state.withLock { $0.listeners[identifier] }?(passed.object)
    }
  }

  private func hear(_ content: [String: Any], inContext isContext: Bool = false) {
    for (identifier, packed) in content {
      guard let message = SessionMessage(packed) else { continue }
      let (isHeard, callbacks) = state.withLock { state in
        // A context contains all messages, including messages already delivered.
        let isNews = !isContext || state.numbers[identifier] != message.number
        if isContext { state.numbers[identifier] = message.number }
        return (isNews && state.listeners[identifier] != nil, state.callbacks)
      }
      guard isHeard else { continue }
      do {
        let passed = Passed(try StoredMessage.object(message.value, identifier))
        // The current listener is called: the earlier one may have been stopped or replaced.
        callbacks.call { [state] in
          state.withLock { $0.listeners[identifier] }?(passed.object)
        }
      } catch {
        DropInLog.tell(.error, error)
      }
    }
  }

  // MARK: Callbacks of the session

  /// Writes to the log if the session could not be activated.
  public func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let error { DropInLog.tell(.error, (error as NSError).localizedDescription) }
  }

  /// Continues with the new watch.
  public func sessionDidDeactivate(_ session: WCSession) { session.activate() }

  /// Calls the listener of a message.
  public func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    hear(message)
  }

  /// Calls the listener of a message that was passed as a file.
  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    hear(userInfo)
  }

  /// Calls the listeners of the new messages in a context.
  public func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) { hear(applicationContext, inContext: true) }

  /// Writes to the log if a transfer failed.
  public func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {
    if let error { DropInLog.tell(.error, (error as NSError).localizedDescription) }
  }
}
