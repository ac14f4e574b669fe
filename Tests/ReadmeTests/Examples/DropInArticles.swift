import AppGroups
import Communicator
import Foundation
import MMWormhole
import WatchConnectivity

// The examples of the articles on the drop-in modules, word for word.

enum AppGroupsArticle {
  static func share() throws {
    let group = "group.com.example.cinema"
    let defaults = UserDefaults(suiteName: group)!
    defaults.set(120, forKey: "seats")

    let shared = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)!
    try Data("two seats".utf8).write(to: shared.appendingPathComponent("order"), options: .atomic)
    try DarwinNotification("com.example.cinema.ordered").post()
  }
}

enum MMWormholeArticle {
  static func listen() {
    let wormhole = MMWormhole(
      applicationGroupIdentifier: "group.com.example.cinema", optionalDirectory: "wormhole")
    wormhole.listenForMessage(withIdentifier: "seats") { message in
      print("sold:", message as? [Int] ?? [])
    }
    wormhole.passMessageObject([4, 5] as NSArray, identifier: "seats")
    dispatchMain()
  }
}

enum CommunicatorArticle {
  static func talk() {
    GuaranteedMessage.observe { message in
      print(message.identifier, message.content)
    }

    Communicator.shared.send(ImmediateMessage("seats", content: ["left": 2])) { error in
      print(error)
    }
  }
}

enum WatchConnectivityArticle {
  final class Link: NSObject, WCSessionDelegate {
    func begin() {
      WCSession.default.delegate = self
      WCSession.default.activate()
    }

    func session(
      _ session: WCSession, activationDidCompleteWith activationState: WCSessionActivationState,
      error: (any Error)?
    ) {
      session.transferUserInfo(["seats": 2])
    }

    func session(_ session: WCSession, didReceiveUserInfo userInfo: [String: Any]) {
      print(userInfo)
    }
  }

  static func disturb(_ container: String) throws {
    let pairing = try Pairing(directory: container)
    try pairing.setInRange(false)
    try pairing.uninstall(.watch)
    try pairing.pair("second")
  }
}

#if os(iOS) || PHONE
  enum PhoneArticle {}
#endif
