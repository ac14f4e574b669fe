import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Queues and watchers that are never idle retain no more than their waiting entries.
@Suite(.blocking) struct PilingUpTests {
  private final class Burden: Sendable {
    static let one = Burden()
    static let other = Burden()
  }

  /// One thread, and always a waiting call.
  @Test func aCallThatWasMadeIsNotKept() throws {
    let threads = CallThreads(most: 1)
    let (first, second, third) = (Gate(), Gate(), Heard<Int>())
    weak let kept = add(to: threads) { first.pass() }
    threads.add { second.pass() }
    threads.add { third.add(3) }
    try first.waitForSomebody()
    #expect(kept != nil)
    first.open()
    try second.waitForSomebody()
    #expect(third.count == 0, "somebody waits")
    #expect(kept == nil)
    second.open()
    try third.waitForLast(3)
  }

  /// Returns an object that only the call retains.
  private func add(
    to threads: CallThreads, _ body: @escaping @Sendable () -> Void
  ) -> Burden {
    let burden = Burden()
    threads.add { withExtendedLifetime(burden) { body() } }
    return burden
  }

  @Test func callsAreMadeInTheirOrder() throws {
    let threads = CallThreads(most: 1)
    let (gate, heard) = (Gate(), Heard<Int>())
    threads.add { gate.pass() }
    try gate.waitForSomebody()
    for number in 0..<200 {
      threads.add {
        heard.add(number)
        if number < 100 { threads.add { heard.add(number + 200) } }
      }
    }
    gate.open()
    try heard.wait("all") { $0.count == 300 }
    #expect(heard.all == Array(0..<300))
  }

  /// Every waiting call has a deadline, and a single alarm serves all calls.
  @Test func manyThatWaitInALaneSetOneAlarm() throws {
    let (clock, queue) = (CountedClock(), WorkQueue())
    let alarms = clock.alarms
    let lanes = CallLanes(
      CallThreads(most: 1), Worker(on: queue, staysOnQueue: true, MailTime(moved: clock)))
    // The alarm's call makes the run on the queue.
    let ring = { @Sendable (index: Int) in
      alarms.all[index].perform()
      queue.wait {}
    }
    let (gate, late, made) = (Gate(), Heard<Int>(), Heard<Int>())
    let lane = ObjectIdentifier(Burden.one)
    let add = { @Sendable (number: Int, deadline: Instant) in
      lanes.add(lane, until: deadline) {
        made.add(number)
      } expire: {
        late.add(number)
      }
    }
    lanes.add(lane, until: .now) {
      gate.pass()
    } expire: {
      late.add(0)
    }
    try gate.waitForSomebody()
    let soon = Instant.now + .milliseconds(1)
    for number in 1...100 { add(number, soon + .seconds(100)) }
    #expect(alarms.count == 1, "for the first of them")
    add(101, soon)
    #expect(alarms.count == 2, "for an earlier one")
    try eventually("its deadline has passed") { Instant.now >= soon }
    ring(1)
    #expect(late.all == [101])
    #expect(alarms.count == 2, "the clock is set for the next already")
    gate.open()
    try made.wait("the others have their turn") { $0 == Array(1...100) }
    // No call is left to wake.
    ring(0)
    #expect(alarms.count == 2)
    #expect(late.all == [101])
  }

  /// The only alarm is set for the call with the earlier deadline.
  @Test func theLaterDeadlineOfAnotherLaneIsNotForgotten() throws {
    let (clock, queue) = (CountedClock(), WorkQueue())
    let alarms = clock.alarms
    let lanes = CallLanes(
      CallThreads(most: 2), Worker(on: queue, staysOnQueue: true, MailTime(moved: clock)))
    let (gate, late, made) = (Gate(), Heard<String>(), Heard<String>())
    let soon = Instant.now + .milliseconds(1)
    for (lane, name, deadline) in [
      (Burden.one, "one", soon), (Burden.other, "other", soon + .seconds(100)),
    ] {
      lanes.add(ObjectIdentifier(lane), until: deadline) {
        gate.pass()
      } expire: {
        late.add("the first of \(name)")
      }
      lanes.add(ObjectIdentifier(lane), until: deadline) {
        made.add(name)
      } expire: {
        late.add(name)
      }
    }
    #expect(alarms.count == 1)
    try eventually("the earlier deadline has passed") { Instant.now >= soon }
    // The alarm's call makes the run on the queue.
    alarms.all[0].perform()
    queue.wait {}
    #expect(late.all == ["one"])
    #expect(alarms.count == 2, "the clock is set for the later deadline")
    gate.open()
    try made.wait("the other has its turn") { $0 == ["other"] }
    #expect(late.all == ["one"])
  }

