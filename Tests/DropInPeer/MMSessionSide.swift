import Foundation
import MMWormhole
import Syscalls
import TestSupport
import WatchConnectivity

/// One side that passes MMWormhole's messages by a watch session, and prints what it hears.
enum MMSessionSide {
  static func run(_ group: String, _ steps: [String]) {
    let session = MMWormholeSession.sharedListening()
    if steps.contains("listen") {
      for identifier in ["context", "message", "file"] {
        session.listenForMessage(withIdentifier: identifier) { message in
          let number = (message as? [String: Any])?["n"] as? Int ?? -1
          try? StandardStream.output.write("\(identifier) \(number)\n")
        }
      }
    }
    session.activateListening()
    DispatchQueue.global().async {
      do {
        try eventually("it is active") { WCSession.default.activationState == .activated }
        for step in steps { try take(step, group) }
      } catch {
        try? StandardStream.error.write("\(error)\n")
      }
    }
    dispatchMain()
  }

  private static func take(_ step: String, _ group: String) throws {
    let words = step.split(separator: "=").map(String.init)
    let types: [String: MMWormholeTransitingType] = [
      "context": .sessionContext, "message": .sessionMessage, "file": .sessionFile,
    ]
    if step == "near" { try eventually("it is near") { WCSession.default.isReachable } }
    if words[0] == "after" {
      try eventually("it is told to") { FileManager.default.fileExists(atPath: words[1]) }
    }
    guard let type = types[words[0]] else { return }
    let wormhole = MMWormhole(
      applicationGroupIdentifier: group, optionalDirectory: nil, transitingType: type)
    wormhole?.passMessageObject(
      ["n": Int(words[1]) ?? 0] as NSDictionary, identifier: words[0])
  }
}
