import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage

@testable import Wormhole

/// The ends of watches: by a stop, and by the end of the container.
@Suite(.blocking) struct WatchEndTests {
  private let gone = WormholeError(.notAContainer, "watch", "x", because: "it is gone")

  /// The container ends after the watch has joined its sources and before the owner retains it.
  @Test func aWatchThatFailsBeforeItIsKeptHasEndedWithTheReason() throws {
    let (heard, all) = (Heard<String>(), ActiveSubscriptions("x"))
    let listener = Listener(seen: [:]) { finding in
      if case .failed(let error) = finding.stamp { heard.add(error.reason) }
    }
    defer { listener.stop() }
    try listener.begin()
    listener.fail(gone)
    try heard.waitForLast("it is gone")
    let subscription = try listener.goOn(in: all)
    try #require(subscription.hasEnded)
    #expect(subscription.wait()?.reason == "it is gone")
    #expect(all.count == 0)
    #expect(heard.count == 1)
  }

  @Test func theFirstReasonOfAnEndCounts() throws {
    let all = ActiveSubscriptions("x")
    let stopped = Listener(seen: [:]) { _ in }
    let first = try stopped.goOn(in: all)
    first.stop()
    first.end(gone)
    #expect(first.hasEnded && first.wait() == nil)
    let failed = Listener(seen: [:]) { _ in }
    let second = try failed.goOn(in: all)
    second.end(gone)
    second.stop()
    #expect(second.hasEnded && second.wait()?.reason == "it is gone")
    #expect(all.count == 0)
  }

  /// Ten rounds, because the call may be added to the queue a little later than the witness is
  /// notified.
  @Test func aCallThatStillWaitsForItsQueueIsNotMadeAfterTheStop() throws {
    let meeting = try Meeting()
    let number = meeting.container.channel("number", of: Int.self)
    let (heard, witnessed) = (Heard<Int?>(), Heard<Int?>())
    let queue = DispatchQueue(label: "busy")
    let witness = try number.watch(initial: false) { witnessed.add($0.value) }
    for round in 1...10 {
      let watch = try number.watch(initial: false, on: queue) { heard.add($0.value) }
      queue.suspend()
      defer { queue.resume() }
      try number.put(round)
      try witnessed.waitForLast(round)
      watch.stop()
    }
    queue.sync {}
    #expect(heard.all == [])
    witness.stop()
  }
}

/// The watcher's state machine at its end, and with many changed names.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct WatchMachineEndTests {
  /// The name of an action, as text.
  private func word(_ action: WatchMachine<Int>.Action) -> String {
    switch action {
    case .none: "none"
    case .look: "look"
    case .end(let waiter): "end \(waiter)"
    }
  }

  @Test func afterTheFinalErrorNoEarlierChangeIsRead() {
    var machine = WatchMachine<Int>(hasHandler: true)
    #expect(word(machine.change("a")) == "look")
    #expect(word(machine.change("b")) == "none")
    #expect(machine.nextName() == "a")
    // The container ends during the reading.
    #expect(word(machine.fail()) == "none")
    #expect(word(machine.fail()) == "none")
    #expect(word(machine.endLook()) == "look")
    #expect(machine.takeFailure() == true)
    #expect(machine.takeFailure() == false)
    #expect(machine.nextName() == nil)
    #expect(word(machine.endLook()) == "none")
    #expect(word(machine.change("c")) == "none")
    #expect(word(machine.wait(7)) == "end 7")
    #expect(machine.signals == 2)
  }

  /// The names that have been read are removed from the list during the reading, and none of the
  /// names that wait.
  @Test func aLongBacklogIsReadInOrderWhileItGrows() {
    var machine = WatchMachine<Int>(hasHandler: true)
    for number in 0..<200 { _ = machine.change("\(number)") }
    var read: [String] = []
    while let name = machine.nextName() {
      read.append(name)
      guard read.count <= 100 else { continue }
      // A name that still waits, and the name just read.
      _ = machine.change("199")
      _ = machine.change(name)
    }
    #expect(read == (Array(0..<200) + Array(0..<100)).map { "\($0)" })
    #expect(machine.signals == 400)
  }
}
