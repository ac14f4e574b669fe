import Testing
import Wormhole

/// Accesses of tasks.
@Suite struct CoordinationTaskTests {
  private let scene: FileScene

  init() throws { scene = try FileScene() }

  @Test func aTaskHasAnAccessWhileItWaitsForOthers() async throws {
    let value = try await scene.another().access([.writing(scene.path("a"))]) { access in
      await Task.yield()
      #expect(access.stands)
      let isFree = try await Task { try scene.isFree(.reading(scene.path("b"))) }.value
      #expect(isFree)
      return 3
    }
    #expect(value == 3)
    #expect(try scene.leftovers() == [])
  }
}
