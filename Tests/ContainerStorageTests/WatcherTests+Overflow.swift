import TestSupport
import TestTraits
import Testing
@testable import WormholeContainerStorage
import WormholeSyscalls

/// Tests in which the kernel drops notices: never beside tests that count their notices.
extension WatcherTests {
  /// The kernel drops the events that arrive while no thread reads, and the last put's event with
  /// them.
  @Test(.blocking) func afterAnOverflowListenersLookAgain() throws {
    let slot = try container.slot(.channels, "n")
    let ear = Ear(slot)
    let watch = try slot.watch { ear.listen() }
    let before = Watcher.shared.rescanCount
    try overflow { try slot.add() }
    #expect(throws: Never.self) { try ear.waitFor(1) }
    #expect(Watcher.shared.rescanCount > before)
    watch.stop()
  }

  /// A directory that was made again in between often has the inode number of the old directory.
  @Test(.blocking) func afterAnOverflowADirectoryOfTheSameNumberIsTakenForAnother() throws {
    // This process must not have the directory open, or its number would not be free.
    #expect(try run(.add(container.path, "n", times: 1)).output == "1\n")
    let path = container.path("channels", "n")
    let isThere = Monitor(true)
    let watch = try container.slot(.channels, "n").watch {
      let isNow = (try? Descriptor.open(path: path + "/value.plist", [.path])) != nil
      isThere.signal { $0 = isNow }
    }
    let channels = try Descriptor.open(path: container.path("channels"), [.readOnly, .directory])
    let number = try channels.status(of: "n").inode
    var isSame = false
    try overflow {
      #expect(try run("rm", ["-r", path]).status == .exited(0))
      // Other free numbers may come first.
      for attempt in 0..<500 where !isSame {
        try channels.makeDirectory("new\(attempt)", mode: 0o700)
        guard try channels.status(of: "new\(attempt)").inode == number else { continue }
        isSame = true
        try channels.rename("new\(attempt)", to: channels, "n")
      }
    }
    if !isSame {
      skip("a directory of the same number", because: "this file system gives a new one each time")
    }
    #expect(isThere.wait(until: .now + patience) { $0 ? nil : true } == true)
    #expect(try run(.add(container.path, "n", times: 1)).output == "1\n")
    #expect(isThere.wait(until: .now + patience) { $0 ? true : nil } == true)
    watch.stop()
  }

  /// Runs the body so that its notices are lost: no thread reads them, and other notices fill the
  /// queue before.
  private func overflow(_ body: () throws -> Void) throws {
    let gate = Monitor((isHeld: false, isOpen: false))
    let noise = try folder.make("noise")
    let holder = try Watcher.shared.watch(noise, .movedTo) { signal in
      guard signal != .lookAgain else { return }
      gate.signal { $0.isHeld = true }
      _ = gate.wait(until: .now + patience) { $0.isOpen ? true : nil }
    }
    _ = try noise.open("a", [.writeOnly, .create], mode: 0o600)
    try noise.rename("a", to: noise, "b")
    #expect(gate.wait(until: .now + patience) { $0.isHeld ? true : nil } == true)
    let most = try inotifyLimit("max_queued_events")
    for _ in 0...(most / 2 + 1) {
      try noise.rename("b", to: noise, "a")
      try noise.rename("a", to: noise, "b")
    }
    try body()
    gate.signal { $0.isOpen = true }
    holder.stop()
    #expect(try run("rm", ["-r", "\(folder.path)/noise"]).status == .exited(0))
  }

  /// Events after an overflow are reported after the overflow itself: in between names are missing.
  @Test(.blocking) func anOverflowIsToldInItsPlace() throws {
    let a = try folder.make("a")
    let b = try folder.make("b")
    let told = Monitor<[WatchSignal]>([])
    let gate = Monitor((held: 0, open: 0))
    let first = try Watcher.shared.watch(a, .created) { signal in
      told.withLock { $0.append(signal) }
      guard case .changed(let names) = signal, names == ["1"] || names == ["2"] else { return }
      let number = Int(names[0])!
      gate.signal { $0.held = number }
      _ = gate.wait(until: .now + patience) { $0.open >= number ? true : nil }
    }
    let second = try Watcher.shared.watch(b, .created) { _ in }
    func make(_ name: String, in directory: borrowing Descriptor) throws {
      _ = try directory.open(name, [.writeOnly, .create], mode: 0o600)
    }
    func hold(_ number: Int) {
      #expect(gate.wait(until: .now + patience) { $0.held == number ? true : nil } == true)
    }
    try make("1", in: a)
    hold(1)
    // The thread reads these events in parts; it reports the first event at the change to the other
    // directory.
    try make("2", in: a)
    for number in 0..<(try inotifyLimit("max_queued_events") + 10) { try make("\(number)", in: b) }
    gate.signal { $0.open = 1 }
    hold(2)
    try make("late", in: a)
    gate.signal { $0.open = 2 }
    try eventually("the last is told") {
      told.withLock { $0.contains { $0 == .changed(["late"]) } }
    }
    let signals = told.withLock { $0 }
    let late = try #require(signals.firstIndex(of: .changed(["late"])))
    let overflow = try #require(signals.firstIndex(of: .lookAgain))
    #expect(overflow < late, "\(signals)")
    first.stop()
    second.stop()
  }
}
