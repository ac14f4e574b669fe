import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing
import WatchConnectivity

/// Messages to the listeners of a watch session; tests with two processes are in a separate file.
///
/// The tests share the process's only session, and its queue.
@Suite(.serialized) struct MMWormholeSessionTests {
  @Test(.blocking) func whoHasStoppedHearsNothingThatWaits() throws {
    let session = MMWormholeSession.sharedListening()
    let queue = DispatchQueue(label: "busy")
    session.listenerQueue = queue
    let heard = Heard<String>()
    for name in ["stopped", "replaced", "kept"] {
      session.listenForMessage(withIdentifier: name) { _ in heard.add("\(name) first") }
    }
    queue.suspend()
    for name in ["stopped", "replaced", "kept"] {
      session.session(
        .default,
        didReceiveMessage: [name: ["MMWormhole.message": "text", "number": 0] as [String: Any]])
    }
    session.stopListeningForMessage(withIdentifier: "stopped")
    session.listenForMessage(withIdentifier: "replaced") { _ in heard.add("replaced second") }
    queue.resume()
    queue.sync {}
    #expect(heard.all == ["replaced second", "kept first"])
    for name in ["replaced", "kept"] { session.stopListeningForMessage(withIdentifier: name) }
  }

  /// A context contains all messages, also the unchanged ones.
  @Test(.blocking) func onlyNewMessagesOfAContextAreReceived() throws {
    let session = MMWormholeSession.sharedListening()
    let queue = DispatchQueue(label: "listeners")
    session.listenerQueue = queue
    let heard = Heard<String>()
    let names = ["one", "other"].map { "\($0) \(UUID().uuidString)" }
    for name in names {
      session.listenForMessage(withIdentifier: name) { heard.add("\(name.prefix(3)) \($0!)") }
    }
    defer { for name in names { session.stopListeningForMessage(withIdentifier: name) } }
    func tell(_ numbers: [Int]) -> [String] {
      let before = heard.count
      let context = zip(names, numbers).map { name, number in
        (name, ["MMWormhole.message": "text", "number": number] as [String: Any])
      }
      session.session(
        .default, didReceiveApplicationContext: Dictionary(uniqueKeysWithValues: context))
      queue.sync {}
      return heard.all.dropFirst(before).sorted()
    }
    #expect(tell([1, 1]) == ["one text", "oth text"])
    #expect(tell([1, 2]) == ["oth text"])
    #expect(tell([1, 2]) == [])
    #expect(tell([3, 2]) == ["one text"])
  }

  /// A context contains all messages: one that found no listener does not arrive later.
  @Test(.blocking) func aMessageThatFoundNoListenerIsNotReceivedLater() throws {
    let session = MMWormholeSession.sharedListening()
    let queue = DispatchQueue(label: "listeners")
    session.listenerQueue = queue
    let name = UUID().uuidString
    let heard = Heard<String>()
    func tell(_ number: Int) {
      let message = ["MMWormhole.message": "text \(number)", "number": number] as [String: Any]
      session.session(.default, didReceiveApplicationContext: [name: message])
    }
    tell(1)
    session.listenForMessage(withIdentifier: name) { heard.add("\($0!)") }
    defer { session.stopListeningForMessage(withIdentifier: name) }
    for number in 1...2 { tell(number) }
    queue.sync {}
    #expect(heard.all == ["text 2"])
  }
}
