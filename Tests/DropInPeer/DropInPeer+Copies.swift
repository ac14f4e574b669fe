import AppGroups
import Foundation
import MMWormhole
import WormholeCTesting
import WormholeSyscalls

/// What a copy of the process gets, as of a program whose libraries call `fork`.
extension DropInPeer {
  private struct Inheritance {
    let group: String
    let defaults: UserDefaults
    let wormhole: MMWormhole
  }

  // Written once, before the process forks a child.
  private nonisolated(unsafe) static var inheritance: Inheritance?

  /// Has a forked child use its inherited objects, and objects that it opens itself.
  static func fork(_ group: String) {
    let defaults = UserDefaults(suiteName: group)!
    let wormhole = MMWormhole(applicationGroupIdentifier: group, optionalDirectory: nil)
    wormhole.listenerQueue = DispatchQueue(label: "listener")
    wormhole.listenForMessage(withIdentifier: "who") { _ in }
    defaults.set("parent", forKey: "who")
    wormhole.passMessageObject("parent" as NSString, identifier: "who")
    inheritance = Inheritance(group: group, defaults: defaults, wormhole: wormhole)
    let end = forking_do(0) { DropInPeer.useInheritance() }
    say("the copy ended: \(end)")
    say("it says: \(defaults.string(forKey: "who") ?? "nothing")")
    say("it says: \(wormhole.message(withIdentifier: "who") as? String ?? "nothing")")
  }

  private static func useInheritance() {
    let (defaults, wormhole) = (inheritance!.defaults, inheritance!.wormhole)
    defaults.set("copy", forKey: "who")
    wormhole.passMessageObject("copy" as NSString, identifier: "who")
    wormhole.clearMessageContents(forIdentifier: "who")
    wormhole.listenForMessage(withIdentifier: "other") { _ in }
    wormhole.stopListeningForMessage(withIdentifier: "who")
    say("the copy is through")
  }

  private static func say(_ words: String) { try? StandardStream.output.write(words + "\n") }
}
