import Foundation
import MMWormhole
import TestSupport
import TestTraits
import Testing
import WatchConnectivity

/// What the listeners of a watch session hear; those of two processes are with the others'.
@Suite struct MMWormholeSessionTests {
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
}
