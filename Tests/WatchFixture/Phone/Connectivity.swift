import Foundation
import WatchConnectivity

/// How something is sent.
enum Delivery {
  /// Now or never.
  case failable
  /// Whenever the other side runs.
  case guaranteed
  /// Only the latest counts.
  case highPriority
}

/// The link between the two apps: a singleton that is its session's delegate, publishes the content
/// received, and stores its callers' closures by transfer.
final class Connectivity: NSObject, ObservableObject {
  static let shared = Connectivity()

  @Published var purchasedIds: [Int] = []

  /// Receives files; this link must not retain the object.
  weak var images: ImageKeeper?

  private var infoCompletions: [WCSessionUserInfoTransfer: (Error?) -> Void] = [:]
  private var fileCompletions: [WCSessionFileTransfer: (Error?) -> Void] = [:]
  private var waitingForActivation: [() -> Void] = []

  override private init() {
    super.init()
    #if !os(watchOS)
      guard WCSession.isSupported() else { return }
    #endif
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  // MARK: Sending

  func send(
    ids: [Int], delivery: Delivery, wantedImages: [Int]? = nil,
    replyHandler: (([String: Any]) -> Void)? = nil, errorHandler: ((Error) -> Void)? = nil
  ) {
    guard canSendToPeer() else { return }
    var content: [String: Any] = ["purchased": ids]
    if let wantedImages {
      let key = "qrCodes"
      content[key] = wantedImages
    }
    switch delivery {
    case .failable:
      WCSession.default.sendMessage(
        content, replyHandler: optionalMainQueueDispatch(handler: replyHandler),
        errorHandler: optionalMainQueueDispatch(handler: errorHandler))
    case .guaranteed:
      let transfer = WCSession.default.transferUserInfo(content)
      // After the call, as apps usually do.
      infoCompletions[transfer] = { error in
        if let error = error { errorHandler?(error) } else { replyHandler?([:]) }
      }
    case .highPriority:
      do {
        try WCSession.default.updateApplicationContext(content)
      } catch {
        errorHandler?(error)
      }
    }
  }

  func send(file url: URL, of id: Int, completion: @escaping (Error?) -> Void) {
    let transfer = WCSession.default.transferFile(url, metadata: ["qrCodes": id])
    fileCompletions[transfer] = completion
  }

  /// Runs the work at once, or when the session becomes active.
  func whenActive(_ work: @escaping () -> Void) {
    DispatchQueue.main.async {
      if WCSession.default.activationState == .activated {
        work()
      } else {
        self.waitingForActivation.append(work)
      }
    }
  }

  private func canSendToPeer() -> Bool {
    guard WCSession.default.activationState == .activated else { return false }
    #if os(iOS) || PHONE
      guard WCSession.default.isWatchAppInstalled else { return false }
    #else
      guard WCSession.default.isCompanionAppInstalled else { return false }
    #endif
    return true
  }

  /// Handlers of messages come on a queue of the session's, and these touch the user interface.
  private func optionalMainQueueDispatch<T>(handler: ((T) -> Void)?) -> ((T) -> Void)? {
    guard let handler = handler else { return nil }
    return { item in
      DispatchQueue.main.async { handler(item) }
    }
  }

  private func take(_ content: [String: Any]) {
    guard let ids = content["purchased"] as? [Int] else { return }
    DispatchQueue.main.async { self.purchasedIds = ids }
  }
}

// MARK: - WCSessionDelegate

extension Connectivity: WCSessionDelegate {
  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: Error?
  ) {
    if let error = error {
      return print("not active: \(error.localizedDescription)")
    }
    DispatchQueue.main.async {
      let works = self.waitingForActivation
      self.waitingForActivation = []
      works.forEach { $0() }
    }
  }

  #if os(iOS) || PHONE
    func sessionDidBecomeInactive(_ session: WCSession) {
      print("inactive")
      // Too early, and seen often.
      WCSession.default.activate()
    }

    func sessionDidDeactivate(_ session: WCSession) {
      print("deactivated")
      WCSession.default.activate()
    }
  #endif

  func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any] = [:]) {
    take(userInfo)
  }

  func session(
    _ session: WCSession, didReceiveApplicationContext applicationContext: [String: Any]
  ) {
    take(applicationContext)
    #if os(iOS) || PHONE
      sendImages(wantedBy: applicationContext)
    #endif
  }

  func session(_ session: WCSession, didReceiveMessage message: [String: Any]) {
    take(message)
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    take(message)
    #if os(iOS) || PHONE
      sendImages(wantedBy: message)
    #endif
    replyHandler(["verified": true])
  }

  #if os(iOS) || PHONE
    private func sendImages(wantedBy content: [String: Any]) {
      guard let ids = content["qrCodes"] as? [Int] else { return }
      for id in ids {
        // One path for all images.
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("code.png")
        guard (try? Data("image \(id)".utf8).write(to: url)) != nil else { continue }
        send(file: url, of: id) { error in
          print("image \(id) \(error == nil ? "arrived" : "lost")")
        }
      }
    }
  #endif

  func session(_ session: WCSession, didReceive file: WCSessionFile) {
    guard let id = file.metadata?["qrCodes"] as? Int, let keeper = images else { return }
    let documents = FileManager.default.urls(for: .documentDirectory, in: .userDomainMask)[0]
    let target = documents.appendingPathComponent("\(id)-" + file.fileURL.lastPathComponent)
    do {
      // The file is removed once the method returns.
      try FileManager.default.moveItem(at: file.fileURL, to: target)
      keeper.keep(id, at: target)
    } catch {
      print("image \(id) is lost: \(error)")
    }
  }

  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer, error: Error?
  ) {
    DispatchQueue.main.async {
      self.infoCompletions.removeValue(forKey: userInfoTransfer)?(error)
    }
  }

  func session(_ session: WCSession, didFinish fileTransfer: WCSessionFileTransfer, error: Error?) {
    DispatchQueue.main.async {
      self.fileCompletions.removeValue(forKey: fileTransfer)?(error)
    }
  }

  func sessionReachabilityDidChange(_ session: WCSession) {
    let isReachable = session.isReachable
    DispatchQueue.main.async { print("reachable: \(isReachable)") }
  }
}
