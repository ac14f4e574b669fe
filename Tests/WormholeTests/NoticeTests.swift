import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Posting and watching names.
@Suite struct NoticeTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }
  private let heard = Heard<String>()

  init() throws { meeting = try Meeting() }

  @Test(.blocking) func onesOwnPostsAndThoseOfOthersAreHeard() throws {
    let watch = try container.notice("ready").watch { heard.add("ready") }
    try container.notice("ready").post()
    try heard.wait("the first") { $0.count == 1 }
    try container.notice("ready").post()
    try heard.wait("the second") { $0.count == 2 }
    let peer = try run(.post(meeting.path, "ready"))
    #expect(peer.status == .exited(0))
    try heard.wait("the peer's") { $0.count == 3 }
    watch.stop()
    #expect(heard.count == 3)
  }

  @Test(.blocking) func onlyItsOwnNameIsHeard() throws {
    let watches = try ["a", "b"].map { name in
      try container.notice(name).watch { heard.add(name) }
    }
    try container.notice("c").post()
    try container.notice("b").post()
    try heard.waitForLast("b")
    try container.notice("ü/../a").post()
    try container.notice("a").post()
    try heard.waitForLast("a")
    #expect(heard.all == ["b", "a"])
    for watch in watches { watch.stop() }
  }

  @Test(.blocking) func whatWasPostedBeforeIsNotHeard() throws {
    try container.notice("ready").post()
    let watch = try container.notice("ready").watch { heard.add("early") }
    let witness = try container.notice("other").watch { heard.add("other") }
    try container.notice("other").post()
    try heard.waitForLast("other")
    #expect(heard.all == ["other"])
    watch.stop()
    witness.stop()
  }

  /// The file system stores whole seconds, and reports no changes.
  @Test(.blocking) func aPostOfTheSameSecondIsHeard() throws {
    let notice = container.notice("ready")
    try notice.post()
    let folder = try Descriptor.open(path: meeting.path + "/notices", [.readOnly, .directory])
    try folder.setModified(of: "ready", to: 1_500_000_000_000_000_000)
    var watch: Subscription?
    try FaultPoints.with([FaultRule(.inotifyAdd, persistent: true, .fail(.noSpace))]) {
      watch = try notice.watch { heard.add("ready") }
    }
    defer { watch?.stop() }
    try folder.setModified(of: "ready", to: 1_500_000_001_000_000_000)
    try heard.wait("the first post of a second") { $0.count == 1 }
    // The second post of this second leaves the file as it is.
    #expect(throws: Never.self) { try heard.wait("the second post") { $0.count == 2 } }
  }

  @Test(.blocking) func manyPostsMayBeOneAndTheLastIsHeard() throws {
    let gate = Gate()
    let watch = try container.notice("ready").watch {
      heard.add("ready")
      gate.pass()
    }
    try container.notice("ready").post()
    try gate.waitForSomebody()
    for _ in 0..<50 { try container.notice("ready").post() }
    gate.open()
    try heard.wait("once more") { $0.count >= 2 }
    watch.stop()
    // The posts before the opening of the gate are one notice; the notice of the last post may come
    // later.
    #expect(heard.count < 51)
  }

  @Test(.blocking) func nothingIsKeptButAnEmptyFile() throws {
    try container.notice("ready").post()
    #expect(try container.container("notices") == ["ready"])
    #expect(try meeting.bytes(of: "notices/ready") == [])
    let group = try Meeting { $0.sharing = .group }
    try group.container.notice("ready").post()
    let file = try Descriptor.open(path: group.path + "/notices/ready", [.readOnly]).status()
    #expect(file.mode == 0o660)
  }

  @Test func asASequence() async throws {
    var posts = container.notice("ready").posts.makeAsyncIterator()
    try container.notice("ready").post()
    #expect(try await posts.next() != nil)
    try container.notice("ready").post()
    #expect(try await posts.next() != nil)
    let task = Task { [container] in
      for try await _ in container.notice("never").posts {}
      return true
    }
    task.cancel()
    #expect(try await task.value)
  }

  @Test(.blocking) func namesThatCannotBeUsedAreRefused() throws {
    #expect(try failure { try container.notice("").post() }.code == .invalidName)
    #expect(try failure { _ = try container.notice("").watch {} }.code == .invalidName)
  }
}
