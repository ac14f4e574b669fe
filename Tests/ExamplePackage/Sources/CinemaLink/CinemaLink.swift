import WatchConnectivity

/// The link between the two apps, in the usual form: a single object, the delegate of its session.
public final class CinemaLink: NSObject, WCSessionDelegate, @unchecked Sendable {
  // Set once, before the session is activated.
  private var ready: (CinemaLink) -> Void = { _ in }

  /// The one there is.
  public static let shared = CinemaLink()

  /// Activates the session, and calls a closure once it is active.
  public func begin(_ ready: @escaping (CinemaLink) -> Void) {
    self.ready = ready
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  /// Sells tickets on the phone; the watch is notified whenever its app runs.
  public func sell(_ film: String) {
    WCSession.default.transferUserInfo(["sold": film])
  }

  /// The session is active, or cannot be.
  public func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    say(error.map { "not activated: \($0.localizedDescription)" } ?? "activated")
    if error == nil { ready(self) }
  }

  /// The phone has another watch now.
  public func sessionDidDeactivate(_ session: WCSession) { session.activate() }

  /// The phone has sold something.
  public func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    say("sold \(userInfo["sold"] as? String ?? "nothing")")
  }

  /// The watch requests the number of seats left.
  public func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    replyHandler(["seats": 120])
  }

  /// The watch knows of a sale, or never will.
  public func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {
    say("told of \(userInfoTransfer.userInfo["sold"] as? String ?? "nothing")")
  }

  /// For the test, which reads the output of both sides.
  private func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }
}
