import Foundation
import TestSupport
import WatchConnectivity
import WormholeDropIns
import WormholeSyscalls

/// The callbacks that a delegate received, in one line each.
///
/// A class as apps write it; beyond recording, it does only the work that a test sets.
class Recorder: NSObject, WCSessionDelegate, @unchecked Sendable {
  // Tests set properties before the session is activated; the rest is behind a monitor.

  let heard = Heard<String>()
  let transfers = Heard<ObjectIdentifier>()
  /// How many callbacks are in progress, and the maximum so far.
  private let inside = Monitor((now: 0, most: 0))
  var most: Int { inside.withLock { $0.most } }
  var onMessage: (@Sendable ([String: Any], (@Sendable ([String: Any]) -> Void)?) -> Void)?
  var onUserInfo: (@Sendable ([String: Any]) -> Void)?
  var onFile: (@Sendable (WCSessionFile) -> Void)?
  var onContext: (@Sendable (WCSession, [String: Any]) -> Void)?
  var onActivation: (@Sendable () -> Void)?
  var onFinish: (@Sendable (NSObject, (any Error)?) -> Void)?

  func note(_ text: String, _ body: () -> Void = {}) {
    inside.withLock { inside in
      inside.now += 1
      inside.most = max(inside.most, inside.now)
    }
    body()
    heard.add((Foundation.Thread.isMainThread ? "main " : "") + text)
    inside.withLock { $0.now -= 1 }
  }

  func text(_ values: [String: Any]) -> String {
    values.keys.sorted().map { "\($0)=\(values[$0]!)" }.joined(separator: ",")
  }

  func text(_ error: (any Error)?) -> String {
    error.map { "\(($0 as? WCError)?.code.rawValue ?? ($0 as NSError).code)" } ?? "ok"
  }

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    note("activated \(activationState.rawValue) \(text(error))") { onActivation?() }
  }

  func sessionDidBecomeInactive(_ session: WCSession) { note("inactive") }
  func sessionDidDeactivate(_ session: WCSession) { note("deactivated") }
  func sessionWatchStateDidChange(_ session: WCSession) { note("watch state") }
  func sessionCompanionAppInstalledDidChange(_ session: WCSession) { note("companion") }
  func sessionReachabilityDidChange(_ session: WCSession) {
    note("reachable \(session.isReachable)")
  }

  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    note("message \(text(message))") { onMessage?(message, nil) }
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    note("question \(text(message))") {
      if let onMessage { onMessage(message, replyHandler) } else { replyHandler([:]) }
    }
  }

  func session(_ session: WCSession, didReceiveMessageData messageData: Data) {
    note("data \(String(decoding: messageData, as: UTF8.self))")
  }

  func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping @Sendable (Data) -> Void
  ) {
    note("data question \(String(decoding: messageData, as: UTF8.self))") {
      replyHandler(Data(messageData.reversed()))
    }
  }

  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    note("context \(text(applicationContext))") { onContext?(session, applicationContext) }
  }

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    note("info \(text(userInfo))") { onUserInfo?(userInfo) }
  }

  func session(_ session: WCSession, didReceive file: WCSessionFile) {
    let content = (try? String(contentsOf: file.fileURL, encoding: .utf8)) ?? "none"
    note("file \(file.fileURL.lastPathComponent) \(content) \(text(file.metadata ?? [:]))") {
      onFile?(file)
    }
  }

  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {
    transfers.add(ObjectIdentifier(userInfoTransfer))
    note("finished \(text(userInfoTransfer.userInfo)) \(text(error))") {
      onFinish?(userInfoTransfer, error)
    }
  }

  func session(
    _ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: (any Error)?
  ) {
    transfers.add(ObjectIdentifier(fileTransfer))
    note("finished file \(fileTransfer.file.fileURL.lastPathComponent) \(text(error))") {
      onFinish?(fileTransfer, error)
    }
  }
}

/// A delegate with only the required methods.
final class Mute: NSObject, WCSessionDelegate {
  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {}
}