  /// A clock whose alarms the test rings.
  private final class CountedClock: MailClock {
    let alarms = Heard<Action>()
    var present: Instant { .now }
    var sinceBoot: Int64 { Clocks.sinceBoot }
    func ring(at moment: Instant, _ body: @escaping @Sendable () -> Void) {
      alarms.add(Action(body))
    }
  }

  /// Channels are made and removed under names that are never used again.
  @Test func aWatcherOfAPrefixForgetsWhatHasGone() throws {
    let meeting = try Meeting()
    let heard = Heard<String>()
    let watch = try meeting.container.watch(prefix: "", of: Int.self) {
      heard.add("\($0.channel) \($0.value ?? 0)")
    }
    let listener = try #require(watch.one as? Listener)
    for number in 1...30 {
      let name = "n\(number)"
      try meeting.container.channel(name).put(number)
      try heard.waitForLast("\(name) \(number)")
      try meeting.container.removeChannel(name)
      try heard.waitForLast("\(name) 0")
      try eventually("it is left") { meeting.container.watchers == 0 }
    }
    let names = Mirror(reflecting: listener).descendant("state", "state", "machine", "names")
    #expect(try #require(names as? [Any]).count < 20)
    watch.stop()
  }

  /// The change notice arrives while the loss of the name is being read.
  @Test func aNameThatChangesWhileItsSourceIsLeftIsForgotten() throws {
    let gate = Gate()
    let listener = Listener(seen: [:]) { _ in }
    defer { listener.stop() }
    for number in 1...30 {
      let (name, left) = ("n\(number)", Monitor(false))
      listener.join(
        name,
        ChangeSource(
          look: { [weak listener] in
            listener?.change(name)
            return WatchResult(name: name, stamp: .nothing)
          }, leave: { left.withLock { $0 = true } }))
      listener.leaveOnceGone(name)
      try eventually("it is left") { left.withLock { $0 } }
    }
    // The listener reads the names in the order of their notices: 'last' after all others.
    listener.join(
      "last",
      ChangeSource(
        look: {
          gate.pass()
          return WatchResult(name: "last", stamp: .nothing)
        }, leave: {}))
    listener.change("last")
    try gate.waitForSomebody()
    let names = Mirror(reflecting: listener).descendant("state", "state", "machine", "names")
    #expect(try #require(names as? [Any]).count < 20)
    gate.open()
  }

  /// A feed has counted the listener among its own before the listener leaves it, or a reading that
  /// failed is repeated.
  @Test func aNoticeAfterTheSourceWasLeftKeepsNoName() throws {
    let heard = Heard<String>()
    let number = Monitor(0)
    let listener = Listener(seen: [:]) { _ in heard.add("\(number.withLock { $0 })") }
    defer { listener.stop() }
    listener.join(
      "mark",
      ChangeSource(
        look: { WatchResult(name: "mark", stamp: .posted(number.withLock { $0 })) }, leave: {}))
    for round in 1...30 {
      number.withLock { $0 = round }
      listener.change("n\(round)")
      listener.change("mark")
      try heard.waitForLast("\(round)")
    }
    let names = Mirror(reflecting: listener).descendant("state", "state", "machine", "names")
    #expect(try #require(names as? [Any]).count < 20)
  }

  /// A watch without an initial call begins while a notice of an earlier change arrives.
  @Test func aNoticeBeforeTheSourceIsThereMakesNoKnownValueNews() throws {
    let known = Stamp.version(1, .distantPast, recovered: false)
    let heard = Heard<String>()
    let listener = Listener(seen: ["n": known]) { heard.add($0.name) }
    defer { listener.stop() }
    func join(_ name: String, _ stamp: Stamp) {
      listener.join(
        name, ChangeSource(look: { WatchResult(name: name, stamp: stamp) }, leave: {}))
      listener.change(name)
    }
    listener.change("n")
    // The listener reads the names in the order of their notices: 'first' after 'n'.
    join("first", known)
    try heard.wait("another name") { $0 == ["first"] }
    join("n", known)
    join("last", known)
    try heard.wait("a name after it") { $0.last == "last" }
    #expect(heard.all == ["first", "last"])
  }

  /// Three channels change again and again, and the handler never catches up.
  @Test func aWatcherThatIsAlwaysBehindKeepsNames() throws {
    var machine = WatchMachine<Int>(hasHandler: true)
    for name in ["a", "b", "c"] { _ = machine.change(name) }
    for round in 0..<3000 {
      let name = machine.nextName()
      #expect(name == ["a", "b", "c"][round % 3], "each has its turn")
      _ = machine.change(name ?? "none")
    }
    let changed = Mirror(reflecting: machine).descendant("changed") as? [Int]
    #expect(try #require(changed).count < 300)
  }
}
