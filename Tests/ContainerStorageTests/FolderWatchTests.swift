import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// Names that appear in a folder and disappear, each reported once.
@Suite(.blocking) struct FolderWatchTests {
  private let folder: TemporaryDirectory
  private let container: Container

  init() throws { (folder, container) = try Container.forTest() }

  @Test func namesThatComeAndGoAreTold() throws {
    try container.slot(.channels, "before").add()
    let changes = Changes()
    let watch = try container.watchNames(in: .channels) { changes.note($0) }
    #expect(changes.all == [.came("before")])
    try container.slot(.channels, "ä/b").add()
    try changes.waitFor(2)
    #expect(try run(.add(container.path, "other", times: 1)).status == .exited(0))
    try changes.waitFor(3)
    #expect(try run("rm", ["-r", container.path("channels", "before")]).status == .exited(0))
    try changes.waitFor(4)
    let channels = try container.root.descriptor.open("channels", [.readOnly, .directory])
    // No channel has a name of this form.
    try channels.makeDirectory("%zz", mode: 0o700)
    try container.slot(.channels, "last").add()
    try changes.waitFor(5)
    watch.stop()
    try container.slot(.channels, "after").add()
    #expect(
      changes.all == [
        .came("before"), .came("ä/b"), .came("other"), .went("before"), .came("last"),
      ])
  }

  /// Settings have a prefix of the library before a name of the full length.
  @Test(arguments: ["defaults.", "lock.", "wake."])
  func aNameOfTheFullLengthAfterAPrefixIsTold(_ prefix: String) throws {
    let names = ["a", "b"].map { prefix + String(repeating: $0, count: EscapedName.limit) }
    try container.slot(.system, names[0]).add()
    let changes = Changes()
    let watch = try container.watchNames(in: .system) { changes.note($0) }
    #expect(changes.all == [.came(names[0])])
    try container.slot(.system, names[1]).add()
    #expect(throws: Never.self) { try changes.waitFor(2) }
    watch.stop()
    #expect(changes.all == names.map { FolderWatch.FolderChange.came($0) })
    #expect(try container.slotNames(in: .system) == names)
  }

  /// The file system refuses to tell whether the name is there.
  @Test func aNameThatCannotBeLookedUpIsToldLater() throws {
    let listener = try Running(
      .names(container.path, until: "x"),
      environment: ["WORMHOLE_FAULTS=fstatat~channels/x:before:fail=EIO"])
    try eventually("the watch is set up") {
      try listener.output.contains("watching\n")
    }
    try container.slot(.channels, "x").add()
    #expect(throws: Never.self) {
      try eventually("the name is told") { try listener.output.contains("came x\n") }
    }
    #expect(try listener.outcome().status == .exited(0))
  }

  /// A listener that does not list for a long time stores no growing list of names, and rescans the
  /// whole folder later.
  @Test func ofTooManyChangesNoListIsKept() {
    var due = WatchSignal.changed([])
    for _ in 0..<WatchSignal.most { due.add(.changed(["x"])) }
    #expect(due == .changed(Array(repeating: "x", count: WatchSignal.most)))
    for _ in 0..<2 {
      due.add(.changed(["x"]))
      #expect(due == .lookAgain)
    }
  }

  /// All names of another directory are new; after a loss nothing is known of any name.
  @Test func whatASlowListenerIsToldOfSeveralSignals() {
    func merged(_ signals: WatchSignal...) -> WatchSignal {
      var due = WatchSignal.changed([])
      for signal in signals { due.add(signal) }
      return due
    }
    #expect(merged(.changed(["a"]), .changed(["b", "a"])) == .changed(["a", "b", "a"]))
    #expect(merged(.changed(["a"]), .replaced) == .replaced)
    #expect(merged(.replaced, .changed(["a"])) == .replaced)
    #expect(merged(.replaced, .replaced) == .replaced)
    #expect(merged(.replaced, .lookAgain) == .lookAgain)
    #expect(merged(.lookAgain, .replaced) == .lookAgain)
    #expect(merged(.changed(["a"]), .gone) == .lookAgain)
  }

  /// A handler that does not return for a long time is notified of a loss afterwards.
  @Test func aFeedOfTooManyChangesReportsALoss() throws {
    let path = [Container.Folder.channels.rawValue]
    let (changes, seen) = (
      Heard<DirectoryFeed.DirectoryChange>(), Heard<DirectoryFeed.DirectoryChange>()
    )
    let isReleased = Monitor(false)
    let feed = try DirectoryFeed(container, path, .names) { change in
      changes.add(change)
      let _: Bool? = isReleased.wait(until: .now + patience) { $0 ? true : nil }
    }
    let other = try DirectoryFeed(container, path, .names) { seen.add($0) }
    let channels = try container.root.descriptor.open(path[0], [.readOnly, .directory])
    func make(_ name: String) throws {
      _ = try channels.open(name, [.writeOnly, .create], mode: 0o600)
    }
    /// Waits until both feeds were notified of all names so far: the second notice after a name
    /// shows that neither feed still waits for the first.
    func settle(_ number: Int) throws {
      for mark in ["a\(number).", "b\(number)."] {
        var count = 0
        try eventually("the notice of a name") {
          count += 1
          try make(mark + "\(count)")
          return seen.all.contains { change in
            guard case .names(let names) = change else { return false }
            return names.contains { $0.hasPrefix(mark) }
          }
        }
      }
    }
    try make("first")
    try changes.wait("the first name") { !$0.isEmpty }
    for number in 0...WatchSignal.most {
      try make("\(number)")
      // The queue of the kernel never overflows.
      if number.isMultiple(of: 2048) { try settle(number) }
    }
    try settle(-1)
    isReleased.signal { $0 = true }
    try changes.wait("the loss") { $0.count > 1 }
    // Not compared in the expectation, which would print all names.
    let isLost = changes.all[1] == .lost
    #expect(isLost)
    withExtendedLifetime((feed, other)) {}
  }

  /// All names are new, also if a check of the polled directory came before the report.
  @Test func aReplacementOfAPolledDirectoryIsNotReportedAsACheck() {
    func reports(_ news: WatchSignal, wasReplaced: Bool, isPolling: Bool)
      -> DirectoryFeed.DirectoryChange
    {
      DirectoryFeed.change(news, wasReplaced: wasReplaced, isPolling: isPolling)
    }
    #expect(reports(.replaced, wasReplaced: true, isPolling: true) == .replaced)
    #expect(reports(.lookAgain, wasReplaced: true, isPolling: true) == .replaced)
    #expect(reports(.lookAgain, wasReplaced: false, isPolling: true) == .polled)
    #expect(reports(.lookAgain, wasReplaced: false, isPolling: false) == .lost)
    #expect(reports(.lookAgain, wasReplaced: true, isPolling: false) == .lost)
  }

  /// A name arrives while the watch is being set up: the folder is listed after the set-up.
  @Test func aNameThatComesBeforeTheWatchIsTold() throws {
    let listener = try Running(
      .names(container.path, until: "x"),
      environment: ["WORMHOLE_FAULTS=inotifyAdd~channels:before:stop"])
    try listener.waitUntilStopped()
    try container.slot(.channels, "x").add()
    try listener.child.send(.go)
    try eventually("the watch is set up") {
      try listener.output.contains("watching\n")
    }
    #expect(throws: Never.self) {
      try eventually("the name is told") { try listener.output.contains("came x\n") }
    }
    #expect(try listener.outcome().status == .exited(0))
  }

  /// The first listing and the listings caused by events overlap.
  ///
  /// No listing may revoke a change that a later listing has reported.
  @Test func namesThatComeWhileItBeginsAreToldOnce() throws {
    for round in 0..<100 {
      let isDue = Monitor(false)
      let container = self.container
      let maker = try Thread("maker") {
        _ = isDue.wait(until: .now + patience) { $0 ? true : nil }
        for number in 0..<3 {
          _ = try? container.slot(.channels, "\(round) \(number)").add()
        }
      }
      let changes = Changes()
      isDue.signal { $0 = true }
      let watch = try container.watchNames(in: .channels) { changes.note($0) }
      maker.join()
      try changes.waitFor(3 * (round + 1))
      watch.stop()
      let expected = (0...round).flatMap { round in (0..<3).map { "\(round) \($0)" } }
      #expect(changes.all.count == expected.count)
      #expect(
        Set(expected)
          == Set(
            changes.all.map { change in
              if case .came(let name) = change { name } else { "\(change)" }
            }))
    }
  }

  @Test func nothingIsToldAfterStopFromWithin() throws {
    let holder = Monitor<FolderWatch?>(nil)
    let changes = Changes()
    let gate = Monitor(false)
    let watch = try container.watchNames(in: .channels) { change in
      changes.note(change)
      // More names exist before the callback for the first name returns.
      if changes.all.count == 1 { _ = gate.wait(until: .now + patience) { $0 ? true : nil } }
      if changes.all.count == 2 { holder.withLock { $0 }?.stop() }
    }
    holder.withLock { $0 = watch }
    try container.slot(.channels, "a").add()
    try changes.waitFor(1)
    for name in ["b", "c", "d"] { try container.slot(.channels, name).add() }
    gate.signal { $0 = true }
    try changes.waitFor(2)
    // Returns when no callback is in progress any more.
    watch.stop()
    #expect(changes.all == [.came("a"), .came("b")])
  }
}

/// The changes that a listener received, in order.
private final class Changes: Sendable {
  private let told = Monitor<[FolderWatch.FolderChange]>([])

  func note(_ change: FolderWatch.FolderChange) { told.signal { $0.append(change) } }

  var all: [FolderWatch.FolderChange] { told.withLock { $0 } }

  func waitFor(_ count: Int) throws {
    let isThere = told.wait(until: .now + patience) { $0.count >= count ? true : nil }
    guard isThere != nil else {
      throw TooLate(description: "\(count) changes were not told, but \(all)")
    }
  }
}
