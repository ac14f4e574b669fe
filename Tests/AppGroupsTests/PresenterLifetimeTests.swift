import Syscalls
import TestSupport
import TestTraits
import Testing

/// Presenters that come and go.
@Suite struct PresenterLifetimeTests {
  /// Its last reference may be one that somebody looks at it by, under a lock.
  @Test(.blocking) func aPresenterMayEndWhileOthersAreAskedFor() throws {
    let peer = try Running(
      Programs.built("DropInPeer"), ["fleeting", "100000"], environment: [GroupsRoot.setting])
    #expect(try peer.outcome().status == .exited(0))
  }
}
