import Foundation
import MMWormhole
import TestSupport
import WatchConnectivity
import WormholeSyscalls

/// One side that passes MMWormhole's messages by a watch session, and prints the messages received.
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
    if words[0] == "clear" {
      return wormhole(group, .sessionContext).clearMessageContents(forIdentifier: words[1])
    }
    if step == "clear-all" { return wormhole(group, .sessionContext).clearAllMessageContents() }
    if words[0] == "own" { try WCSession.default.updateApplicationContext([words[1]: 1]) }
    if step == "keys" {
      let keys = WCSession.default.applicationContext.keys.sorted().joined(separator: ",")
      try StandardStream.output.write("keys \(keys)\n")
    }
    if words[0] == "broken" {
      try WCSession.default.updateApplicationContext([
        words[1]: [
          "MMWormhole.message": ["MMWormhole.archive": Data([1, 2, 3])], "number": Int.max,
        ]
      ])
    }
    if words[0] == "read" { try read(wormhole(group, .sessionContext), words[1]) }
    if step == "near" { try eventually("it is near") { WCSession.default.isReachable } }
    if words[0] == "after" {
      try eventually("it is told to") { FileManager.default.fileExists(atPath: words[1]) }
    }
    guard let type = types[words[0]] else { return }
    wormhole(group, type).passMessageObject(
      ["n": Int(words[1]) ?? 0] as NSDictionary, identifier: words[0])
  }

  private static func wormhole(_ group: String, _ type: MMWormholeTransitingType) -> MMWormhole {
    MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil, transitingType: type)
  }

  /// Reads a message until reading fails, and prints the reason.
  private static func read(_ wormhole: MMWormhole, _ identifier: String) throws {
    let failures = Heard<String>()
    wormhole.failureHandler = { failures.add("\($0)") }
    try eventually("it fails") {
      guard wormhole.message(withIdentifier: identifier) == nil else { return false }
      return failures.count > 0
    }
    try StandardStream.output.write("failed: \(failures.all[0])\n")
  }
}
