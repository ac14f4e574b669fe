import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Permanent removals, while other programs use the removed objects.
@Suite(.blocking) struct RemovingTests {
  private let folder: TemporaryDirectory
  private let path: String
  private let container: SharedContainer

  init() throws {
    folder = try TemporaryDirectory()
    path = folder.path + "/c"
    var options = Options()
    options.lease = .milliseconds(100)
    container = try SharedContainer(directory: path, options: options)
  }

  private func names(_ folder: String) throws -> [String] {
    try Descriptor.open(path: path + "/" + folder, [.readOnly, .directory]).names().sorted()
  }

  /// For example, a program of a later version has written the value a moment ago.
  @Test func aValueOfUnknownFormIsNotTakenForAnOldOne() throws {
    let meeting = try Meeting()
    let (container, bytes) = (meeting.container, try BinaryPropertyList.encode(["later": 1]))
    try container.channel("number").put(1)
    try container.defaults("app").set(1, forKey: "volume")
    try meeting.overwrite("channels/number/value.plist", bytes)
    try meeting.overwrite("system/defaults.app/value.plist", bytes)
    #expect(try !container.removeChannel("number", writtenBefore: .distantFuture))
    #expect(try !container.removeDefaults("app", writtenBefore: .distantFuture))
    #expect(try meeting.bytes(of: "channels/number/value.plist") == bytes)
    #expect(try meeting.bytes(of: "system/defaults.app/value.plist") == bytes)
    try container.channel("number").put(2)
    #expect(try container.removeChannel("number", writtenBefore: .distantFuture))
  }

  /// The previous value stands in for the damaged one, whose time is unknown.
  @Test func aDamagedValueIsNotAsOldAsThePreviousOne() throws {
    let meeting = try Meeting()
    let number = meeting.container.channel("number", of: Int.self)
    for value in 1...2 { try number.put(value, durability: .power) }
    try meeting.overwrite("channels/number/value.plist", Array("damaged".utf8))
    #expect(try number.metadata?.isRecovered == true)
    #expect(try !meeting.container.removeChannel("number", writtenBefore: .distantFuture))
    #expect(try number.value == 1)
  }

  @Test func aMemberIsRemovedUnlessSomebodyNeedsIt() throws {
    let member = try container.join(as: "tv")
    #expect(
      #expect(throws: WormholeError.self) { try container.removeMember("tv") }?.code == .nameTaken)
    try container.peer("tv").send("hello")
    member.leave()
    let error = #expect(throws: WormholeError.self) { try container.removeMember("tv") }
    #expect(error?.code == .refused)
    #expect(error?.reason == "its queue contains messages")
    let message = try #require(try container.peer("tv").queue.first)
    #expect(try container.peer("tv").cancel(id: message.id) == .cancelled)
    #expect(try container.removeMember("tv"))
    #expect(try !container.removeMember("tv"))
    #expect(try names("members") == [])
    #expect(try container.members().isEmpty)
  }

  /// A message and its file go to the same directory, whichever of the two is in progress when the
  /// member is removed.
  @Test func noFileIsRefusedForARemoval() throws {
    try folder.write("film", to: "film")
    let (other, file) = (try SharedContainer(directory: path), folder.path + "/film")
    let (isOver, errors) = (Monitor(false), Heard<String>())
    let sender = try Thread("sender") {
      for number in 1...60 {
        do {
          try other.peer("tv").send(file: file, .quick())
        } catch {
          errors.add("\(number): \(error)")
        }
      }
      isOver.withLock { $0 = true }
    }
    var messages = 0
    func takeBack() throws {
      for message in try container.peer("tv").queue {
        if try container.peer("tv").cancel(id: message.id) == .cancelled { messages += 1 }
      }
    }
    while !isOver.withLock({ $0 }) {
      do {
        _ = try container.removeMember("tv")
      } catch {
        #expect([.refused, .conflict].contains(error.code), "\(error)")
        try takeBack()
      }
    }
    try takeBack()
    sender.join()
    #expect(errors.all == [])
    #expect(messages == 60)
    #expect(try container.removeMember("tv"), "no file is left over")
  }

