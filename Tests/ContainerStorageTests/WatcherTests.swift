import Synchronization
import TestSupport
import TestTraits
import Testing
@testable import WormholeContainerStorage
import WormholeSyscalls

/// P8: no listener misses a change permanently.
@Suite(.serialized, .blocking) struct WatcherTests {
  let folder: TemporaryDirectory
  let container: Container

  init() throws { (folder, container) = try Container.forTest() }

  /// A handler runs on two threads when its registration ends.
  @Test func theEndWaitsForEachCallInProgress() throws {
    let (calls, order, gate) = (Monitor(0), Monitor<[String]>([]), CallGate())
    let (first, second) = (Gate(), Gate())
    func caller(_ number: Int, _ exit: Gate) throws -> Thread {
      let thread = try Thread("caller") {
        gate.call {
          calls.signal { $0 = number }
          try? exit.wait()
          order.withLock { $0.append("call \(number)") }
        }
      }
      let begun: Void? = calls.wait(until: .now + patience) { $0 == number ? () : nil }
      #expect(begun != nil)
      return thread
    }
    let callers = (try caller(1, first), try caller(2, second))
    first.open()
    callers.0.join()
    gate.close()
    let ending = try Thread("ending") {
      gate.drain()
      order.signal { $0.append("end") }
    }
    // An end that does not wait comes first.
    let _: Void? = order.wait(until: .now + .milliseconds(200)) { $0.contains("end") ? () : nil }
    second.open()
    callers.1.join()
    ending.join()
    #expect(order.withLock { $0 } == ["call 1", "call 2", "end"])
  }

  // MARK: Notices to listeners

  @Test func aPutIsHeard() throws {
    let slot = try container.slot(.channels, "n")
    let ear = Ear(slot)
    let watch = try slot.watch { ear.listen() }
    #expect(ear.calls == 1)
    for sum in 1...20 {
      try slot.add()
      try ear.waitFor(sum)
    }
    #expect(!watch.isPolling)
    watch.stop()
  }

  /// A name appears in a new directory before the listener is notified of the new directory: the
  /// listener has to list.
  @Test func aNameInANewDirectoryIsNoNewsBeforeTheDirectory() throws {
    let root = try Descriptor.open(path: container.path, [.readOnly, .directory])
    let sides = ["a", "b"]
    for name in ["x", "y"] {
      try root.makeDirectory(name, mode: 0o700)
      for side in sides { try root.makeDirectory("\(name)/\(side)", mode: 0o700) }
    }
    let told = Heard<(side: String, signal: WatchSignal)>()
    let isOver = Monitor(false)
    let watches = try sides.map { side in
      try NamedWatch(container, ["x", side], .created) { signal in
        told.add((side, signal))
        // The second listener is notified after the first one has returned.
        guard told.all.count == 1 else { return }
        _ = isOver.wait(until: .now + patience) { $0 ? true : nil }
      }
    }
    defer {
      isOver.signal { $0 = true }
      for watch in watches { watch.stop() }
    }
    try root.rename("y", to: root, "x", .exchanging)
    try told.wait("the first replacement") { !$0.isEmpty }
    let (first, signal) = told.all[0]
    #expect(signal == .replaced)
    let second = first == "a" ? "b" : "a"
    _ = try root.open("x/\(second)/name", .writeOnlyNew, mode: 0o600)
    try told.wait("a notice of the name") { $0.count > 1 }
    #expect(told.all[1].side == second)
    #expect(told.all[1].signal == .replaced)
  }

  @Test func anothersPutIsHeard() throws {
    let slot = try container.slot(.channels, "n")
    let ear = Ear(slot)
    let watch = try slot.watch { ear.listen() }
    #expect(try run(.add(container.path, "n", times: 5)).output == "1\n2\n3\n4\n5\n")
    try ear.waitFor(5)
    watch.stop()
  }

  @Test func whatWasPutBeforeIsHeardAtOnce() throws {
    let slot = try container.slot(.channels, "n")
    try slot.add(7)
    let ear = Ear(slot)
    let watch = try slot.watch { ear.listen() }
    #expect(ear.latest == 7)
    watch.stop()
  }

