internal import Foundation
internal import WatchConnectivity
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholeSyscalls

/// Passes incoming messages to their observers.
final class SessionDelegate: NSObject, WCSessionDelegate, @unchecked Sendable {
  // The mutable state is behind the monitors.

  private let told = Monitor<Reachability?>(nil)
  private let completions = Monitor<[ObjectIdentifier: TransferCompletion]>([:])

  private struct TransferCompletion {
    let completion: Handler<Result<Void, any Error>>
    /// Retained, so that no later transfer has the same identity: a transfer that the session no
    /// longer lists may have no other owner before its end is reported.
    let transfer: WCSessionUserInfoTransfer
  }

  /// Stores the completion of a transfer; the lock delays the end of the transfer until it is
  /// stored.
  func keep(
    _ completion: Handler<Result<Void, any Error>>?, of send: () -> WCSessionUserInfoTransfer
  ) -> WCSessionUserInfoTransfer {
    guard let completion else { return send() }
    return completions.withLock { completions in
      let transfer = send()
      completions[ObjectIdentifier(transfer)] = TransferCompletion(
        completion: completion, transfer: transfer)
      return transfer
    }
  }

  private func tellStates(_ session: WCSession) {
    Communicator.State.observations.tell(Communicator.State(session.activationState))
    tellReachability(session)
    WatchState.observations.tell(WatchState(session))
    PhoneState.observations.tell(PhoneState(session))
  }

  /// Notifies the observers of a new reachability, which also depends on pairing and installation.
  private func tellReachability(_ session: WCSession) {
    let now = Reachability(session)
    let isNew = told.withLock { exchange(&$0, with: now) != now }
    if isNew { Reachability.observations.tell(now) }
  }

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: (any Error)?
  ) {
    if let error { DropInLog.tell(.error, error.localizedDescription) }
    tellStates(session)
  }

  func sessionDidBecomeInactive(_ session: WCSession) { tellStates(session) }

  func sessionDidDeactivate(_ session: WCSession) {
    tellStates(session)
    session.activate()
  }

  func sessionWatchStateDidChange(_ session: WCSession) {
    WatchState.observations.tell(WatchState(session))
    tellReachability(session)
  }

  func sessionCompanionAppInstalledDidChange(_ session: WCSession) {
    PhoneState.observations.tell(PhoneState(session))
    tellReachability(session)
  }

  func sessionReachabilityDidChange(_ session: WCSession) { tellReachability(session) }

  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    guard let message = ImmediateMessage(packed: message) else {
      return session.isUnhandled("a message of Communicator")
    }
    ImmediateMessage.observations.tell(message)
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping @Sendable ([String: Any]) -> Void
  ) {
    guard let identifier = message["identifier"] as? String,
      let content = message["content"] as? Content
    else { return session.isUnhandled("a message of Communicator") }
    InteractiveImmediateMessage.observations.tell(
      InteractiveImmediateMessage(identifier: identifier, content: content) {
        replyHandler($0.packed)
      })
  }

  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) { Context.observations.tell(Context(content: applicationContext)) }

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
    if let info = ComplicationInfo(packed: userInfo) {
      ComplicationInfo.observations.tell(info)
    } else if let blob = Blob(packed: userInfo) {
      Blob.observations.tell(blob)
    } else if let message = GuaranteedMessage(packed: userInfo) {
      GuaranteedMessage.observations.tell(message)
    } else {
      session.isUnhandled("a message of Communicator")
    }
  }

  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer,
    error: (any Error)?
  ) {
    let ended = completions.withLock {
      $0.removeValue(forKey: ObjectIdentifier(userInfoTransfer))
    }
    guard let completion = ended?.completion else { return }
    DispatchQueue.communicator.async {
      completion.call(error.map { .failure($0) } ?? .success(()))
    }
  }
}
