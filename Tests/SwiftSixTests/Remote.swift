import MMWormhole

// MMWormhole's examples, with the types of today.

enum Press: String, CaseIterable, Sendable { case up, down, select }

final class Remote {
  private let wormhole: MMWormhole

  init(group: String) {
    wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "remote")
  }

  func press(_ press: Press) {
    wormhole.passMessageObject(press.rawValue as NSString, identifier: "press")
  }

  func turn(to volume: Double) {
    wormhole.passMessageObject(["volume": volume] as NSDictionary, identifier: "volume")
  }

  func off() { wormhole.clearAllMessageContents() }
}

actor Player {
  private let wormhole: MMWormhole
  private(set) var presses: [Press] = []
  private(set) var volume = 0.0

  init(group: String) {
    wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "remote")
    wormhole.listenerQueue = DispatchQueue(label: "player")
  }

  func start(_ heard: @escaping @Sendable () -> Void) {
    wormhole.listenForMessage(withIdentifier: "press") { message in
      guard let press = (message as? String).flatMap(Press.init) else { return }
      Task {
        self.take(press)
        heard()
      }
    }
    wormhole.listenForMessage(withIdentifier: "volume") { message in
      let volume = (message as? [String: Any])?["volume"] as? Double
      Task {
        self.turn(to: volume ?? 0)
        heard()
      }
    }
  }

  func stop() {
    wormhole.stopListeningForMessage(withIdentifier: "press")
    wormhole.stopListeningForMessage(withIdentifier: "volume")
  }

  private func take(_ press: Press) { presses.append(press) }
  private func turn(to volume: Double) { self.volume = volume }

  var latest: Press? {
    (wormhole.message(withIdentifier: "press") as? String).flatMap(Press.init)
  }
}

@MainActor
final class RemoteScreen {
  private let wormhole: MMWormhole
  private(set) var line = ""

  init(_ wormhole: MMWormhole) { self.wormhole = wormhole }

  func show() {
    wormhole.failureHandler = { error in NSLog("\(error)") }
    wormhole.listenForMessage(withIdentifier: "line") { message in
      let line = message as? String ?? ""
      Task { @MainActor in self.line = line }
    }
  }

  func readNow() { line = wormhole.message(withIdentifier: "line") as? String ?? "nothing" }
}