  @Test func anExchangeIsToldByTheNameItPutsInPlace() throws {
    let slot = try container.slot(.channels, "n")
    try slot.add()
    let log = Log()
    let directory = try Descriptor.open(
      path: container.path("channels", "n"), [.readOnly, .directory])
    let watch = try Watcher.shared.watch(directory, .movedTo) { log.note($0) }
    let staged = try directory.open("lock", [.readOnly, .directory])
      .open("1.d", [.readOnly, .directory])
    try staged.open("new", [.writeOnly, .create], mode: 0o600).write("other")
    try staged.rename("new", to: directory, "value.plist", .exchanging)
    try eventually("the exchange is told") { log.names.contains("value.plist") }
    #expect(log.names == ["value.plist"])
    watch.stop()
  }

  /// Two listeners of one directory share one watch of the kernel: each still receives its own
  /// events.
  @Test func twoListenersWithDifferentMasksBothHear() throws {
    let directory = try folder.make("d")
    let (moves, births) = (Log(), Log())
    let first = try Watcher.shared.watch(directory, .movedTo) { moves.note($0) }
    let second = try Watcher.shared.watch(directory, .created) { births.note($0) }
    _ = try directory.open("born", [.writeOnly, .create], mode: 0o600)
    try directory.rename("born", to: directory, "moved")
    try eventually("the birth is told") { births.names.contains("born") }
    try eventually("the move is told") { moves.names.contains("moved") }
    second.stop()
    try directory.rename("moved", to: directory, "again")
    try eventually("the other still hears") { moves.names.contains("again") }
    first.stop()
  }

  /// A listener is woken for its own directory only, though all are watched by one instance.
  @Test func aThousandListenersAreWokenForTheirOwn() throws {
    var slots: [Slot] = []
    var ears: [Ear] = []
    var watches: [NamedWatch] = []
    for number in 0..<1000 {
      let slot = try container.slot(.channels, "\(number)")
      let ear = Ear(slot)
      watches.append(try slot.watch { ear.listen() })
      slots.append(slot)
      ears.append(ear)
    }
    let chosen = [3, 500, 997]
    for number in chosen {
      try slots[number].add()
      try ears[number].waitFor(1)
    }
    for (number, ear) in ears.enumerated() where !chosen.contains(number) {
      #expect(ear.calls == 1, "listener \(number)")
    }
    // A first put creates the directory, and then the value in it.
    for number in chosen { #expect((2...3).contains(ears[number].calls)) }
    for watch in watches { watch.stop() }
  }

  /// Stopping one watch takes no longer among many watches, so stopping all takes no longer for
  /// each.
  @Test func manyAreStoppedAsQuicklyAsOne() throws {
    func timeToStop(_ count: Int) throws -> Duration {
      let watches = try (0..<count).map { number in
        try container.slot(.channels, "\(number)").watch {}
      }
      let begin = Instant.now
      for watch in watches { watch.stop() }
      return Instant.now - begin
    }
    // Ten times as many: a search among all watches would take a hundred times as long.
    let isAsQuick = try (0..<3).contains { _ in
      try timeToStop(20_000) < timeToStop(2000) * 30
    }
    #expect(isAsQuick)
  }

  /// Tasks occupy all threads but one, and this thread still notifies the listeners.
  @Test func longTasksLeaveAThreadThatNotifies() throws {
    let watcher = Watcher()
    let directory = try folder.make("d")
    let (accepted, running, isOver) = (Heard<Bool>(), Heard<Int>(), Monitor(false))
    let watch = try watcher.watch(directory, .created) { _ in
      let isAccepted = watcher.afterwards {
        running.add(1)
        let _: Void? = isOver.wait(until: nil) { $0 ? () : nil }
      }
      accepted.add(isAccepted)
    }
    defer {
      isOver.signal { $0 = true }
      watch.stop()
    }
    let most = WatcherCrew.limit - 1
    for number in 1...(most + 2) {
      _ = try directory.open("\(number)", [.writeOnly, .create], mode: 0o600)
      #expect(throws: Never.self) {
        try accepted.wait("notice \(number)") { $0.count == number }
      }
      guard accepted.count == number else { return }
      try running.wait("the tasks") { $0.count == min(number, most) }
    }
    #expect(accepted.all == [true, true, true, false, false])
  }

  // MARK: Lost watches, and how they are found again

