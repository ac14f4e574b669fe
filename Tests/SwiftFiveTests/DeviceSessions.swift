import Communicator
import Foundation
import WatchConnectivity

// Code in the style of apps for phones and watches, with the declarations of the devices' headers:
// the same file is compiled in Swift 5 and in Swift 6 mode, with warnings as errors.

// A delegate that is not Sendable, and uses itself in reply and error handlers.
class PhoneLink: NSObject, WCSessionDelegate {
  var received: [[String: Any]] = []
  var failures: [Error] = []
  var onReply: (([String: Any]) -> Void)?
  var handlers: [WCSessionUserInfoTransfer: (Error?) -> Void] = [:]

  func activate() {
    WCSession.default.delegate = self
    WCSession.default.activate()
  }

  func session(
    _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
    error: Error?
  ) {
    if let error = error { failures.append(error) }
  }

  func session(
    _ session: WCSession, didReceiveMessage message: [String: Any],
    replyHandler: @escaping ([String: Any]) -> Void
  ) {
    received.append(message)
    session.sendMessage(
      ["echo": message.count],
      replyHandler: { reply in
        self.received.append(reply)
        replyHandler(reply)
      },
      errorHandler: { error in
        self.failures.append(error)
        replyHandler([:])
      })
  }

  func session(
    _ session: WCSession, didReceiveMessageData messageData: Data,
    replyHandler: @escaping (Data) -> Void
  ) {
    replyHandler(messageData)
  }

  func ask(completion: @escaping ([String: Any]) -> Void, failure: ((Error) -> Void)? = nil) {
    let session = WCSession.default
    session.sendMessage(["n": 1], replyHandler: completion, errorHandler: failure)
    session.sendMessage(["n": 2], replyHandler: onReply, errorHandler: failed)
    session.sendMessage(["n": 3], replyHandler: nil, errorHandler: printFailure)
    session.sendMessage(["n": 4], replyHandler: nil) { [weak self] in self?.failures.append($0) }
    session.sendMessageData(Data(), replyHandler: { self.received.append(["data": $0]) })
  }

  func failed(_ error: Error) { failures.append(error) }

  // The completion is stored after the call, without a lock.
  func transfer(_ values: [Int], completion: @escaping (Error?) -> Void) {
    for value in values {
      let transfer = WCSession.default.transferUserInfo(["n": value, "width": CGFloat(value) / 2])
      handlers[transfer] = completion
    }
  }

  func session(
    _ session: WCSession, didFinish userInfoTransfer: WCSessionUserInfoTransfer, error: Error?
  ) {
    handlers.removeValue(forKey: userInfoTransfer)?(error)
  }

  func drain() -> Bool { return WCSession.default.hasContentPending }
}

func printFailure(_ error: Error) { print("failed: \(error)") }

// A model of the main actor, whose handlers use its properties.
@MainActor final class LinkModel {
  var replies = 0
  var errors: [Error] = []
  var didFail: () -> Void = {}

  func ask() {
    WCSession.default.sendMessage(
      ["size": CGFloat(1.5)], replyHandler: { reply in self.replies += 1 },
      errorHandler: { error in
        self.errors.append(error)
        self.didFail()
      })
    WCSession.default.sendMessage(["n": 1], replyHandler: took, errorHandler: failed)
    WCSession.default.sendMessage(["n": 2], replyHandler: nil) { [weak self] error in
      guard let self = self else { return }
      self.errors.append(error)
      self.didFail()
    }
  }

  func took(_ reply: [String: Any]) { replies += 1 }

  func failed(_ error: Error) {
    errors.append(error)
    didFail()
  }

  func communicate() {
    Communicator.shared.send(ImmediateMessage(identifier: "seats", content: ["left": 2])) { error in
      self.failed(error)
    }
    Communicator.shared.send(
      InteractiveImmediateMessage(
        identifier: "seats",
        reply: { message in
          self.took(message.content)
        }), errorHandler: failed)
    Communicator.shared.send(GuaranteedMessage(identifier: "seats")) { result in
      if case .failure(let error) = result { self.failed(error) }
    }
    Communicator.shared.transfer(ComplicationInfo(content: [:])) { result in
      if case .success(let left) = result { self.replies = left }
    }
  }
}

// As the README of Communicator observes contexts.
class ContextStore {
  var showsDistance = false

  func observe() {
    Content.observe { context in
      if let showsDistance = context.content["ShowTotalDistance"] as? Bool {
        print("Show total distance setting changed: \(showsDistance)")
        self.showsDistance = showsDistance
      }
    }
    Context.observe { self.showsDistance = $0.content.isEmpty }
    Reachability.observe { state in
      switch state {
      case .immediateMessaging: self.showsDistance = true
      default: break
      }
    }
  }
}
