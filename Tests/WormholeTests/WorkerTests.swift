import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// A worker makes one run at a time, and after each trigger at least one run.
@Suite(.blocking) struct WorkerTests {
  private let worker = Worker(staysOffWatcher: true)
  private let runs = Heard<Int>()

  @Test func triggersDuringARunCauseOneMoreRun() throws {
    let gate = Gate()
    worker.begin { [runs] in
      runs.add(runs.count + 1)
      if runs.count == 1 { gate.pass() }
    }
    worker.trigger()
    try gate.waitForSomebody()
    for _ in 0..<10 { worker.trigger() }
    #expect(runs.all == [1], "one run at a time")
    gate.open()
    try runs.waitForLast(2)
    worker.drain()
    #expect(runs.all == [1, 2])
  }

  /// The second passes on the test's clock: a busy machine may need longer for ten retries.
  @Test func severalRetriesWithinASecondCauseOneRun() {
    let (moments, alarms) = (Heard<Instant>(), Heard<Action>())
    let start = Instant.now
    let clock = Monitor(start)
    let worker = Worker { call in
      call()
    } now: {
      clock.withLock { clock in
        clock = clock + .milliseconds(10)
        return clock
      }
    } ring: { moment, call in
      moments.add(moment)
      alarms.add(Action(call))
    }
    worker.begin { [runs] in runs.add(runs.count + 1) }
    for _ in 0..<10 { worker.retry() }
    #expect(moments.all == [start + .milliseconds(1010)])
    for alarm in alarms.all { alarm.perform() }
    #expect(runs.all == [1])
    worker.retry()
    for alarm in alarms.all.suffix(1) { alarm.perform() }
    #expect(runs.all == [1, 2] && moments.count == 2)
  }

  @Test func aRetryIsMadeAfterASecond() throws {
    worker.begin { [runs] in runs.add(runs.count + 1) }
    let begin = Instant.now
    worker.retry()
    try runs.waitForLast(1)
    #expect(Instant.now - begin >= .seconds(1))
    // An earlier plan runs before a later plan.
    worker.retry()
    try runs.waitForLast(2)
    #expect(runs.all == [1, 2])
  }

  /// The alarm has a thread already, and another thread would have to wake up.
  @Test func theThreadOfTheAlarmMakesTheRun() {
    let (requested, alarms) = (Heard<Int>(), Heard<Action>())
    let worker = Worker { _ in
      requested.add(1)
    } now: {
      .now
    } ring: { _, call in
      alarms.add(Action(call))
    }
    worker.begin { [runs] in runs.add(runs.count + 1) }
    worker.trigger(at: .now + .seconds(3600))
    #expect(runs.count == 0)
    for alarm in alarms.all { alarm.perform() }
    #expect(runs.all == [1])
    #expect(requested.count == 0)
    // A run that is requested already is not made twice.
    worker.trigger()
    worker.trigger(at: .now + .seconds(3600))
    for alarm in alarms.all.suffix(1) { alarm.perform() }
    #expect(runs.all == [1])
    #expect(requested.count == 1)
  }

  @Test func theCallersRunFollowsTheRunInProgress() throws {
    let gate = Gate()
    worker.begin { [runs] in
      if runs.count == 0 { gate.pass() }
      runs.add(runs.count + 1)
    }
    worker.trigger()
    try gate.waitForSomebody()
    let end = Heard<[Int]>()
    let caller = try Thread("caller") { [worker, runs] in
      worker.run()
      end.add(runs.all)
    }
    gate.open()
    caller.join()
    #expect(end.all == [[1, 2]])
  }

  @Test func thereIsNoRunAfterTheEnd() throws {
    let gate = Gate()
    worker.begin { [runs] in
      runs.add(1)
      gate.pass()
    }
    worker.trigger()
    try gate.waitForSomebody()
    worker.trigger()
    worker.trigger(at: .now)
    worker.end()
    gate.open()
    worker.drain()
    worker.trigger()
    worker.run()
    #expect(runs.all == [1])
  }

  /// The run that a thread is to make is made by the caller, and not a second time.
  @Test func aCallersRunReplacesTheScheduledRun() throws {
    let (queue, gate) = (WorkQueue(), Gate())
    let worker = Worker(on: queue, staysOnQueue: true)
    worker.begin { [runs] in runs.add(runs.count + 1) }
    queue.soon { gate.pass() }
    try gate.waitForSomebody()
    worker.trigger()
    worker.run()
    #expect(runs.all == [1])
    gate.open()
    queue.wait {}
    #expect(runs.all == [1])
  }

  /// A single notice proves nothing: its thread may have accepted another listener's task.
  @Test func aRunFollowsItsNoticeOnTheSameThread() throws {
    let folder = try TemporaryDirectory()
    let (notified, follows) = (Monitor<UInt>(0), Heard<Bool>())
    let follower = Worker(on: WorkQueue())
    follower.begin { follows.add(notified.withLock { $0 } == Thread.currentNumber) }
    let watch = try Watcher.shared.watch(folder.descriptor, .created) { _ in
      notified.withLock { $0 = Thread.currentNumber }
      follower.trigger()
    }
    var names = 0
    try eventually("a run on the notifying thread") {
      names += 1
      try folder.write("", to: "\(names)")
      try follows.wait("run \(names)") { $0.count >= names }
      return follows.all.contains(true)
    }
    watch.stop()
    follower.end()
  }
}
