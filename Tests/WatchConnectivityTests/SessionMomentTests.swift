import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeDropIns
import WormholePairings
import WormholeSyscalls

@testable import WatchConnectivity

/// Calls at the moment when another thread or process changes the same state.
@Suite(.blocking) struct SessionMomentTests {
  /// The session's queue has not ended the subscription yet.
  @Test(arguments: ["info", "context"])
  func contentOfAKindThatIsNoLongerTakenIsDeclined(kind: String) throws {
    let sides = try TwoSides()
    try sides.activate()
    try eventually("it receives") { sides.watch.connection?.reception?.isStopped == false }
    sides.watch.work.suspend()
    sides.watch.takenKinds = []
    let isDeclined = Result {
      if kind == "info" {
        sides.phone.transferUserInfo(["n": 1])
      } else {
        try sides.phone.updateApplicationContext(["n": 1])
      }
      try eventually("it is declined") { sides.watch.connection?.reception?.isStopped == true }
    }
    sides.watch.work.resume()
    try isDeclined.get()
    #expect(!sides.watchSide.heard.all.contains("\(kind) n=1"))
    sides.watch.takenKinds = nil
    try sides.watchSide.heard.wait("it") { $0.contains("\(kind) n=1") }
  }
}