  /// A process that sends or joins during the removal finds the directory, or makes it again.
  @Test func noMessageIsLostInARemoval() throws {
    let sender = try Running(.send(path, from: "phone", to: "tv", 1..<301))
    var messages = 0
    func takeBack() throws {
      for message in try container.peer("tv").queue {
        if try container.peer("tv").cancel(id: message.id) == .cancelled {
          messages += message.count
        }
      }
    }
    while !sender.hasEnded {
      do {
        _ = try container.removeMember("tv")
      } catch {
        #expect([.refused, .conflict].contains(error.code), "\(error)")
        try takeBack()
      }
    }
    let outcome = try sender.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    try takeBack()
    #expect(messages == 300)
  }

  // MARK: Channels and suites

  /// Each watcher is notified that the channel is clear, and continues; versions never go back.
  @Test func whoeverWatchesHearsOfARemoval() throws {
    let channel = container.channel("speed", of: Int.self)
    let heard = Heard<String>()
    let versions = Heard<Int>()
    let others = Heard<String>()
    let other = try SharedContainer(directory: path)
    let watches = [
      try channel.watch {
        heard.add($0.value.map(String.init) ?? "clear")
        versions.add($0.version)
      },
      try other.watch(prefix: "sp", of: Int.self) {
        others.add($0.value.map(String.init) ?? "clear")
      },
    ]
    defer { for watch in watches { watch.stop() } }
    for round in 1...100 {
      try channel.put(round)
      try heard.waitForLast("\(round)")
      try others.waitForLast("\(round)")
      #expect(try (round % 2 == 0 ? container : other).removeChannel("speed"))
      #expect(try channel.latest == nil)
      #expect(try names("channels") == [])
      try heard.waitForLast("clear")
      try others.waitForLast("clear")
    }
    #expect(heard.all == (1...100).flatMap { ["\($0)", "clear"] })
    #expect(others.all == heard.all)
    #expect(versions.all == versions.all.sorted())
    #expect(Set(versions.all).count == versions.count, "no version comes twice")
    #expect(try !container.removeChannel("speed"))
    let last = try #require(versions.all.last)
    #expect(try channel.put(1, ifVersion: 0) > last)
    try heard.waitForLast("1")
    // A removal by another tool is not reported.
    #expect(try run("rm", ["-r", path + "/channels/speed"]).status == .exited(0))
    try channel.put(7)
    try heard.waitForLast("7")
    #expect(heard.all.suffix(2) == ["1", "7"])
  }

  /// Too many files are open when the watcher reads the versions of removed channels.
  ///
  /// The watcher reads the channel after the removal, and no further change notifies it.
  @Test(arguments: [false, true]) func aRemovalThatCannotBeReadIsReadAgain(
    _ leaves: Bool
  ) throws {
    let channel = container.channel("speed", of: Int.self)
    let slot = try channel.slot.get()
    let feed = SlotFeed(slot, container.options.limits, MailTime())
    let (heard, calls) = (Heard<Stamp>(), Monitor(0))
    let listener = Listener(seen: [:]) { heard.add($0.stamp) }
    defer { listener.stop() }
    try listener.begin()
    let refusal = FaultRule(
      .open, path: "system/removed", persistent: true, .fail(.tooManyOpenFiles))
    listener.join(
      "speed",
      ChangeSource(
        look: { feed.look() },
        loss: { version in
          let isFirst = calls.withLock { calls in
            calls += 1
            return calls == 1
          }
          var loss: WatchResult?
          FaultPoints.with(isFirst ? [refusal] : []) { loss = feed.loss(after: version) }
          return loss
        }, leave: {}))
    try channel.put(1)
    listener.change("speed")
    try heard.wait("the value") { $0.count == 1 }
    #expect(try container.removeChannel("speed"))
    if leaves { listener.leaveOnceGone("speed") } else { listener.change("speed") }
    #expect(throws: Never.self) { try heard.wait("the removal") { $0.count == 3 } }
    guard case .failed(let error)? = heard.all.dropFirst().first else {
      Issue.record("\(heard.all)")
      return
    }
    #expect(error.code == .exhausted && error.subject == "speed")
    guard case .version(2, _, recovered: false)? = heard.all.last else {
      Issue.record("\(heard.all)")
      return
    }
  }

