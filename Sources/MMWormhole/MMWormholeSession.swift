internal import DropIns
public import Foundation
internal import PropertyLists
internal import SharedContainer
internal import Syscalls
public import WatchConnectivity

/// Listens for what the other side of a watch session passes, by whichever of the three ways.
///
/// It is the delegate of the process's session. Which side a process is, it is told as the article
/// *WatchConnectivity* says.
public final class MMWormholeSession: NSObject, WCSessionDelegate, @unchecked Sendable {
  // What changes is behind the monitor.

  private struct State {
    var listeners: [String: @Sendable (Any?) -> Void] = [:]
    /// The numbers of what was heard of contexts.
    var numbers: [String: Int] = [:]
    var callbacks = CallbackQueue(for: "a listener of MMWormholeSession")
  }

  private static let shared = MMWormholeSession()
  private let state = Monitor(State())

  private override init() {}

  /// The one there is.
  public static func sharedListening() -> MMWormholeSession { shared }

  /// Activates the session of this process, after all listeners were set: what comes before finds
  /// none.
  public func activateListening() {
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  /// Where listeners are called; by default the main queue, which the program has to run.
  public var listenerQueue: DispatchQueue {
    get { state.withLock { $0.callbacks.queue } }
    set {
      state.withLock {
        $0.callbacks = CallbackQueue(newValue, for: "a listener of MMWormholeSession")
      }
    }
  }

  /// Calls a closure with each message that the other side passes under an identifier; a later one
  /// takes the earlier one's place, and is called with what was on its way to that.
  @preconcurrency
  public func listenForMessage(
    withIdentifier identifier: String?, listener: (@Sendable (Any?) -> Void)?
  ) {
    guard let identifier else { return }
    let before = state.withLock { state in
      defer { state.listeners[identifier] = listener }
      return state.listeners[identifier]
    }
    _ = before
  }

  /// Ends the listening for an identifier; what is under way is not heard any more.
  public func stopListeningForMessage(withIdentifier identifier: String?) {
    listenForMessage(withIdentifier: identifier, listener: nil)
  }

  /// The message of an identifier that has come last in a context; nil if there is none.
  public func message(withIdentifier identifier: String?) -> Any? {
    MMWormholeSessionContextTransiting().messageObject(forIdentifier: identifier)
  }

  private func hear(_ content: [String: Any], inContext isContext: Bool = false) {
    for (identifier, packed) in content {
      guard let message = SessionMessage(packed) else { continue }
      let (isHeard, callbacks) = state.withLock { state in
        // A context has them all, also those that were heard.
        let isNews = !isContext || state.numbers[identifier] != message.number
        if isContext { state.numbers[identifier] = message.number }
        return (isNews && state.listeners[identifier] != nil, state.callbacks)
      }
      guard isHeard else { continue }
      do {
        let passed = Passed(try StoredMessage.object(message.value, identifier))
        // Who listens by then: it may have been stopped, or another may have taken its place.
        callbacks.call { [state] in
          state.withLock { $0.listeners[identifier] }?(passed.object)
        }
      } catch {
        DropInLog.tell(.error, error)
      }
    }
  }

  // MARK: What the session tells

  /// Tells the log if the session could not be activated.
  public func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let error { DropInLog.tell(.error, (error as NSError).localizedDescription) }
  }

  /// Goes on with the other watch.
  public func sessionDidDeactivate(_ session: WCSession) { session.activate() }

  /// Calls the listener of a message.
  public func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    hear(message)
  }

  /// Calls the listener of a message that was passed as a file.
  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    hear(userInfo)
  }

  /// Calls the listeners of the messages in a context that are new.
  public func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) { hear(applicationContext, inContext: true) }

  /// Tells the log what was not transferred.
  public func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {
    if let error { DropInLog.tell(.error, (error as NSError).localizedDescription) }
  }
}
