import TestSupport
import TestTraits
import Testing

@testable import WormholeSyscalls

/// Inotify, poll, wake descriptors, monitors and clocks.
@Suite(.blocking) struct WaitingTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  /// The kernel counts milliseconds: a wait that is rounded down ends before its deadline.
  @Test func aPartOfAMillisecondIsWaitedFor() {
    // The part may be over before it is looked at, but not each time.
    let left = (0..<10_000).lazy.map { _ in millisecondsLeft(until: .now + .microseconds(900)) }
    #expect(left.contains(1))
    #expect(millisecondsLeft(until: .now) == 0)
    #expect(millisecondsLeft(until: nil) == -1)
  }

  @Test func inotifyTellsOfAnExchangeByName() throws {
    try folder.descriptor.makeDirectory("staging", mode: 0o700)
    try folder.write("old", to: "value")
    let staging = try folder.descriptor.open("staging", [.readOnly, .directory])
    let file = try staging.open("new", [.writeOnly, .create], mode: 0o600)
    try file.write("new")
    let inotify = try Inotify()
    let watch = try inotify.watch(folder.descriptor, .movedTo)
    try staging.rename("new", to: folder.descriptor, "value", .exchanging)
    let events = try drain(inotify)
    #expect(events == [Event(watch: watch, mask: .movedTo, name: "value")])
    #expect(try drain(inotify) == [])
  }

  @Test func inotifyWatchesTheDirectoryThatIsOpen() throws {
    try folder.descriptor.makeDirectory("before", mode: 0o700)
    let directory = try folder.descriptor.open("before", [.readOnly, .directory])
    try folder.descriptor.rename("before", to: folder.descriptor, "after")
    let inotify = try Inotify()
    let watch = try inotify.watch(directory, [.created, .onlyDirectory])
    #expect(try inotify.watch(directory, .created) == watch, "the same directory, the same number")
    _ = try directory.open("file", [.writeOnly, .create], mode: 0o600)
    #expect(try drain(inotify) == [Event(watch: watch, mask: .created, name: "file")])
    try inotify.unwatch(watch)
    #expect(try drain(inotify) == [Event(watch: watch, mask: .ignored, name: nil)])
  }

  @Test func inotifyHandsOverMoreThanOneBuffer() throws {
    let inotify = try Inotify()
    _ = try inotify.watch(folder.descriptor, .created)
    for number in 0..<600 {
      _ = try folder.descriptor.open(
        "a long name, so that the events fill more than one buffer \(number)",
        [.writeOnly, .create], mode: 0o600)
    }
    #expect(try drain(inotify).count == 600)
  }

  @Test func aWaitSetTellsOnceWhatHasBecomeReadable() throws {
    let set = try WaitSet()
    let first = try WakeDescriptor()
    let second = try WakeDescriptor()
    try set.add(first.descriptor, as: 1)
    try set.add(second.descriptor, as: 2)
    #expect(try set.wait(until: .now) == nil)
    second.raise()
    #expect(try set.wait(until: nil) == 2)
    #expect(try set.wait(until: .now) == nil, "it was told")
    try set.tellAgain(of: second.descriptor, as: 2)
    #expect(try set.wait(until: nil) == 2)
    // Also while the descriptor is still readable.
    second.raise()
    #expect(try set.wait(until: nil) == 2)
    second.lower()
    try set.tellAgain(of: second.descriptor, as: 2)
    #expect(try set.wait(until: .now) == nil)
  }

  /// An event that arrives while no thread waits is reported to the next waiting thread.
  @Test func aWaitSetWakesOneThreadForEach() throws {
    final class Shared: Sendable {
      let set: WaitSet
      let wake: WakeDescriptor
      init() throws(Errno) {
        set = try WaitSet()
        wake = try WakeDescriptor()
      }
    }
    let shared = try Shared()
    try shared.set.add(shared.wake.descriptor, as: 7)
    let told = Monitor(0)
    shared.wake.raise()
    let threads = try (0..<3).map { _ in
      try Thread("waiter") {
        guard (try? shared.set.wait(until: .now + patience)) == .some(7) else { return }
        told.signal { $0 += 1 }
        // Wakes the next thread, as threads do that take turns.
        shared.wake.raise()
      }
    }
    for thread in threads { thread.join() }
    #expect(told.withLock { $0 } == 3)
  }

  @Test func monitorWaitsForItsDeadlineAndLooksOnceMore() throws {
    // On a busy machine the first look may come after the deadline, and be the only look.
    try eventually("two looks") {
      let monitor = Monitor(0)
      let deadline = Instant.now + .milliseconds(20)
      let answer: Int? = monitor.wait(until: deadline) { looks in
        looks += 1
        return nil
      }
      #expect(answer == nil)
      #expect(Instant.now >= deadline)
      return monitor.withLock { $0 } >= 2
    }
  }

  @Test func monitorAnswersAtOnceWhatIsThereAlready() {
    let monitor = Monitor(7)
    #expect(monitor.wait(until: Instant(nanoseconds: 0)) { $0 } == 7)
    #expect(monitor.wait(until: nil) { $0 } == 7)
  }

  @Test func monitorIsWokenBySignal() throws {
    let monitor = Monitor(false)
    let thread = try Thread("signaller") { monitor.signal { $0 = true } }
    let isSet = monitor.wait(until: .now + patience) { $0 ? true : nil }
    #expect(isSet == true)
    thread.join()
  }

  @Test func durationsAreClamped() {
    #expect(Duration.seconds(2).inNanoseconds == 2_000_000_000)
    #expect(Duration.seconds(Int64.max).inNanoseconds == .max)
    #expect(Duration.seconds(Int64.min).inNanoseconds == .min)
    #expect(Instant(nanoseconds: 5) + .seconds(Int64.max) == Instant(nanoseconds: .max))
    #expect(Instant(nanoseconds: 5) - Instant(nanoseconds: 3) == .nanoseconds(2))
    #expect(Instant(nanoseconds: .min) - Instant(nanoseconds: 3) == .nanoseconds(Int64.min))
    #expect(Instant(nanoseconds: 3) - Instant(nanoseconds: .min) == .nanoseconds(Int64.max))
    #expect(Clocks.sinceBoot > 0)
    #expect(Clocks.sinceEpoch > Clocks.sinceBoot)
  }

  private struct Event: Equatable {
    let watch: CInt
    let mask: InotifyMask
    let name: String?
  }

  private func drain(_ inotify: Inotify) throws(Errno) -> [Event] {
    var events: [Event] = []
    try inotify.drain { watch, mask, name in
      events.append(Event(watch: watch, mask: mask, name: name.map { String(cString: $0) }))
    }
    return events
  }
}
