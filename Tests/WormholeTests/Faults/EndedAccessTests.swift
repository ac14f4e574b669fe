import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage

/// Calls through accesses that have ended.
@Suite(.blocking) struct EndedAccessTests {
  /// The enclosing access has not ended, and does not write the paths of the inner one.
  @Test func anEndedAccessInsideAnotherReportsNoMove() throws {
    let scene = try FileScene()
    let coordinator = scene.another("purpose")
    try coordinator.write(scene.path("a")) { path in
      var kept: Coordinator.Access?
      try coordinator.access([.writing(scene.path("b")), .writing(scene.path("c"))]) { access in
        kept = access
        try access.moved(scene.path("b"), to: scene.path("c"))
      }
      let error = try failure { try kept?.moved(scene.path("b"), to: scene.path("c")) }
      #expect(error.code == .refused)
      // The enclosing access writes this path still.
      try kept?.moved(path, to: path + "/d")
    }
  }
}
