import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A queue is read while a worker leaves, whose directory is removed.
@Suite(.blocking) struct LeavingWorkerTests {
  private let meeting: Meeting
  private let working: Subscription
  private let worker: MemberDirectory

  init() throws {
    meeting = try Meeting()
    working = try meeting.container.queue("jobs", of: Int.self).work { _, _ in }
    let home = try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
    worker = try #require(try home.workers().first)
  }

  @Test func aWorkerThatLeavesDuringAListingHasNoClaims() throws {
    #expect(try !worker.contains(.claimed) { _ in true })
    let pause = FaultPause()
    let result = Monitor<Result<Bool, any Error>?>(nil)
    let reader = try Thread("reader") {
      FaultPoints.with([FaultRule(.open, path: "claimed", .pause(pause))]) {
        let found = Result { try worker.contains(.claimed) { _ in true } }
        result.signal { $0 = found }
      }
    }
    try eventually("it is about to list") { pause.isReached }
    working.stop()
    try eventually("the worker has left") { try meeting.names("queues/jobs/workers") == [] }
    pause.open()
    reader.join()
    let found = try #require(result.withLock { $0 })
    #expect(throws: Never.self) { try found.get() }
    #expect((try? found.get()) == false)
  }

  /// Another process may take the worker for dead just before its directory is removed.
  @Test func aWorkerThatHasLeftNeedsNoRemoval() throws {
    #expect(try !worker.removeDeadWorker())
    working.stop()
    try eventually("the worker has left") { try meeting.names("queues/jobs/workers") == [] }
    #expect(try worker.removeDeadWorker())
  }

  /// Each worker looks at a directory that appears, and removes it if its worker is dead.
  @Test func aWorkerThatBeginsIsNotTakenForDead() throws {
    let home = try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
    let pause = FaultPause()
    let made = Monitor<String?>(nil)
    let beginner = try Thread("beginner") {
      FaultPoints.with([FaultRule(.rename, path: "jobs/workers", moment: .after, .pause(pause))]) {
        guard let (worker, presence) = try? home.makeWorker(deadline: nil) else { return }
        made.signal { $0 = worker.escaped }
        presence.release()
      }
    }
    try eventually("its directory is visible") { pause.isReached }
    let visible = try home.workers().filter { $0.escaped != worker.escaped }
    let removed = try visible.map { try $0.removeDeadWorker() }
    pause.open()
    beginner.join()
    #expect(visible.count == 1 && removed == [false])
    #expect(made.withLock { $0 } == visible.first?.escaped)
  }
}
