import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage

/// Async overloads that pass every argument on, and bodies that do not wait.
@Suite struct TaskOverloadTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting.patient() }

  @Test func aValueThatExpiresIsPutOverTheExpectedVersionOnly() async throws {
    let number = container.channel("number", of: Int.self)
    #expect(try await number.put(1, timeToLive: .seconds(3600), ifVersion: 0) == 1)
    let error = try await failure {
      _ = try await number.put(2, timeToLive: .seconds(60), ifVersion: 7)
    }
    #expect(error.code == .conflict)
    let latest = try #require(try number.latest)
    #expect(latest.value == 1 && latest.version == 1)
    let end = try #require(latest.metadata.expiresAt)
    #expect(abs(end.timeIntervalSince(latest.metadata.writtenAt) - 3600) < 60)
    #expect(try await number.put(2, timeToLive: .seconds(60), ifVersion: 1) == 2)
    #expect(try number.value == 2)
  }

  @Test(.blocking) func aCheckedValueIsPutOverTheExpectedVersionOnly() throws {
    let rows = container.channel("rows", default: 4) { (value: Int) in
      if value > 100 { throw Missing() }
    }
    #expect(try rows.put(8) == 1)
    #expect(try failure { _ = try rows.put(9, ifVersion: 7) }.code == .conflict)
    #expect(throws: Missing.self) { try rows.put(101, ifVersion: 1) }
    #expect(try rows.value == 8)
    #expect(try rows.put(9, ifVersion: 1) == 2)
    #expect(try rows.channel.value == 9)
  }

  /// An address that is encoded like other values would be a dictionary.
  @Test func anAddressIsSetAsTextAndRemovedByNil() async throws {
    let defaults = container.defaults("app")
    let (address, none) = (URL(string: "https://hub.example/a"), URL?.none)
    try await defaults.set(address, forKey: "site")
    #expect(try defaults.dictionaryRepresentation() == ["site": "https://hub.example/a"])
    #expect(try defaults.url(forKey: "site") == address)
    try await defaults.set(none, forKey: "site")
    #expect(try defaults.dictionaryRepresentation() == [:])
  }

  @Test func aMemberOfASynchronousBodyLeavesHoweverTheBodyEnds() async throws {
    let peer = container.peer("watch")
    let info = try await container.withMember(as: "watch", info: ["place": "wrist"]) {
      (member: Member) throws -> [String: String]? in
      guard member.isJoined, try peer.reachability == .running else { throw Missing() }
      return try peer.profile?.info
    }
    #expect(info == ["place": "wrist"])
    #expect(try peer.reachability == .notRunning)
    await #expect(throws: Missing.self) {
      try await container.withMember(as: "watch") { (_: Member) throws -> Void in
        throw Missing()
      }
    }
    #expect(try peer.reachability == .notRunning)
  }

  /// The lock is free after each of the errors: the next call would wait for it otherwise.
  @Test func aTasksBodyReceivesTheGenerationAndItsErrorComesThrough() async throws {
    let till = container.lock("till")
    let generation = try await till.hold(within: patience, takeOverAfter: nil) {
      (generation: Int) throws -> Int in
      generation
    }
    #expect(generation == 1)
    await #expect(throws: Missing.self) {
      try await till.hold(within: patience, takeOverAfter: nil) { (_: Int) throws -> Void in
        throw Missing()
      }
    }
    await #expect(throws: Missing.self) {
      try await till.hold(within: patience, takeOverAfter: nil) { (_: Int) async throws -> Void in
        await Task.yield()
        throw Missing()
      }
    }
    let value = try await till.hold(within: patience) { () throws -> String in "free" }
    #expect(value == "free")
  }

  @Test func aGroupsContainerIsOpenedFromATask() async throws {
    try GroupsRoot.use()
    let name = "group.com.example.task-overload"
    let opened = try await SharedContainer(group: name)
    let again = try { try SharedContainer(group: name) }()
    #expect(opened.directory == again.directory)
    try await opened.channel("number", of: Int.self).put(5)
    #expect(try again.channel("number", of: Int.self).value == 5)
    let other = try await SharedContainer(group: name + ".other")
    #expect(other.directory != opened.directory)
    #expect(try other.channels() == [])
    let error = try await failure { _ = try await SharedContainer(group: "") }
    #expect(error.code == .invalidName)
  }

  /// Each kind of watch calls closures that wait.
  @Test func asynchronousClosuresAreCalledByAllWatches() async throws {
    let (heard, told) = AsyncStream<String>.makeStream()
    let (notice, defaults) = (container.notice("ready"), container.defaults("app"))
    let watches = [
      try notice.watch {
        await Task.yield()
        told.yield("notice")
      },
      try defaults.watch("key", of: Int.self, initial: false) { value in
        await Task.yield()
        told.yield("key \(value ?? 0)")
      } failure: { error in
        await Task.yield()
        told.yield("key \(error.code.rawValue)")
      },
      try container.peer("watch").watchReachability { state in
        await Task.yield()
        told.yield(state == .running ? "it runs" : "it does not run")
      },
      try container.watchMembers { profile in
        await Task.yield()
        told.yield("member \(profile.name) \(profile.isRunning)")
      },
    ]
    try notice.post()
    try await defaults.set(3, forKey: "key")
    let member = try await container.join(as: "watch")
    var missing: Set = ["notice", "key 3", "it runs", "member watch true"]
    var news = heard.makeAsyncIterator()
    while !missing.isEmpty, let word = await news.next() { missing.remove(word) }
    try await defaults.set("text", forKey: "key")
    await member.leave()
    missing = ["key typeMismatch", "it does not run", "member watch false"]
    while !missing.isEmpty, let word = await news.next() { missing.remove(word) }
    #expect(missing == [])
    for watch in watches { watch.stop() }
  }
}