  @Test func aRemovedDirectoryIsWatchedAnew() throws {
    let slot = try container.slot(.channels, "n")
    let ear = Ear(slot)
    let watch = try slot.watch { ear.listen() }
    for round in 1...5 {
      try slot.add(round)
      try ear.waitFor(round)
      // A process that has the directory open keeps the kernel from reporting its removal.
      let open = try Descriptor.open(
        path: container.path("channels", "n"), [.readOnly, .directory])
      #expect(try run("rm", ["-r", container.path("channels", "n")]).status == .exited(0))
      try ear.waitFor(0)
      #expect(try run(.add(container.path, "n", times: 1)).output == "1\n")
      try ear.waitFor(1)
      #expect(try open.status().links == 0)
      #expect(try run("rm", ["-r", container.path("channels", "n")]).status == .exited(0))
      try ear.waitFor(0)
    }
    watch.stop()
  }

  // MARK: Where inotify cannot serve

  /// No instance of inotify is available at first; five seconds later an instance is.
  @Test func withoutAnInstanceItPollsUntilThereIsOne() throws {
    let listener = try Running(
      .watch(container.path, "n", until: 3),
      environment: [
        "WORMHOLE_FAULTS=inotifyInit:before:fail=EMFILE;inotifyInit@2:before:fail=EMFILE"
      ])
    try eventually("it polls") { try listener.output.contains("polling\n") }
    let slot = try container.slot(.channels, "n")
    try slot.add()
    try eventually("it hears by looking") { try listener.output.contains("heard 1\n") }
    try eventually("it is told again") { try listener.output.contains("told\n") }
    try slot.add()
    try eventually("it hears by being told") { try listener.output.contains("heard 2\n") }
    try slot.add()
    let outcome = try listener.outcome()
    #expect(outcome.status == .exited(0))
    #expect(outcome.errors.contains("polling a directory every"))
    #expect(outcome.errors.contains("too many open files"))
  }

