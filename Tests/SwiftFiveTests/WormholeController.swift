import Foundation
import MMWormhole

// In the style of MMWormhole's examples: a controller with buttons, and a second controller that
// shows the pressed button.

class ButtonController {
  let wormhole: MMWormhole
  var isOn = false

  init(group: String) {
    wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "wormhole")
  }

  func didPressButton(_ number: Int) {
    wormhole.passMessageObject(["buttonNumber": number] as NSDictionary, identifier: "button")
  }

  func didSwitch() {
    isOn = !isOn
    wormhole.passMessageObject(isOn as NSNumber, identifier: "switch")
  }

  func didType(_ text: String) {
    wormhole.passMessageObject(text as NSString, identifier: "text")
  }

  func didSelect(_ rows: [Int]) {
    wormhole.passMessageObject(["rows": rows, "all": rows.isEmpty] as NSCoding, identifier: "rows")
  }

  func didDraw(_ points: [[Double]]) {
    wormhole.passMessageObject(points as NSArray, identifier: "drawing")
  }

  func didTakePhoto(_ data: Data) {
    wormhole.passMessageObject(data as NSData, identifier: "photo")
  }

  func clear() {
    wormhole.clearMessageContents(forIdentifier: "button")
    wormhole.clearAllMessageContents()
  }
}

class NumberController {
  let wormhole: MMWormhole
  var onChange: ((String) -> Void)?

  init(group: String) {
    wormhole = MMWormhole(
      applicationGroupIdentifier: group, optionalDirectory: "wormhole", transitingType: .file)
  }

  func awake() -> String {
    guard let message = wormhole.message(withIdentifier: "button") as? [String: Any],
      let number = message["buttonNumber"] as? NSNumber
    else { return "no button" }
    return number.stringValue
  }

  func listen(on queue: DispatchQueue) {
    wormhole.listenerQueue = queue
    wormhole.listenForMessage(withIdentifier: "button") { [weak self] messageObject in
      if let dictionary = messageObject as? NSDictionary,
        let number = dictionary["buttonNumber"] as? Int
      {
        self?.onChange?("button \(number)")
      }
    }
    wormhole.listenForMessage(withIdentifier: "switch") { [weak self] messageObject in
      guard let isOn = messageObject as? Bool else { return }
      self?.onChange?(isOn ? "on" : "off")
    }
    wormhole.listenForMessage(withIdentifier: "text") { [weak self] messageObject in
      self?.onChange?((messageObject as? String) ?? "no text")
    }
    wormhole.listenForMessage(withIdentifier: "rows") { [weak self] messageObject in
      let message = messageObject as? [String: Any]
      let rows = message?["rows"] as? [Int] ?? []
      self?.onChange?("rows \(rows.map { String($0) }.joined(separator: " "))")
    }
    wormhole.listenForMessage(withIdentifier: "drawing") { [weak self] messageObject in
      let points = messageObject as? [[Double]] ?? []
      self?.onChange?("\(points.count) points")
    }
    wormhole.listenForMessage(withIdentifier: "photo") { [weak self] messageObject in
      self?.onChange?("\((messageObject as? Data)?.count ?? 0) bytes")
    }
  }

  func stop() {
    for identifier in ["button", "switch", "text", "rows", "drawing", "photo"] {
      wormhole.stopListeningForMessage(withIdentifier: identifier)
    }
  }
}

// An object that an app stores, with coding of its own.
class Ticket: NSObject, NSSecureCoding {
  static var supportsSecureCoding: Bool { return true }

  let film: String
  let seats: [Int]

  init(film: String, seats: [Int]) {
    self.film = film
    self.seats = seats
    super.init()
  }

  required init?(coder: NSCoder) {
    guard let film = coder.decodeObject(of: NSString.self, forKey: "film") else { return nil }
    self.film = film as String
    seats = (coder.decodeObject(forKey: "seats") as? [Int]) ?? []
    super.init()
  }

  func encode(with coder: NSCoder) {
    coder.encode(film as NSString, forKey: "film")
    coder.encode(seats as NSArray, forKey: "seats")
  }
}

// A messenger of the app's own, as the library lets one be set.
class MemoryMessenger: MMWormholeTransiting {
  private let lock = NSLock()
  private var messages: [String: NSCoding] = [:]

  func writeMessageObject(_ messageObject: NSCoding?, forIdentifier identifier: String) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    messages[identifier] = messageObject
    return true
  }

  func messageObject(forIdentifier identifier: String?) -> NSCoding? {
    lock.lock()
    defer { lock.unlock() }
    return identifier.flatMap { messages[$0] }
  }

  func deleteContent(forIdentifier identifier: String?) {
    lock.lock()
    defer { lock.unlock() }
    if let identifier = identifier { messages[identifier] = nil }
  }

  func deleteContentForAllMessages() {
    lock.lock()
    defer { lock.unlock() }
    messages = [:]
  }
}
