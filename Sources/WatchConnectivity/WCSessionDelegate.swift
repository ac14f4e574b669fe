public import Foundation

/// Is told what comes to a session.
///
/// All methods are called on one serial queue that is not the main one, never from inside a call of
/// the session's own, and none before the one of the activation has returned. On devices all but
/// that one are optional; here they have defaults, which tell the log that something came and found
/// nobody.
@preconcurrency
public protocol WCSessionDelegate: NSObjectProtocol {
  /// The session was activated, or could not be.
  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?)

  /// The phone changes to another watch: what the one before has sent still comes.
  func sessionDidBecomeInactive(_ session: WCSession)
  /// Nothing comes from the watch before any more; activate the session for the new one.
  func sessionDidDeactivate(_ session: WCSession)
  /// What is paired, installed or enabled has changed; for the phone.
  func sessionWatchStateDidChange(_ session: WCSession)
  /// Whether the phone's app is installed has changed; for the watch.
  func sessionCompanionAppInstalledDidChange(_ session: WCSession)
  /// Whether the counterpart can be reached has changed.
  func sessionReachabilityDidChange(_ session: WCSession)

  /// A message came that wants no reply.
  func session(_ session: WCSession, didReceiveMessage message: [String: Any])
  /// A message came that wants a reply, from any thread, once.
  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void)
  /// Data came that want no reply.
  func session(_ session: WCSession, didReceiveMessageData messageData: Data)
  /// Data came that want a reply, from any thread, once.
  func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void)

  /// The counterpart has told a state.
  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any])
  /// The counterpart has transferred a dictionary.
  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any])
  /// The counterpart has transferred a file, which is gone when this returns, unless it was moved.
  func session(_ session: WCSession, didReceive file: WCSessionFile)
  /// A dictionary has arrived, or will not; also one that an earlier life of this program sent.
  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?)
  /// A file has arrived, or will not; also one that an earlier life of this program sent.
  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?)
}

/// What is done for a delegate that does not care.
extension WCSessionDelegate {
  /// Does nothing.
  public func sessionDidBecomeInactive(_ session: WCSession) {}
  /// Does nothing; the session stays as it is until it is activated again.
  public func sessionDidDeactivate(_ session: WCSession) {}
  /// Does nothing.
  public func sessionWatchStateDidChange(_ session: WCSession) {}
  /// Does nothing.
  public func sessionCompanionAppInstalledDidChange(_ session: WCSession) {}
  /// Does nothing.
  public func sessionReachabilityDidChange(_ session: WCSession) {}

  /// Has the sender told that nobody handled it, with ``WCError/Code/deliveryFailed``.
  public func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    session.isUnhandled("session(_:didReceiveMessage:)")
  }

  /// Has the sender told that nobody handled it, with ``WCError/Code/deliveryFailed``.
  public func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    session.isUnhandled("session(_:didReceiveMessage:replyHandler:)")
  }

  /// Has the sender told that nobody handled it, with ``WCError/Code/deliveryFailed``.
  public func session(_ session: WCSession, didReceiveMessageData messageData: Data) {
    session.isUnhandled("session(_:didReceiveMessageData:)")
  }

  /// Has the sender told that nobody handled it, with ``WCError/Code/deliveryFailed``.
  public func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void
  ) {
    session.isUnhandled("session(_:didReceiveMessageData:replyHandler:)")
  }

  /// Drops it, and tells the log.
  public func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    session.isUnhandled("session(_:didReceiveApplicationContext:)")
  }

  /// Drops it, and tells the log.
  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    session.isUnhandled("session(_:didReceiveUserInfo:)")
  }

  /// Drops it, and tells the log.
  public func session(_ session: WCSession, didReceive file: WCSessionFile) {
    session.isUnhandled("session(_:didReceive:)")
  }

  /// Does nothing.
  public func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {}

  /// Does nothing.
  public func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) {}
}
