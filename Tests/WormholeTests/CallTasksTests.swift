import Testing
import WormholeSyscalls

@testable import Wormhole

/// The tasks of the asynchronous calls of one subscription.
@Suite struct CallTasksTests {
  /// The arrival was assigned to the closure just before the stop.
  @Test func aTaskThatBeginsAfterTheCancellationIsCancelled() async {
    let (tasks, wasCancelled) = (CallTasks(), Monitor(false))
    tasks.cancel()
    tasks.begin {
      for _ in 0..<100_000 where !Task.isCancelled { await Task.yield() }
      wasCancelled.withLock { $0 = Task.isCancelled }
    }
    await tasks.finish()
    #expect(wasCancelled.withLock { $0 })
  }

  @Test func theEndOfAllTasksIsAwaited() async {
    let (tasks, count) = (CallTasks(), Monitor(0))
    for _ in 0..<3 {
      tasks.begin {
        for _ in 0..<50 { await Task.yield() }
        count.withLock { $0 += 1 }
      }
    }
    await tasks.finish()
    #expect(count.withLock { $0 } == 3)
  }

  /// Cancelled from inside, the tasks have work left to do.
  @Test func noTaskCancelsOrAwaitsItsOwnGroup() async {
    let (tasks, wasCancelled) = (CallTasks(), Monitor<Bool?>(nil))
    tasks.begin {
      tasks.cancel()
      await tasks.finish()
      wasCancelled.withLock { $0 = Task.isCancelled }
    }
    await tasks.finish()
    #expect(wasCancelled.withLock { $0 } == false)
  }
}
