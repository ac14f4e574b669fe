import AppGroups
import Foundation
import MMWormhole
import WatchConnectivity
import Wormhole
import WormholeSyscalls

/// A program that uses the drop-in modules as programs do, for tests to start, kill and stop.
@main struct DropInPeer {
  static func main() {
    #if FAULT_POINTS
      FaultPoints.arm()
    #endif
    let arguments = Array(CommandLine.arguments.dropFirst())
    if arguments.first == "communicator" {
      return CommunicatorSide.run(Array(arguments.dropFirst()))
    }
    if arguments.first == "mmsession" {
      return MMSessionSide.run(arguments[1], Array(arguments.dropFirst(2)))
    }
    if arguments.first == "storing" {
      return StoringSide.run(Int(arguments[1])!, onMain: arguments[2] == "main")
    }
    if arguments.first == "log" { return LogSide.run() }
    if arguments.first == "session" { return WatchSide.run(Array(arguments.dropFirst())) }
    setUp()
    switch arguments.first {
    case "set-keys": setKeys(arguments[1], Int(arguments[2])!, Int(arguments[3])!)
    case "set-foundation-keys":
      setFoundationKeys(arguments[1], Int(arguments[2])!, Int(arguments[3])!)
    case "count-foundation-keys": countFoundationKeys(arguments[1], Int(arguments[2])!)
    case "set-null": UserDefaults(suiteName: arguments[1])!.set(NSNull(), forKey: "null")
    case "remove-domain":
      UserDefaults(suiteName: arguments[1])!.removePersistentDomain(forName: arguments[2])
    case "is-supported": for _ in 1...2 { print(WCSession.isSupported()) }
    case "integer":
      print(UserDefaults(suiteName: arguments[1])!.integer(forKey: arguments[2]), terminator: "")
    case "fleeting": PresenterSide.comeAndGo(Int(arguments[1])!)
    case "ask-parent": askParent(arguments[1], arguments.count > 2 ? Int(arguments[2]) : nil)
    case "set": UserDefaults(suiteName: arguments[1])!.set(arguments[3], forKey: arguments[2])
    case "post": try! DarwinNotification(arguments[1]).post()
    case "notify": exit(Int32(notify_post(arguments[1])))
    case "observe": observe(arguments[1])
    case "observe-distributed": observeDistributed(arguments[1])
    case "post-distributed": postDistributed(arguments[1], Int(arguments[2])!)
    case "pass": pass(arguments[1], arguments[2], Int(arguments[3])!)
    case "race": race(arguments[1], arguments[2], Int(arguments[3])!)
    case "file-then-post": fileThenPost(arguments[1])
    case "parent": parent(arguments[1])
    case "fork": fork(arguments[1])
    case "fork-presenting": PresenterSide.fork(arguments[1], namesPurpose: arguments[2] == "true")
    case "present": PresenterSide.run(arguments[1], arguments[2])
    default: fatalError("what to do? \(arguments)")
    }
  }

  /// Tests say where groups lie in the environment, so nothing is left to do but to fail early.
  static func setUp() {
    guard Processes.environment("WORMHOLE_ROOT") != nil else {
      fatalError("WORMHOLE_ROOT is not set: this would use the account's own groups")
    }
  }

  static func setKeys(_ group: String, _ process: Int, _ count: Int) {
    let defaults = UserDefaults(suiteName: group)!
    for number in 1...count { defaults.set(number, forKey: "key \(process) \((number + 9) % 10)") }
  }

  /// Counts the keys, set by eight processes, that have the last value that was set.
  static func countFoundationKeys(_ suite: String, _ count: Int) {
    let defaults = UserDefaults(suiteName: Optional(suite))!
    var kept = 0
    for process in 0..<8 {
      for key in 0..<10 {
        let last = defaults.integer(forKey: "key \(process) \(key)")
        if last == count - 9 + key { kept += 1 }
      }
    }
    print(kept, terminator: "")
  }

