public import Foundation

/// The receiver of a session's notifications and content.
///
/// All methods are called on one serial queue that is not the main queue. No method is called from
/// inside a call to the session, and none before the activation's callback has returned. On devices
/// all methods except the activation's callback are optional. Here the methods have defaults; a
/// default for arriving content logs that no method handled the content.
@preconcurrency
public protocol WCSessionDelegate: NSObjectProtocol {
  /// The session was activated, or could not be activated.
  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?)

  /// The phone changes to another watch; content that the previous watch has sent still arrives.
  func sessionDidBecomeInactive(_ session: WCSession)
  /// No more content of the previous watch arrives; activate the session for the new watch.
  func sessionDidDeactivate(_ session: WCSession)
  /// A pairing, an installation or a complication has changed; for the phone.
  func sessionWatchStateDidChange(_ session: WCSession)
  /// The phone's app was installed or uninstalled; for the watch.
  func sessionCompanionAppInstalledDidChange(_ session: WCSession)
  /// The counterpart has become reachable or unreachable.
  func sessionReachabilityDidChange(_ session: WCSession)

  /// A message arrived that expects no reply.
  func session(_ session: WCSession, didReceiveMessage message: [String: Any])
  /// A message arrived that expects a reply; the handler may be called from any thread, once.
  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void)
  /// Data arrived that expects no reply.
  func session(_ session: WCSession, didReceiveMessageData messageData: Data)
  /// Data arrived that expects a reply; the handler may be called from any thread, once.
  func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void)

  /// The counterpart has set a context.
  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any])
  /// The counterpart has transferred a dictionary.
  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any])
  /// The counterpart has transferred a file, which is removed when this method returns, unless the
  /// method has moved it.
  func session(_ session: WCSession, didReceive file: WCSessionFile)
  /// A dictionary has arrived, or will not arrive; also for a dictionary that an earlier run of
  /// this program has sent.
  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?)
  /// A file has arrived, or will not arrive; also for a file that an earlier run of this program
  /// has sent.
  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?)
}

/// Defaults for the methods that a delegate does not implement.
extension WCSessionDelegate {
  /// Does nothing.
  public func sessionDidBecomeInactive(_ session: WCSession) {}
  /// Does nothing; the session remains deactivated until it is activated again.
  public func sessionDidDeactivate(_ session: WCSession) {}
  /// Does nothing.
  public func sessionWatchStateDidChange(_ session: WCSession) {}
  /// Does nothing.
  public func sessionCompanionAppInstalledDidChange(_ session: WCSession) {}
  /// Does nothing.
  public func sessionReachabilityDidChange(_ session: WCSession) {}

  /// Reports to the sender that no method handled the message, with
  /// ``WCError/Code/deliveryFailed``.
  public func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    session.isUnhandled("session(_:didReceiveMessage:)")
  }

  /// Reports to the sender that no method handled the message, with
  /// ``WCError/Code/deliveryFailed``.
  public func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    session.isUnhandled("session(_:didReceiveMessage:replyHandler:)")
  }

  /// Reports to the sender that no method handled the message, with
  /// ``WCError/Code/deliveryFailed``.
  public func session(_ session: WCSession, didReceiveMessageData messageData: Data) {
    session.isUnhandled("session(_:didReceiveMessageData:)")
  }

  /// Reports to the sender that no method handled the message, with
  /// ``WCError/Code/deliveryFailed``.
  public func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void
  ) {
    session.isUnhandled("session(_:didReceiveMessageData:replyHandler:)")
  }

  /// Drops the context, and writes to the log.
  public func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    session.isUnhandled("session(_:didReceiveApplicationContext:)")
  }

  /// Drops the dictionary, and writes to the log.
  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    session.isUnhandled("session(_:didReceiveUserInfo:)")
  }

  /// Drops the file, and writes to the log.
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
