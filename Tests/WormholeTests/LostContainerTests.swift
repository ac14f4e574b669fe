import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Containers, and folders inside them, that another program removes, replaces or moves away while
/// they are watched.
@Suite(.blocking) struct LostContainerTests {
  enum Way: CaseIterable, Sendable {
    case removed, replaced, moved, emptied

    /// Afterwards the path has no container, or another container.
    func take(_ meeting: Meeting) throws {
      let command =
        switch self {
        case .removed: try run("rm", ["-r", meeting.path])
        case .replaced:
          try run("sh", ["-c", #"mv "$0" "$0-away" && mkdir -m 700 "$0""#, meeting.path])
        case .moved: try run("mv", [meeting.path, meeting.path + "-away"])
        case .emptied: try run("sh", ["-c", #"rm -r "$0"/*"#, meeting.path])
        }
      #expect(command.status == .exited(0), "\(command.errors)")
    }
  }

  /// Each watch reports its failure once, and nothing after the failure.
  @Test(arguments: Way.allCases)
  func whoeverWatchesIsTold(_ way: Way) throws {
    let meeting = try Meeting()
    let container = meeting.container
    try container.channel("number").put(1)
    let failures = Heard<String>()
    let note: @Sendable (String, WormholeError) -> Void = { what, error in
      failures.add("\(what) \(error.code) \(error.description.contains(meeting.path))")
    }
    let heard = Heard<Int>()
    let settings = container.defaults("suite")
    let peer = container.peer("nobody")
    let watches = [
      try container.channel("number").watch {
        heard.add($0.value ?? 0)
      } failure: {
        note("channel", $0)
      },
      try container.watch([container.channel("a"), container.channel("b", of: Int.self)]) { _ in
      } failure: {
        note("channels", $0)
      },
      try container.watch(prefix: "num", of: Int.self) { _ in
      } failure: {
        note("prefix", $0)
      },
      try settings.watch("key", of: Int.self, initial: false) { _ in
      } failure: {
        note("defaults", $0)
      },
      try container.notice("ready").watch {
      } failure: {
        note("notice", $0)
      },
      try container.watchMembers { _ in
      } failure: {
        note("members", $0)
      },
      try peer.watchReachability { _ in
      } failure: {
        note("peer", $0)
      },
    ]
    try heard.waitForLast(1)
    try way.take(meeting)
    try failures.wait("all are told") { $0.count >= watches.count }
    // The next container at the same path is another container.
    let other = try meeting.another()
    try other.channel("number").put(2)
    let witness = Heard<Int>()
    let next = try other.channel("number").watch { witness.add($0.value ?? 0) }
    try witness.waitForLast(2)
    let expected = ["channel", "channels", "prefix", "defaults", "notice", "members", "peer"]
    #expect(Set(failures.all) == Set(expected.map { "\($0) notAContainer true" }))
    #expect(failures.count == expected.count)
    #expect(heard.all == [1])
    try eventually("all have ended") { container.subscriptions.count == 0 }
    // A new watch fails, because its first value would never arrive.
    let late = try failure { _ = try container.channel("number", of: Int.self).watch { _ in } }
    #expect(late.code == .notAContainer)
    for watch in watches + [next] { watch.stop() }
  }

  /// No watch makes a directory again in the middle of the removal, which would fail then.
  @Test func aContainerThatIsWatchedCanBeRemoved() throws {
    for _ in 0..<20 {
      let meeting = try Meeting()
      let channels = (0..<50).map { meeting.container.channel("number.\($0)", of: Int.self) }
      for channel in channels { try channel.put(1) }
      let watches =
        try channels.map {
          try $0.watch { _ in
          } failure: { _ in
          }
        }
        + [
          try meeting.container.watch(prefix: "", of: Int.self) { _ in
          } failure: { _ in
          }
        ]
      let outcome = try run("rm", ["-r", meeting.path])
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
      for watch in watches { watch.stop() }
    }
  }

  @Test func readingInAContainerThatIsGoneIsAnError() throws {
    let meeting = try Meeting()
    let number = meeting.container.channel("number", of: Int.self)
    try number.put(1)
    #expect(try number.value == 1)
    #expect(try run("rm", ["-r", meeting.path]).status == .exited(0))
    #expect(try failure { _ = try number.value }.code == .notAContainer)
    let other = meeting.container.channel("other", of: Int.self)
    #expect(try failure { _ = try other.value }.code == .notAContainer)
  }

  /// A program that opens the container again after a removal must be able to notice it.
  @Test func writingInAContainerThatIsGoneIsAnError() throws {
    let meeting = try Meeting()
    let container = meeting.container
    let number = container.channel("number", of: Int.self)
    try number.put(1)
    #expect(try run("rm", ["-r", meeting.path]).status == .exited(0))
    #expect(try failure { try number.put(2) }.code == .notAContainer)
    let other = container.channel("other", of: Int.self)
    #expect(try failure { try other.put(2) }.code == .notAContainer)
    let settings = container.defaults("suite")
    let refused = try failure { try settings.set(2, forKey: "key") }
    #expect(refused.code == .notAContainer)
    #expect(refused.description.contains(meeting.path))
    let notice = container.notice("news")
    let error = try failure { try notice.post() }
    #expect(error.code == .notAContainer)
    #expect(error.reason == "its container '\(meeting.path)' was removed")
  }

  /// As `wormhole work`, which ends with the reason; nothing is sent to wake the worker.
  @Test(arguments: [Way.moved, .replaced])
  func whoeverWorksOnAQueueIsToldWhyItEnds(_ way: Way) throws {
    let meeting = try Meeting()
    let queue = meeting.container.queue("jobs", of: Int.self)
    let (handled, reasons) = (Heard<Int>(), Heard<WormholeError?>())
    let callers = try queue.callers(handlingDeadline: nil)
    let working = try Thread("working") {
      reasons.add(callers.handle { handled.add(try $0.value()) })
    }
    try queue.send(1, .quick())
    try handled.waitForLast(1)
    try queue.work { _, _ in }
    #expect(meeting.container.subscriptions.count == 2)
    try way.take(meeting)
    #expect(throws: Never.self) {
      try reasons.wait("the worker has ended") { $0.count == 1 }
      try eventually("the closure has ended") { meeting.container.subscriptions.count == 0 }
    }
    callers.stop()
    working.join()
    #expect(reasons.all.map { $0?.code } == [.notAContainer])
    #expect(reasons.all.first??.description.contains(meeting.path) == true)
  }

  // MARK: Folders

  enum FolderWay: CaseIterable, Sendable {
    case removed, moved

    func take(_ folder: String, of meeting: Meeting) throws {
      let path = "\(meeting.path)/\(folder)"
      let command =
        switch self {
        case .removed: try run("rm", ["-r", path])
        case .moved: try run("mv", [path, meeting.folder.path + "/away"])
        }
      #expect(command.status == .exited(0), "\(command.errors)")
    }
  }

  /// Another instance makes the folder again, or an instance with the folder open does so by a put.
  @Test(arguments: FolderWay.allCases, [false, true])
  func channelsMadeAnewAreWatched(_ way: FolderWay, isOneself: Bool) throws {
    let meeting = try Meeting()
    try meeting.container.channel("number.1").put(1)
    let (one, all) = (Heard<Int>(), Heard<String>())
    let watches = [
      try meeting.container.channel("number.1").watch { one.add($0.value ?? 0) },
      try meeting.container.watch(prefix: "number.", of: Int.self) {
        all.add("\($0.channel) \($0.value ?? 0)")
      },
    ]
    try one.waitForLast(1)
    try all.waitForLast("number.1 1")
    try way.take("channels", of: meeting)
    // Until an instance has noticed the move, it may put into the moved folder.
    try eventually("a put is heard") {
      let container = isOneself ? meeting.container : try meeting.another()
      try container.channel("number.1").put(2)
      return one.all.last == 2
    }
    try meeting.another().channel("number.2").put(3)
    // The prefix may hear of the earlier put later.
    try all.wait("the prefix hears of the new one") { $0.contains("number.2 3") }
    try meeting.another().channel("number.1").put(4)
    try one.waitForLast(4)
    try all.wait("the prefix hears it too") { $0.contains("number.1 4") }
    for watch in watches { watch.stop() }
  }

  @Test(arguments: FolderWay.allCases)
  func noticesMadeAnewAreWatched(_ way: FolderWay) throws {
    let meeting = try Meeting()
    let heard = Heard<String>()
    let watch = try meeting.container.notice("ready").watch { heard.add("ready") }
    try meeting.another().notice("ready").post()
    try heard.wait("the first") { $0.count == 1 }
    try way.take("notices", of: meeting)
    try meeting.another().notice("ready").post()
    try heard.wait("the second") { $0.count == 2 }
    try meeting.another().notice("ready").post()
    try heard.wait("the third") { $0.count == 3 }
    watch.stop()
  }

  @Test(arguments: FolderWay.allCases)
  func membersMadeAnewAreWatched(_ way: FolderWay) throws {
    let meeting = try Meeting()
    let heard = Heard<String>()
    let watch = try meeting.container.watchMembers { heard.add("\($0.name) \($0.isRunning)") }
    try meeting.another().join(as: "phone").leave()
    try heard.waitForLast("phone false")
    try way.take("members", of: meeting)
    let member = try meeting.another().join(as: "pad")
    try heard.waitForLast("pad true")
    member.leave()
    try heard.waitForLast("pad false")
    watch.stop()
  }

  /// A watch makes no directory, so it continues where directories cannot be made: on a full disk,
  /// and while another program removes the watched directory.
  @Test func whatIsWatchedIsNotMade() throws {
    let meeting = try Meeting()
    let heard = Heard<Int>()
    let watch = try meeting.container.channel("number").watch { heard.add($0.value ?? 0) }
    #expect(try meeting.container.storage.names(in: .channels) == [])
    for number in 1...3 {
      try meeting.another().channel("number").put(number)
      try heard.waitForLast(number)
      let path = meeting.path + "/channels/number"
      #expect(try run("mv", [path, "\(meeting.folder.path)/away-\(number)"]).status == .exited(0))
    }
    #expect(try meeting.container.storage.names(in: .channels) == [])
    watch.stop()
  }
}