  /// In a separate process: inotify is tried again for every directory that a process polls.
  @Test func withoutAWatchItPolls() throws {
    let slot = try container.slot(.channels, "n")
    let listener = try Running(
      .watch(container.path, "n", until: 2),
      environment: ["WORMHOLE_FAULTS=inotifyAdd@1+:before:fail=ENOSPC"])
    func hears(_ number: Int) throws {
      try eventually("\(number) is heard") {
        try listener.output.hasSuffix("heard \(number)\n")
      }
    }
    try eventually("it polls") { try listener.output.contains("polling\n") }
    try slot.add()
    try hears(1)
    // If a polled directory is removed, the next directory of its name is polled, once.
    for _ in 0..<3 {
      #expect(try run("rm", ["-r", container.path("channels", "n")]).status == .exited(0))
      try hears(0)
      #expect(try run(.add(container.path, "n", times: 1)).output == "1\n")
      try hears(1)
    }
    #expect(try run(.add(container.path, "n", times: 1)).output == "2\n")
    let outcome = try listener.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.errors.contains("inotify failed: no space left on device"))
    #expect(!outcome.output.contains("told\n"))
  }

  /// Without inotify a watch keeps nothing open, so that a process may have as many watches as with
  /// inotify.
  @Test func whatIsPolledIsNotKeptOpen() throws {
    for number in 0..<300 { try container.slot(.channels, "\(number)").add() }
    let listener = try Running(
      .watchMany(container.path, count: 300),
      environment: ["WORMHOLE_FAULTS=inotifyAdd@1+:before:fail=ENOSPC"])
    try eventually("all are watched") { try listener.output.contains("descriptors ") }
    for number in [0, 150, 299] { try container.slot(.channels, "\(number)").add() }
    let outcome = try listener.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let count = outcome.output.split(separator: "\n").first.flatMap { Int($0.dropFirst(12)) }
    // Slots keep some of the values open that were read last.
    #expect(try #require(count) < 100)
  }

  @Test func fileSystemsThatDoNotTellAreKnown() {
    let expected: [UInt32: String] = [
      0x6969: "NFS", 0x6573_5546: "FUSE", 0x0102_1997: "9P", 0xFF53_4D42: "CIFS",
      0xFE53_4D42: "SMB", 0x00C3_6400: "Ceph",
    ]
    for (type, name) in expected { #expect(FileSystemStatus.nameWithoutNotices(type) == name) }
    // Local file systems of the machine report everything: ext, xfs, btrfs, tmpfs, overlayfs.
    for type: UInt32 in [0xEF53, 0x5846_5342, 0x9123_683E, 0x0102_1994, 0x794C_7630] {
      #expect(FileSystemStatus.nameWithoutNotices(type) == nil)
    }
  }

  // MARK: The end

  @Test func nothingIsCalledAfterStop() throws {
    let slot = try container.slot(.channels, "n")
    let ends = Atomic<Bool>(false)
    let putter = try Thread("putter") {
      while !ends.load(ordering: .relaxed) { _ = try? slot.add() }
    }
    defer {
      ends.store(true, ordering: .relaxed)
      putter.join()
    }
    let late = Atomic<Int>(0)
    var heard = 0
    for round in 0..<150 {
      let (isStopped, calls) = (Flag(), Flag())
      let watch = try slot.watch {
        calls.count.add(1, ordering: .relaxed)
        if isStopped.count.load(ordering: .acquiring) > 0 { late.add(1, ordering: .relaxed) }
      }
      if round % 3 > 0 {
        try eventually("a call") { calls.count.load(ordering: .relaxed) > round % 3 }
      }
      let before = Instant.now
      watch.stop()
      isStopped.count.store(1, ordering: .releasing)
      #expect(Instant.now - before < .seconds(5))
      heard += calls.count.load(ordering: .relaxed)
    }
    #expect(late.load(ordering: .relaxed) == 0)
    #expect(heard > 150)
  }

  @Test func stopFromWithinTheHandler() throws {
    let slot = try container.slot(.channels, "n")
    for _ in 0..<100 {
      let holder = Monitor<NamedWatch?>(nil)
      let calls = Flag()
      let watch = try slot.watch {
        guard calls.count.add(1, ordering: .relaxed).oldValue > 0 else { return }
        holder.withLock { $0 }?.stop()
      }
      holder.withLock { $0 = watch }
      try slot.add()
      try eventually("the second call") { calls.count.load(ordering: .relaxed) == 2 }
      try slot.add()
      watch.stop()
      #expect(calls.count.load(ordering: .relaxed) == 2)
    }
  }

  /// The last listener of one thread stops while the first listener of another thread starts.
  @Test func listenersComeAndGoOnManyThreads() throws {
    let path = container.path
    let failures = Monitor<[String]>([])
    let threads = try (0..<4).map { number in
      try Thread("listener") {
        do {
          let slot = try Container.open(path, options: .testing())
            .slot(.channels, "own \(number)")
          for round in 1...100 {
            let ear = Ear(slot)
            let watch = try slot.watch { ear.listen() }
            try slot.add()
            try ear.waitFor(round)
            watch.stop()
          }
        } catch {
          failures.withLock { $0.append("\(error)") }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(failures.withLock { $0 } == [])
  }
}

/// A listener on a slot: it reads the value when it is notified, as listeners must.
final class Ear: Sendable {
  private let slot: Slot
  private let state = Monitor((calls: 0, latest: -1))

  init(_ slot: Slot) { self.slot = slot }

  func listen() {
    // Calls arrive on several threads: a call that has read before another call does not end after
    // it.
    state.signal { state in
      state.calls += 1
      state.latest = (try? slot.number()) ?? -1
    }
  }

  var calls: Int { state.withLock { $0.calls } }
  var latest: Int { state.withLock { $0.latest } }

  /// Waits until a call has read this number.
  func waitFor(_ number: Int, within time: Duration = patience) throws {
    let found = state.wait(until: .now + time) { $0.latest == number ? true : nil }
    guard found != nil else {
      throw TooLate(description: "\(number) was not heard, but \(latest)")
    }
  }
}

/// A count that closures share.
private final class Flag: Sendable { let count = Atomic<Int>(0) }

/// The signals that a raw listener received.
private final class Log: Sendable {
  private let told = Monitor<[WatchSignal]>([])
  func note(_ signal: WatchSignal) { told.withLock { $0.append(signal) } }

  /// All names reported, in order.
  var names: [String] {
    told.withLock { told in
      told.flatMap { signal -> [String] in
        if case .changed(let names) = signal { names } else { [] }
      }
    }
  }
}

extension TemporaryDirectory {
  /// Makes a directory inside this directory.
  func make(_ name: String) throws(Errno) -> Descriptor {
    try descriptor.makeDirectory(name, mode: 0o700)
    return try descriptor.open(name, [.readOnly, .directory])
  }
}
