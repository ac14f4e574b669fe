import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Named locks, in the same way as in the command.
@Suite struct NamedLockTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }
  private var till: Lock { meeting.container.lock("till") }

  init() throws { meeting = try Meeting() }

  @Test(.blocking) func oneAtATimeHoldsIt() throws {
    let other = try meeting.another()
    let inside = Monitor((now: 0, most: 0, all: 0))
    let threads = try (0..<8).map { index in
      try Thread("holder") {
        for _ in 0..<50 {
          try? (index.isMultiple(of: 2) ? container : other).lock("till").hold {
            inside.withLock { inside in
              inside.now += 1
              inside.most = max(inside.most, inside.now)
            }
            inside.withLock { inside in
              inside.now -= 1
              inside.all += 1
            }
          }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(inside.withLock { $0.most } == 1)
    #expect(inside.withLock { $0.all } == 400)
  }

  @Test(.blocking) func theCommandWaitsForTheSameLock() throws {
    let wormhole = Programs.built("wormhole")
    let command = ["--container", meeting.path, "lock", "till", "--timeout", "0.1", "--", "true"]
    let outcome = try till.hold { try run(wormhole, command) }
    #expect(outcome.status == .exited(75), "\(outcome.errors)")
    #expect(outcome.errors.contains("'till'"), "\(outcome.errors)")
    #expect(try run(wormhole, command).status == .exited(0))
  }

  @Test(.blocking) func insideAllWorksButASecondLock() throws {
    let number = container.channel("number", of: Int.self)
    let value = try till.hold {
      try number.put(1)
      try number.update { $0 = 2 }
      try container.defaults("app").set(3, forKey: "three")
      try container.peer("watch").send(4, .quick())
      for name in ["till", "drawer"] {
        let error = try failure { try container.lock(name).hold {} }
        #expect(error.code == .nested)
        #expect(error.reason == "the calling thread already holds lock 'till'")
      }
      return try number.value
    }
    #expect(value == 2)
    let inUpdate = try failure {
      try number.update { _ in try container.lock("drawer").hold {} }
    }
    #expect(inUpdate.code == .nested)
    // It is over.
    try container.lock("drawer").hold {}
  }

  @Test(.blocking) func whatTheBodyThrowsComesThroughAndTheLockIsFree() throws {
    #expect(throws: Missing.self) { try till.hold { throw Missing() } }
    #expect(try till.hold(takeOverAfter: nil) { $0 } == 1)
  }

  @Test(.blocking) func whoeverWaitsTooLongIsToldWhoHasIt() throws {
    let (gate, other) = (Gate(), try meeting.another())
    let thread = try Thread("holder") { try? other.lock("till").hold { gate.pass() } }
    try gate.waitForSomebody()
    let error = try failure { try till.hold(within: .milliseconds(20)) {} }
    #expect(error.code == .timedOut)
    #expect(error.subject == "till")
    #expect(error.reason.contains("process \(Processes.current)"), "\(error)")
    gate.open()
    thread.join()
    try till.hold {}
  }

  @Test(.blocking) func whoeverAsksToPassTheStoppedWaitsForThat() throws {
    let stopped = try Running(.holdNamedLock(meeting.path, "till"))
    try stopped.waitUntilStopped()
    let till = try meeting.another { $0.timeout = .seconds(3) }.lock("till")
    #expect(try till.hold(takeOverAfter: .milliseconds(3500)) { $0 } == 2)
    try stopped.child.send(.go)
    #expect(try stopped.outcome().output == "superseded\n")
  }

  /// The caller needs to know what the body has left undone.
  @Test(.blocking) func theErrorOfABodyComesBeforeThatOfATakeover() throws {
    let stopped = try Running(.holdNamedLock(meeting.path, "refusing"))
    try stopped.waitUntilStopped()
    let lock = try meeting.another { $0.timeout = patience }.lock("refusing")
    #expect(try lock.hold(takeOverAfter: .milliseconds(100)) { $0 } == 2)
    try stopped.child.send(.go)
    #expect(try stopped.outcome().output == "refused\n")
  }

  // MARK: For tasks

  @Test func aTaskHoldsItWhileItWaitsForOthers() async throws {
    let other = try meeting.another()
    let number = container.channel("number", of: Int.self)
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let (ended, ending) = AsyncStream<Void>.makeStream()
    let holding = Task {
      try await till.hold {
        try await number.put(1)
        beginning.yield()
        for await _ in ended { break }
        let value = try await number.update { $0 = 2 }
        do {
          try await container.lock("drawer").hold {}
          Issue.record("it is refused")
        } catch WormholeError.Code.nested {
        }
        return value
      }
    }
    for await _ in began { break }
    let waiting = (0..<100).map { _ in
      Task { try await other.lock("till").hold { try number.value } }
    }
    let tooLate = Task { try await other.lock("till").hold(within: .milliseconds(1)) {} }
    waiting[0].cancel()
    waiting[99].cancel()
    for index in [0, 99] {
      await #expect(throws: WormholeError.self) { try await waiting[index].value }
    }
    do {
      try await tooLate.value
      Issue.record("it was too late")
    } catch WormholeError.Code.timedOut {
    }
    // All of these calls ended while the lock was held.
    #expect(try number.value == 1)
    ending.yield()
    #expect(try await holding.value == 2)
    for task in waiting[1..<99] { #expect(try await task.value == 2) }
  }

  @Test func aTaskThatOutlivesTheHoldMayTakeOne() async throws {
    let (ended, ending) = AsyncStream<Void>.makeStream()
    let later = try await till.hold {
      Task {
        for await _ in ended { break }
        try await container.lock("drawer").hold {}
      }
    }
    ending.yield()
    try await later.value
  }

  /// No thread can be started.
  ///
  /// The task's own thread must not hold the lock, because this thread has to release it.
  @Test(.timeLimit(.minutes(1))) func withoutAThreadATaskIsToldSo() async throws {
    let lanes = CallLanes(CallThreads(most: 1) { _ throws(Errno) in throw .wouldBlock })
    for _ in 0..<2 {
      let stay = LockSession("till", CancellationFlag()) { stay in
        stay.enter(1)
        return false
      }
      lanes.add(ObjectIdentifier(Lane.one), until: .distantFuture) {
        stay.run()
      } expire: {
        stay.expire()
      }
      let error = try await failure { _ = try await stay.generation() }
      #expect(error.code == .exhausted && error.subject == "till")
    }
  }

  private final class Lane: Sendable { static let one = Lane() }

  /// Runs the jobs of one task on the calling thread, which so knows when the task waits.
  private final class JobsOfOneTask: TaskExecutor {
    private let jobs = Monitor<[UnownedJob]>([])

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      jobs.withLock { $0.append(job) }
    }

    /// Runs jobs until the task waits or has ended.
    func run() {
      while let job = jobs.withLock({ $0.popLast() }) {
        job.runSynchronously(on: asUnownedTaskExecutor())
      }
    }
  }

  /// The task waits behind other tasks of this process, so no thread waits for the lock yet.
  @Test(.blocking) func aCancelledTaskDoesNotWaitForTheTasksAhead() throws {
    let stay = LockSession("till", CancellationFlag()) { _ in false }
    let (jobs, ends) = (JobsOfOneTask(), Heard<WormholeError.Code?>())
    let thread = try Thread("task") {
      let waiting = Task(executorPreference: jobs) {
        do {
          _ = try await stay.generation()
          ends.add(nil)
        } catch {
          ends.add((error as? WormholeError)?.code)
        }
      }
      jobs.run()
      // The task waits now.
      waiting.cancel()
      jobs.run()
    }
    thread.join()
    #expect(ends.all == [.cancelled])
  }

  /// The lock is granted when the task has decided to leave, and is released at once.
  @Test(.timeLimit(.minutes(1))) func aTaskThatLeavesDoesNotLearnThatItGotTheLock() async throws {
    let gate = Monitor(false)
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let stay = LockSession("till", CancellationFlag()) { stay in
      beginning.yield()
      let _: Void? = gate.wait(until: nil) { $0 ? () : nil }
      stay.enter(1)
      return false
    }
    try Thread("holder") { stay.run() }.detach()
    for await _ in began { break }
    let waiting = Task { _ = try await stay.generation() }
    waiting.cancel()
    let first = try await failure { try await waiting.value }
    #expect(first.code == .cancelled)
    gate.signal { $0 = true }
    #expect(try await stay.leave() == false)
    let second = try await failure { _ = try await stay.generation() }
    #expect(second.code == .cancelled)
  }

  @Test func aTaskThatIsCancelledInsideEndsAsItLikes() async throws {
    let (began, beginning) = AsyncStream<Void>.makeStream()
    let holding = Task {
      try await till.hold {
        beginning.yield()
        while !Task.isCancelled { await Task.yield() }
        return "done"
      }
    }
    for await _ in began { break }
    holding.cancel()
    #expect(try await holding.value == "done")
    try await till.hold {}
  }
}