  /// The channel is made again while a watcher of its prefix is about to leave it.
  @Test func whatComesAgainWhileItIsLeftIsHeard() throws {
    let heard = Heard<Int>()
    let listener = Listener(seen: [:]) { finding in
      if case .version(let version, _, _) = finding.stamp { heard.add(version) }
    }
    defer { listener.stop() }
    let channel = container.channel("speed", of: Int.self)
    let (feeds, slot) = (container.feeds, try channel.slot.get())
    let (_, source) = try feeds.source(for: listener, slot)
    let (left, errors) = (Monitor(false), Heard<String>())
    let nothing = ChangeSource(
      look: { WatchResult(name: "speed", stamp: .nothing) },
      leave: { [weak listener] in
        do {
          if let listener { try feeds.join(listener, slot) }
        } catch {
          errors.add("\(error)")
        }
        source.leave()
        left.withLock { $0 = true }
      })
    listener.join("speed", nothing)
    listener.leaveOnceGone("speed")
    try eventually("it is left") { left.withLock { $0 } }
    #expect(errors.all == [])
    #expect(feeds.listenerCount == 1, "it is there again")
    for version in 1...3 {
      try channel.put(version)
      try heard.waitForLast(version)
    }
    listener.stop()
    #expect(feeds.listenerCount == 0)
  }

  /// The highest removed version counts, and not the last one.
  @Test func newChannelsContinueFromTheHighestRemovedVersion() throws {
    for (name, count) in [("far", 31), ("near", 3)] {
      for number in 1...count { try container.channel(name, of: Int.self).put(number) }
    }
    #expect(try container.removeChannel("far"))
    #expect(try container.removeChannel("near"))
    // A removal is a version of its own: the 32nd of the first channel.
    #expect(try container.channel("near", of: Int.self).put(1) == 33)
    #expect(try container.channel("new", of: Int.self).put(1) == 33)
  }

  /// The previous record lacks the latest removal.
  @Test(arguments: [true, false], [true, false])
  func aDamagedRecordOfRemovalsRepeatsNoVersion(_ isRepaired: Bool, _ hasPrevious: Bool) throws {
    let (meeting, record) = (try Meeting(), "system/removed/value.plist")
    let container = meeting.container
    try container.channel("small", of: Int.self).put(1)
    for name in ["near", "far"] {
      for number in 1...5 { try container.channel(name, of: Int.self).put(number) }
      #expect(try container.removeChannel(name))
    }
    if !hasPrevious {
      try Descriptor.open(path: meeting.path + "/system/removed", [.readOnly, .directory])
        .unlink("kept.plist")
    }
    try meeting.overwrite(record, [1, 2, 3])
    if isRepaired {
      #expect(try container.repair().contains { $0.subject == record })
      #expect(try !container.inspect().contains { $0.subject == record })
    }
    // Versions after damage are microseconds since 1970.
    let large = 1_500_000_000_000_000
    #expect(try container.channel("far", of: Int.self).put(1) > large)
    #expect(try container.removeChannel("small"))
    #expect(try container.channel("small", of: Int.self).put(1) > large)
  }

  @Test func aSuiteIsRemoved() throws {
    let suite = container.defaults("app")
    try suite.set("dark", forKey: "theme")
    let heard = Heard<String>()
    let watch = try suite.watch("theme", of: String.self) { heard.add($0 ?? "none") }
    defer { watch.stop() }
    try heard.waitForLast("dark")
    #expect(try SharedContainer(directory: path).removeDefaults("app"))
    try heard.waitForLast("none")
    #expect(try names("system").filter { $0 != "removed" } == [])
    #expect(try suite.dictionaryRepresentation() == [:])
    #expect(try !container.removeDefaults("app"))
    try suite.set("light", forKey: "theme")
    try heard.waitForLast("light")
    let error = #expect(throws: WormholeError.self) {
      try container.removeDefaults(String(repeating: "x", count: 200))
    }
    #expect(error?.operation == "remove suite")
  }

  /// The removed value is neither in its place nor beside it.
  @Test func whatIsRemovedCanBeReadNowhere() throws {
    let channel = container.channel("password", of: String.self)
    for number in 0..<3 { try channel.put("secret \(number)", durability: .power) }
    #expect(try run("grep", ["-rq", "secret", path]).status == .exited(0))
    #expect(try container.removeChannel("password"))
    #expect(try run("grep", ["-rq", "secret", path]).status == .exited(1))
  }
}