  /// Asks the parent, and then asks with content that cannot be sent.
  static func askParent(_ group: String, _ milliseconds: Int?) {
    ParentApplication.group = group
    if let milliseconds { ParentApplication.timeout = .milliseconds(milliseconds) }
    let key = DispatchSpecificKey<Bool>()
    DispatchQueue.main.setSpecific(key: key, value: true)
    let sent = WKInterfaceController.openParentApplication([:]) { _, error in
      print((error as? WormholeError)?.code as Any? ?? "no error")
      print(DispatchQueue.getSpecific(key: key) == true ? "on the main queue" : "elsewhere")
      print(WKInterfaceController.openParentApplication(["null": NSNull()]))
      exit(0)
    }
    print(sent, terminator: " ")
    dispatchMain()
  }

  /// The same with Foundation's own suite.
  static func setFoundationKeys(_ suite: String, _ process: Int, _ count: Int) {
    let defaults = UserDefaults(suiteName: Optional(suite))!
    for number in 1...count {
      defaults.set(number, forKey: "key \(process) \((number + 9) % 10)")
      _ = defaults.synchronize()
    }
  }

  static func pass(_ group: String, _ identifier: String, _ count: Int) {
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: "wormhole")
    for number in 1...count {
      let text = String(repeating: "\(number % 10)", count: 1000)
      wormhole.passMessageObject(
        ["number": number, "text": text] as NSDictionary, identifier: identifier)
    }
  }

  static func race(_ group: String, _ identifier: String, _ count: Int) {
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
    for number in 1...count {
      if number % 2 == 0 {
        wormhole.passMessageObject(number as NSNumber, identifier: identifier)
      } else {
        wormhole.clearMessageContents(forIdentifier: identifier)
      }
    }
  }

  static func postDistributed(_ name: String, _ count: Int) {
    for number in 1...count {
      DistributedNotificationCenter.default().postNotificationName(
        NSNotification.Name(name), object: number % 2 == 0 ? "even" : "odd",
        userInfo: ["number": number, "texts": ["a", "b"]], deliverImmediately: true)
    }
  }

  /// Prints a line for each Darwin notification.
  static func observe(_ name: String) {
    CFNotificationCenterAddObserver(
      CFNotificationCenterGetDarwinNotifyCenter(), nil,
      { _, _, _, _, _ in
        print("posted")
        fflush(nil)
      }, name, nil, .deliverImmediately)
    print("observing")
    fflush(nil)
    dispatchMain()
  }

  /// Prints the object of each notification.
  static func observeDistributed(_ name: String) {
    let queue = OperationQueue()
    queue.maxConcurrentOperationCount = 1
    let observer = DistributedNotificationCenter.default().addObserver(
      forName: NSNotification.Name(name), object: nil, queue: queue
    ) { note in
      print(note.object ?? "none")
      fflush(nil)
    }
    print("observing")
    fflush(nil)
    withExtendedLifetime(observer) { dispatchMain() }
  }

  /// The slides' way: a file that appears whole, and a notification of the file.
  static func fileThenPost(_ group: String) {
    let url = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)!
    try! Data("the whole file".utf8).write(
      to: url.appendingPathComponent("data.txt"), options: .atomic)
    CFNotificationCenterPostNotification(
      CFNotificationCenterGetDarwinNotifyCenter(), CFNotificationName("\(group).changed"), nil, nil,
      true)
  }

  static func parent(_ group: String) {
    let application = Application(group)
    try! ParentApplication.serve(application, group: group)
    dispatchMain()
  }
}

final class Application: UIApplicationDelegate {
  let group: String
  init(_ group: String) { self.group = group }

  func application(
    _ application: UIApplication, handleWatchKitExtensionRequest userInfo: [AnyHashable: Any]?,
    reply: @escaping @Sendable ([AnyHashable: Any]?) -> Void
  ) {
    let url = FileManager.default.containerURL(forSecurityApplicationGroupIdentifier: group)!
    let name = userInfo?["file"] as? String ?? "nothing"
    try! Data("made by the parent".utf8).write(
      to: url.appendingPathComponent(name), options: .atomic)
    reply(["made": name, "process": Int(Processes.current)])
  }
}
