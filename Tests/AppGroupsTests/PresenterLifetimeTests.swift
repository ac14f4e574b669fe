import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Presenters that come and go.
@Suite struct PresenterLifetimeTests {
  /// The last reference to a presenter may be held by a reader of the list, under a lock.
  @Test(.blocking) func aPresenterMayEndWhileOthersAreAskedFor() throws {
    let peer = try Running(
      Programs.built("DropInPeer"), ["fleeting", "100000"], environment: [GroupsRoot.setting])
    #expect(try peer.outcome().status == .exited(0))
  }
}
