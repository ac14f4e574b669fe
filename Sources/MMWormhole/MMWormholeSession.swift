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
open class MMWormholeSession: MMWormhole, WCSessionDelegate {
  // The mutable state is behind the monitor.

  /// A closure, and the messages that wait for it.
  private struct ListenerEntry {
    let hearer: MessageListener.Hearer
    /// By the number of the call that delivers the message: each call has a number of its own.
    var waiting: [Int: PendingMessage] = [:]
  }

  private struct PendingMessage {
    let message: UncheckedBox<Any?>
    let callbacks: CallbackQueue
  }

  private struct State {
    var listeners: [String: ListenerEntry] = [:]
    var lastCall = 0
    /// The numbers of the context messages already delivered.
    var numbers: [String: Int] = [:]
    var callbacks = CallbackQueue(for: "a listener of MMWormholeSession")
  }

  // The object guards its state, so any thread may use it.
  nonisolated(unsafe) private static let shared = MMWormholeSession(
    applicationGroupIdentifier: nil, transitingType: .sessionContext)
  private let state = Monitor(State())

  /// Returns the only session object.
  open class func sharedListening() -> MMWormholeSession { shared }

  /// Activates the session of this process.
  ///
  /// The program sets all listeners first: a message that arrives earlier finds no listener.
  open func activateListening() {
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  /// Activates the session of this process, by the name of the method in the original's header.
  open func activateSessionListening() { activateListening() }

  /// The queue on which listeners are called; by default the main queue, which the program must
  /// run.
  open override var listenerQueue: DispatchQueue {
    get { state.withLock { $0.callbacks.queue } }
    set {
      state.withLock {
        $0.callbacks = CallbackQueue(newValue, for: "a listener of MMWormholeSession")
      }
    }
  }

  /// Calls a closure with each message that the peer passes under an identifier; a later closure
  /// replaces the earlier one, and receives its pending messages.
  ///
  /// A subclass overrides this function; a closure that is isolated to an actor is called there.
  @_disfavoredOverload
  open override func listenForMessage(
    withIdentifier identifier: String?, listener: ((Any?) -> Void)?
  ) {
    listen(identifier, listener)
  }

  override func listen(_ identifier: String?, _ listener: ((Any?) -> Void)?) {
    guard let identifier else { return }
    let hearer = listener.map { MessageListener.Hearer($0) }
    let (before, calls) = state.withLock { state -> (ListenerEntry?, [(Int, CallbackQueue)]) in
      let before = state.listeners.removeValue(forKey: identifier)
      guard let hearer else { return (before, []) }
      var entry = ListenerEntry(hearer: hearer)
      var calls: [(Int, CallbackQueue)] = []
      if let before, before.hearer.isOnQueue, hearer.isOnQueue {
        // The scheduled calls may deliver to either closure.
        entry.waiting = before.waiting
      } else if let before {
        // The earlier calls, at the place of the earlier closure, find no message any more.
        for (_, waiting) in before.waiting.sorted(by: { $0.key < $1.key }) {
          state.lastCall += 1
          entry.waiting[state.lastCall] = waiting
          calls.append((state.lastCall, waiting.callbacks))
        }
      }
      state.listeners[identifier] = entry
      return (before, calls)
    }
    // Released without holding the lock.
    _ = before
    guard let hearer else { return }
    for (call, callbacks) in calls { schedule(call, identifier, for: hearer, on: callbacks) }
  }

  /// Ends the listening for an identifier; pending messages are no longer delivered.
  open override func stopListeningForMessage(withIdentifier identifier: String?) {
    listen(identifier, nil)
  }

  /// Returns the message of an identifier that arrived last in a context; nil if no message
  /// arrived.
  open override func message(withIdentifier identifier: String?) -> Any? {
    guard let identifier else { return nil }
    let messenger = MMWormholeSessionContextTransiting()
    let message: Any?? = attempt { try messenger.message(identifier) }
    guard let message else { return nil }
    return StoredMessage.archivable(message)
  }

  /// Calls the listener of an identifier.
  open override func notifyListenerForMessage(
    withIdentifier identifier: String?, message: (any NSCoding)?
  ) {
    guard let identifier else { return }
    tell(identifier, UncheckedBox<Any?>(message))
  }

  private func tell(_ identifier: String, _ passed: UncheckedBox<Any?>) {
    let scheduled = state.withLock { state -> (Int, MessageListener.Hearer, CallbackQueue)? in
      guard let hearer = state.listeners[identifier]?.hearer else { return nil }
      state.lastCall += 1
      let waiting = PendingMessage(message: passed, callbacks: state.callbacks)
      state.listeners[identifier]?.waiting[state.lastCall] = waiting
      return (state.lastCall, hearer, state.callbacks)
    }
    guard let (call, hearer, callbacks) = scheduled else { return }
    schedule(call, identifier, for: hearer, on: callbacks)
  }

  /// Schedules the delivery of a message that waits for a closure.
  ///
  /// Once the closure was stopped, or replaced by one with another place, the call finds no message
  /// under its number. The call holds no closure: a stopped closure is released at once.
  private func schedule(
    _ call: Int, _ identifier: String, for hearer: MessageListener.Hearer,
    on callbacks: CallbackQueue
  ) {
    hearer.run(on: callbacks) { [state] in
      let (hearer, waiting) = state.withLock { state in
        (
          state.listeners[identifier]?.hearer,
          state.listeners[identifier]?.waiting.removeValue(forKey: call)
        )
      }
      if let hearer, let waiting { hearer.hear(waiting.message.value) }
    }
  }

  private func hear(_ content: [String: Any], inContext isContext: Bool = false) {
    for (identifier, packed) in content {
      guard let message = SessionMessage(packed) else { continue }
      let isHeard = state.withLock { state in
        // A context contains all messages, including messages already delivered.
        let isNews = !isContext || state.numbers[identifier] != message.number
        if isContext { state.numbers[identifier] = message.number }
        return isNews && state.listeners[identifier] != nil
      }
      guard isHeard else { continue }
      do {
        tell(identifier, UncheckedBox<Any?>(try StoredMessage.object(message.value, identifier)))
      } catch {
        fail(error)
      }
    }
  }

  // MARK: Callbacks of the session

  /// Writes to the log if the session could not be activated.
  open func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let error { DropInLog.tell(.error, (error as NSError).localizedDescription) }
  }

  /// Continues with the new watch.
  open func sessionDidDeactivate(_ session: WCSession) { session.activate() }

  /// Calls the listener of a message.
  open func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    hear(message)
  }

  /// Calls the listener of a message that was passed as a file.
  open func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    hear(userInfo)
  }

  /// Calls the listeners of the new messages in a context.
  open func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) { hear(applicationContext, inContext: true) }

  /// Writes to the log if a transfer failed.
  open func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {
    if let error { DropInLog.tell(.error, (error as NSError).localizedDescription) }
  }
}
