import Foundation
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Watching with closures.
@Suite(.blocking) struct WatchTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }
  private var number: Channel<Int> { container.channel("number") }
  private let heard = Heard<Int?>()

  init() throws { meeting = try Meeting() }

  @Test func thePresentValueComesFirstIfItIsAskedFor() throws {
    try number.put(1)
    let later = Heard<Int?>()
    let watches = [
      try number.watch { heard.add($0.value) },
      try number.watch(initial: false) { later.add($0.value) },
    ]
    try heard.waitForLast(1)
    try number.put(2)
    try heard.waitForLast(2)
    try later.waitForLast(2)
    #expect(heard.all == [1, 2])
    #expect(later.all == [2])
    for watch in watches { watch.stop() }
  }

  @Test func aChannelThatWasNeverWrittenIsSilent() throws {
    let watch = try number.watch { heard.add($0.value) }
    #expect(try container.channels() == [])
    try number.put(1)
    try heard.waitForLast(1)
    #expect(heard.all == [1])
    watch.stop()
  }

  @Test func theSameValueAgainAndAClearAreHeard() throws {
    let versions = Heard<Int>()
    let watch = try number.watch {
      heard.add($0.value)
      versions.add($0.version)
    }
    for version in 1...3 {
      try number.put(7)
      try versions.waitForLast(version)
    }
    try number.clear()
    try versions.waitForLast(4)
    #expect(heard.all == [7, 7, 7, nil])
    watch.stop()
  }

  @Test func anotherProcessIsHeardAndItsLastIsNotMissed() throws {
    let watch = try number.watch { heard.add($0.value) }
    let outcome = try run(.put(meeting.path, "number", 1...500))
    #expect(outcome.status == .exited(0))
    try heard.waitForLast(500)
    let values = heard.all.compactMap(\.self)
    #expect(values == values.sorted(), "never an older one after a newer one")
    watch.stop()
  }

  @Test func aSlowWatcherHoldsUpNobodyAndHearsTheLast() throws {
    let gate = Gate()
    let slow = Heard<Int?>()
    let watches = [
      try number.watch {
        slow.add($0.value)
        gate.pass()
      },
      try number.watch { heard.add($0.value) },
    ]
    try number.put(0)
    try gate.waitForSomebody()
    for value in 1...20 { try number.put(value) }
    try heard.waitForLast(20)
    #expect(slow.all == [0])
    gate.open()
    try slow.waitForLast(20)
    #expect(slow.all == [0, 20])
    for watch in watches { watch.stop() }
  }

  // MARK: Stopping

  @Test func onceStopHasReturnedNothingIsHeard() throws {
    let watch = try number.watch { heard.add($0.value) }
    let other = Heard<Int?>()
    let witness = try number.watch { other.add($0.value) }
    try number.put(1)
    try heard.waitForLast(1)
    watch.stop()
    watch.stop()
    try number.put(2)
    try other.waitForLast(2)
    #expect(heard.all == [1])
    witness.stop()
  }

  @Test func stopWaitsForTheCallUnderWay() throws {
    let (gate, stopped) = (Gate(), Heard<Int>())
    let watch = try number.watch { snapshot in
      gate.pass()
      heard.add(snapshot.value)
    }
    try number.put(1)
    try gate.waitForSomebody()
    let thread = try Thread("stopper") {
      watch.stop()
      stopped.add(heard.count)
    }
    // By now no further value can arrive, and the running call has not ended.
    try eventually("it is being stopped") { meeting.container.watchers == 0 }
    #expect(stopped.count == 0)
    gate.open()
    thread.join()
    #expect(stopped.all == [1], "the call had ended when stop returned")
  }

  @Test func aClosureMayStopItsOwnWatch() throws {
    let box = Monitor<Subscription?>(nil)
    let watch = try number.watch { snapshot in
      let own = box.wait(until: .now + patience) { $0 }
      own?.stop()
      heard.add(snapshot.value)
    }
    box.signal { $0 = watch }
    try number.put(1)
    try heard.waitForLast(1)
    let witness = Heard<Int?>()
    let other = try number.watch { witness.add($0.value) }
    try number.put(2)
    try witness.waitForLast(2)
    #expect(heard.all == [1])
    box.signal { $0 = nil }
    other.stop()
  }

  /// A program need not retain a watch, nor the instance that has started the watch.
  @Test func aWatchGoesOnWhenNobodyKeepsIt() throws {
    let all = Heard<Int?>()
    let posts = Heard<Int>()
    var other: SharedContainer? = try meeting.another()
    weak let opening = other
    _ = try other?.channel("number", of: Int.self).watch { heard.add($0.value) }
    _ = try other?.watch(prefix: "num", of: Int.self) { all.add($0.value) }
    _ = try other?.notice("ready").watch { posts.add(1) }
    other = nil
    for value in 1...3 {
      try number.put(value)
      try heard.waitForLast(value)
      try all.waitForLast(value)
    }
    try container.notice("ready").post()
    try posts.waitForLast(1)
    // As long as the watch of the directory, which ends these watches.
    let kept = opening
    #expect(kept == nil || kept?.subscriptions.count == 3)
  }

  @Test func whatHasEndedIsNotKept() throws {
    for round in 0..<1000 {
      let watch = try container.channel("\(round % 10)", of: Int.self).watch { _ in }
      #expect(container.subscriptions.count == 1)
      watch.stop()
    }
    #expect(container.subscriptions.count == 0)
    #expect(container.watchers == 0)
  }

  @Test func closingEndsAllThatGoesOn() throws {
    let other = try meeting.another()
    let (gate, closed) = (Gate(), Heard<Int>())
    _ = try other.channel("number", of: Int.self).watch { snapshot in
      gate.pass()
      heard.add(snapshot.value)
    }
    _ = try other.watch(prefix: "num", of: Int.self) { heard.add($0.value) }
    _ = try other.watchMembers { _ in }
    let kept = try other.notice("ready").watch {}
    try number.put(1)
    try gate.waitForSomebody()
    let thread = try Thread("closer") {
      other.close()
      closed.add(heard.count)
    }
    #expect(closed.count == 0, "a call is under way")
    gate.open()
    thread.join()
    let count = heard.count
    #expect(closed.all == [count])
    let witness = Heard<Int?>()
    let watch = try number.watch { witness.add($0.value) }
    try number.put(2)
    try witness.waitForLast(2)
    #expect(heard.count == count)
    #expect(other.subscriptions.count == 0)
    #expect(try failure { _ = try other.notice("ready").watch {} }.code == .cancelled)
    // Calls without a subscription work as before.
    try other.channel("number").put(3)
    #expect(try other.channel("number", of: Int.self).value == 3)
    kept.stop()
    other.close()
    watch.stop()
  }

  @Test func closuresRunOnTheQueueOfTheCallersChoice() throws {
    let key = DispatchSpecificKey<String>()
    let queue = DispatchQueue(label: "mine")
    queue.setSpecific(key: key, value: "mine")
    let names = Heard<String?>()
    let watch = try number.watch(on: queue) { _ in
      names.add(DispatchQueue.getSpecific(key: key))
    }
    try number.put(1)
    try names.waitForLast("mine")
    // A stop from the very same queue does not wait for itself.
    queue.sync { watch.stop() }
  }

  // MARK: Errors

  @Test func aValueOfAnotherTypeIsAFailureAndTheWatchGoesOn() throws {
    let failures = Heard<WormholeError.Code>()
    let watch = try number.watch {
      heard.add($0.value)
    } failure: {
      failures.add($0.code)
    }
    try container.channel("number").put("text")
    try failures.waitForLast(.typeMismatch)
    try number.put(5)
    try heard.waitForLast(5)
    #expect(heard.all == [5])
    #expect(failures.all == [.typeMismatch])
    watch.stop()
  }

  /// A damaged file and the previous value in its place are reported once each, not at every read.
  @Test func damageIsHeardOnceAndSoIsWhatMendsIt() throws {
    try number.put(1)
    let failures = Heard<WormholeError.Code>()
    let watch = try number.watch {
      heard.add($0.value)
    } failure: {
      failures.add($0.code)
    }
    try heard.waitForLast(1)
    let folder = try Descriptor.open(
      path: meeting.path + "/channels/number", [.readOnly, .directory])
    try? folder.unlink("kept.plist")
    for _ in 0..<2 {
      try folder.open("foreign", [.writeOnly, .create], mode: 0o600).write("no list")
      try folder.rename("foreign", to: folder, "value.plist")
    }
    try failures.waitForLast(.damaged)
    try number.put(2)
    try heard.waitForLast(2)
    #expect(heard.all == [1, 2])
    #expect(failures.all == [.damaged])
    watch.stop()
  }

  @Test func failuresThatNobodyTakesGoToTheLog() throws {
    let words = Heard<String>()
    let other = try meeting.another { $0.log = { words.add($0.text) } }
    let watch = try other.channel("number", of: Int.self).watch { heard.add($0.value) }
    try number.put(1)
    try heard.waitForLast(1)
    try container.channel("number").put("text")
    try words.waitForLast("cannot read channel 'number': a string where Int is expected")
    watch.stop()
  }

  @Test func aNameThatCannotBeUsedCannotBeWatched() throws {
    let error = try failure { _ = try container.channel("", of: Int.self).watch { _ in } }
    #expect(error.code == .invalidName)
  }

  // MARK: Several

  @Test func severalChannelsAreWatchedByOneClosure() throws {
    let heard = Heard<[String: Int?]>()
    let channels = ["a", "b", "c"].map { container.channel($0, of: Int.self) }
    try channels[0].put(1)
    let watch = try container.watch(channels) { heard.add([$0.channel: $0.value]) }
    try heard.waitForLast(["a": 1])
    try channels[2].put(3)
    try heard.waitForLast(["c": 3])
    try channels[0].clear()
    try heard.waitForLast(["a": nil])
    watch.stop()
  }

  @Test func aPrefixIsWatchedAlsoForChannelsToCome() throws {
    let heard = Heard<[String: Int?]>()
    let later = Heard<[String: Int?]>()
    try container.channel("seat.1").put(1)
    try container.channel("other").put(9)
    let watches = [
      try container.watch(prefix: "seat.", of: Int.self) { heard.add([$0.channel: $0.value]) },
      try container.watch(prefix: "seat.", of: Int.self, initial: false) {
        later.add([$0.channel: $0.value])
      },
    ]
    try heard.waitForLast(["seat.1": 1])
    try container.channel("seat.2").put(2)
    try heard.waitForLast(["seat.2": 2])
    try later.waitForLast(["seat.2": 2])
    try container.channel("other").put(8)
    try container.channel("seat.1").put(3)
    try heard.waitForLast(["seat.1": 3])
    try later.waitForLast(["seat.1": 3])
    #expect(heard.count == 3)
    #expect(later.count == 2)
    for watch in watches { watch.stop() }
  }

  /// Names are bytes: two names that look the same, and are equal as strings, are two names.
  @Test func namesThatOnlyLookTheSameAreTwo() throws {
    let names = ["caf\u{E9}", "cafe\u{301}"]
    let heard = Heard<[UInt8]>()
    let channels = names.map { container.channel($0, of: Int.self) }
    let watches = [
      try container.watch(channels) { heard.add([UInt8($0.value ?? 0)] + $0.channel.utf8) },
      try container.watch(prefix: "caf", of: Int.self) {
        heard.add([UInt8(($0.value ?? 0) + 10)] + $0.channel.utf8)
      },
      try container.watch(prefix: "cafe", of: Int.self) {
        heard.add([UInt8(($0.value ?? 0) + 20)] + $0.channel.utf8)
      },
    ]
    for (number, channel) in channels.enumerated() { try channel.put(number + 1) }
    let expected = [
      [1] + Array(names[0].utf8), [2] + Array(names[1].utf8), [11] + Array(names[0].utf8),
      [12] + Array(names[1].utf8), [22] + Array(names[1].utf8),
    ]
    try heard.wait("all") { $0.count >= expected.count }
    #expect(Set(heard.all) == Set(expected))
    #expect(try container.channels(prefix: "cafe").map { Array($0.utf8) } == [Array(names[1].utf8)])
    for watch in watches { watch.stop() }
  }

  /// If one container's watchers have to wait, as for a file system, another container's continue.
  @Test func whatHoldsUpOneContainersWatchersHoldsUpNoOthers() throws {
    let (met, goesOn) = (Heard<Int>(), Monitor(false))
    let group = try Meeting { $0.sharing = .group }
    try group.container.channel("n").put(1)
    try OpenDirectory(group.folder("channels/n")).descriptor.setMode(0o2777)
    // The log's callback does not return from the report of the refusal.
    let stuck = try group.another {
      $0.sharing = .group
      $0.log = { entry in
        guard entry.level == .error else { return }
        met.add(1)
        let _: Void? = goesOn.wait(until: nil) { $0 ? () : nil }
      }
    }
    defer { goesOn.signal { $0 = true } }
    try stuck.watch(prefix: "", of: Int.self) { _ in }
    try met.wait("it is held up") { !$0.isEmpty }
    let watch = try container.watch(prefix: "", of: Int.self) { heard.add($0.value) }
    try number.put(1)
    try heard.waitForLast(1)
    watch.stop()
  }

  @Test func aChannelRemovedByHandIsWatchedOn() throws {
    try number.put(1)
    let watch = try number.watch { heard.add($0.value) }
    try heard.waitForLast(1)
    _ = try run("rm", ["-r", meeting.path + "/channels/number"])
    try eventually("a put is heard") {
      try number.put(2)
      return heard.all.last == 2
    }
    watch.stop()
  }
}
