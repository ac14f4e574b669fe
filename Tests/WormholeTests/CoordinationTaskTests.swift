import Testing
import Wormhole
import WormholeSyscalls

/// Accesses of tasks.
@Suite struct CoordinationTaskTests {
  private let scene: FileScene

  /// No process is suspended here, and on a busy machine each may be starved.
  init() throws { scene = try FileScene(lease: .seconds(10)) }

  @Test func aTaskHasAnAccessWhileItWaitsForOthers() async throws {
    let value = try await scene.another().access([.writing(scene.path("a"))]) { access in
      await Task.yield()
      #expect(access.isValid)
      let isFree = try await Task { try scene.isFree(.reading(scene.path("b"))) }.value
      #expect(isFree)
      return 3
    }
    #expect(value == 3)
    #expect(try scene.leftovers() == [])
  }

  /// The calls of a task's access run on other threads, which do not know the task.
  @Test func whatATaskBeginsInsideOfItsAccessIsSeen() async throws {
    let path = scene.path("a")
    let error = await #expect(throws: WormholeError.self) {
      try await scene.another().access([.writing(path)]) { _ in
        try await scene.another().access([.reading(path)], within: .seconds(10)) { _ in
          await Task.yield()
        }
      }
    }
    #expect(error?.code == .nested)
    var writer: Thread?
    try await scene.another().access([.reading(path)]) { _ in
      writer = try Thread("writer") { try? scene.another().write(path) { _ in } }
      try await eventuallyAsync("it waits") { try scene.names(in: .waiting).count == 1 }
      try await scene.another().access([.reading(path)], within: .seconds(10)) { _ in
        await Task.yield()
      }
    }
    writer?.join()
    #expect(try scene.leftovers() == [])
  }

  @Test func aTaskSaysWhatItHasMoved() async throws {
    let (heard, told) = AsyncStream.makeStream(of: String?.self)
    var presenter = Coordinator.Presenter()
    presenter.didMove = {
      told.yield($0.to)
      told.finish()
    }
    let subscription = try scene.another().present(scene.path("a"), as: presenter)
    let paths = [scene.path("a"), scene.path("b")]
    try await scene.another().access(paths.map { .writing($0) }) { access in
      try await access.moved(paths[0], to: paths[1])
    }
    for await path in heard { #expect(path == paths[1]) }
    subscription.stop()
  }
}
