import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing
import Wormhole

/// Directories of a member that somebody removes, or moves away, while they are listened to.
@Suite(.blocking) struct LostInboxTests {
  enum Way: CaseIterable, Sendable {
    case removed, moved

    func take(_ part: String, of meeting: Meeting) throws {
      let path = "\(meeting.path)/members/watch/\(part)"
      let command =
        switch self {
        case .removed: try run("rm", ["-r", path])
        case .moved: try run("mv", [path, path + "-away"])
        }
      #expect(command.status == .exited(0), "\(command.errors)")
    }

    /// Makes room for the next that is moved away.
    func clear(_ part: String, of meeting: Meeting) throws {
      guard self == .moved else { return }
      let away = try run("rm", ["-r", "\(meeting.path)/members/watch/\(part)-away"])
      #expect(away.status == .exited(0), "\(away.errors)")
    }
  }

  /// Nobody sends anything, so nothing but its end wakes the receiver.
  @Test(arguments: Way.allCases)
  func anInboxIsThereAgainAndListenedTo(_ way: Way) throws {
    let pair = try Pair()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    var times: [Duration] = []
    for round in 1...3 {
      try pair.meeting.another().peer("watch").send(round * 2, .quick())
      try heard.wait("what is sent before") { $0.count == round * 2 - 1 }
      try eventually("it is acknowledged") { try pair.files("claimed").isEmpty }
      try way.take("inbox", of: pair.meeting)
      let (begin, bystander) = (Instant.now, try Bystander())
      try eventually("it is made again") { (try? pair.files("inbox")) == [] }
      // By one that has never seen the old one, and whose first look at it makes none.
      try pair.meeting.another().peer("watch").send(round * 2 + 1, .quick())
      try heard.wait("what is sent afterwards") { $0.count == round * 2 }
      times.append(Instant.now - begin - bystander.allowance())
      try way.clear("inbox", of: pair.meeting)
    }
    #expect(heard.all == [2, 3, 4, 5, 6, 7].map { Handed($0) })
    // The quickest, as a machine that is busy holds up each step of it.
    #expect(times.min()! < .seconds(1), "\(times)")
    receiving.stop()
  }

  /// A sender may be the one that makes it again.
  @Test(arguments: Way.allCases)
  func whatIsSentMeanwhileComesInOrder(_ way: Way) throws {
    let pair = try Pair()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    for round in 0..<20 {
      try way.take("inbox", of: pair.meeting)
      let numbers = (round * 10 + 1)...(round * 10 + 10)
      let sender = try pair.meeting.another().peer("watch")
      for number in numbers { try sender.send(number, .quick()) }
      try heard.wait("round \(round)") { $0.count == numbers.upperBound }
      try way.clear("inbox", of: pair.meeting)
    }
    #expect(heard.all == (1...200).map { Handed($0) })
    receiving.stop()
  }

  /// A sender that has the directory open, which goes on taking messages, looks for it soon.
  @Test func whoHasAMovedInboxOpenFindsTheNewOne() throws {
    let pair = try Pair()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try pair.send([1])
    try heard.wait("the first") { $0.count == 1 }
    try Way.moved.take("inbox", of: pair.meeting)
    var last = 1
    try eventually("the newest comes") {
      // Not through the one that was moved, where the receiver may listen still.
      let isMadeAgain = (try? pair.files("inbox")) != nil
      if isMadeAgain, last > 1, heard.all.last?.number == last { return true }
      last += 1
      try pair.send([last])
      return false
    }
    // What was sent before it looked went where all went that were waiting; one of those may have
    // come, while the receiver listened there still.
    let astray = try pair.files("inbox-away").count
    let numbers = heard.all.map(\.number)
    #expect(numbers == Set(numbers).sorted())
    #expect(numbers.count + astray == last, "\(numbers), and \(astray) went astray")
    #expect(try pair.files("inbox") == [])
    receiving.stop()
  }

  /// Who looks at what somebody is removing must not undo it.
  @Test func listingMakesNothing() throws {
    let meeting = try Meeting()
    try meeting.hole.peer("watch").send(1, .quick())
    let container = try Container.open(meeting.path)
    let home = try #require(try container.existingMember("watch"))
    func count() throws -> Int {
      var count = 0
      try home.list(.inbox) { _ in count += 1 }
      return count
    }
    let inbox = meeting.path + "/members/watch/inbox"
    for isOpen in [false, true] {
      if isOpen { #expect(try count() == 1) }
      #expect(try run("rm", ["-r", inbox]).status == .exited(0))
      #expect(try count() == 0)
      #expect(try !meeting.names("members/watch").contains("inbox"))
      try meeting.another().peer("watch").send(2, .quick())
    }
    #expect(try count() == 1)
  }

  @Test func whoHasARemovedMemberOpenMakesItAgain() throws {
    let meeting = try Meeting()
    let peer = meeting.hole.peer("watch")
    try peer.send(1, .quick())
    _ = try run("rm", ["-r", meeting.path + "/members/watch"])
    // It may not have noticed; but then it is told, and looks for the next message.
    let isSent = (try? peer.send(2, .quick())) != nil
    let sent = isSent ? 2 : 3
    if !isSent { try peer.send(sent, .quick()) }
    let heard = Heard<Handed>()
    let watch = try meeting.another().join(as: "watch")
    let receiving = try watch.note(heard)
    try heard.wait("it is received") { $0 == [Handed(sent)] }
    receiving.stop()
  }

  /// The name of one that was made again is no more durable than that of the first was.
  @Test func ofANewInboxTheNameIsSyncedToo() throws {
    let meeting = try Meeting()
    let peer = meeting.hole.peer("watch")
    try peer.send(1)
    let sync = FaultRule(.fsync, path: "members/watch", number: 2, .fail(.inputOutput))
    // Of one whose name is durable there is one directory to be synced, and of others two.
    _ = try FaultPoints.with([sync]) { try peer.send(2) }
    _ = try run("rm", ["-r", meeting.path + "/members/watch/inbox"])
    _ = try FaultPoints.with([sync]) {
      let error = try failure { try peer.send(3) }
      #expect(error.code == .notDurable)
    }
    #expect(try meeting.names("members/watch/inbox").count == 1)
  }

  /// Half of how long a removal may pause before what it has removed is made again.
  private static let pause = Duration.milliseconds(100)

  /// What is listened to is not made again in the middle of its removal, nor afterwards; unless
  /// that is held up for so long.
  @Test func aMembersDirectoryCanBeRemoved() throws {
    var quick = 0
    for _ in 0..<60 where quick < 20 {
      let meeting = try Meeting()
      let watch = try meeting.hole.join(as: "watch")
      let contexts = try watch.watchContexts { _ in }
      let outcomes = Heard<String>()
      let watching = try watch.watchOutcomes { outcomes.add($0.id) }
      let receiving = try watch.receive { _ in }
      // Once it has come to rest.
      let sent = try watch.peer("watch").send(1, .quick())
      try outcomes.waitForLast(sent.id)
      try eventually("the receipt is read") {
        try meeting.names("members/watch/receipts").isEmpty
      }
      let begin = Instant.now
      let outcome = try run("rm", ["-r", meeting.path + "/members/watch"])
      if Instant.now - begin < Self.pause {
        quick += 1
        #expect(outcome.status == .exited(0), "\(outcome.errors)")
        #expect(try meeting.names("members") == [])
      }
      receiving.stop()
      watching.stop()
      contexts.stop()
    }
    #expect(quick > 0)
  }

  /// However long it takes in all, as long as it goes on.
  @Test func aRemovalThatTakesItsTimeIsNotDisturbed() throws {
    for _ in 0..<100 {
      let meeting = try Meeting()
      let watch = try meeting.hole.join(as: "watch")
      let receiving = try watch.receive { _ in }
      defer { receiving.stop() }
      let folder = try meeting.folder("members/watch")
      let names = try meeting.names("members/watch").filter { $0 != "inbox" }
      var (longest, latest) = (Duration.zero, Instant.now)
      func step() {
        longest = max(longest, Instant.now - latest)
        latest = .now
      }
      for name in ["inbox"] + names {
        if try folder.status(of: name).kind == .directory {
          try meeting.folder("members/watch/" + name).removeContents()
          try folder.removeDirectory(name)
        } else {
          try folder.unlink(name)
        }
        let _: Void? = Monitor(0).wait(until: .now + .milliseconds(30)) { _ in nil }
        step()
      }
      let left = try meeting.names("members/watch")
      step()
      guard longest < Self.pause else { continue }
      #expect(left == [])
      return
    }
    Issue.record("each removal was held up")
  }

  @Test(arguments: Way.allCases)
  func receiptsAreListenedToAnew(_ way: Way) throws {
    let pair = try Pair()
    // The names are the other way round: the one whose directory goes is the one who sends.
    let heard = Heard<Wormhole.Outcome.End>()
    let watching = try pair.watch.watchOutcomes { heard.add($0.end) }
    let receiving = try pair.sender.receive { _ in }
    let peer = pair.watch.peer("phone")
    try peer.send(1, .quick())
    try heard.wait("the first") { $0.count == 1 }
    try eventually("its receipt is read") { try pair.files("receipts").isEmpty }
    try way.take("receipts", of: pair.meeting)
    // The receiver may have the old ones open; another one has not.
    receiving.stop()
    pair.sender.leave()
    let other = try pair.meeting.another().join(as: "phone")
    let next = try other.receive { _ in }
    try peer.send(2, .quick())
    try heard.wait("the second") { $0 == [.delivered, .delivered] }
    next.stop()
    watching.stop()
  }

  @Test(arguments: Way.allCases)
  func contextsAreListenedToAnew(_ way: Way) throws {
    let pair = try Pair()
    let heard = Heard<Int>()
    let watching = try pair.watch.watchContexts { context in
      heard.add((try? context.value()) ?? -1)
    }
    for number in 1...3 {
      let sender = try pair.meeting.another().peer("watch", from: "phone")
      try sender.setContext(number)
      try heard.waitForLast(number)
      try eventually("it is received") { try pair.files("context") == ["phone"] }
      try way.take("context", of: pair.meeting)
      try way.clear("context", of: pair.meeting)
    }
    watching.stop()
  }

  /// What the watch for their end is told by: nothing that happens all the time.
  @Test func ordinaryRunningWakesNobodyForIt() throws {
    let pair = try Pair()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    let outcomes = try pair.watch.watchOutcomes { _ in }
    let signals = Monitor<[Watcher.Signal]>([])
    let watch = try Watcher.shared.watch(
      pair.meeting.folder("members/watch"), [.created, .movedTo, .deleted, .movedFrom]
    ) { signal in signals.withLock { $0.append(signal) } }
    for start in stride(from: 1, to: 400, by: 4) {
      try pair.send([start])
      try pair.phone.send(contentsOf: [start + 1, start + 2], .quick())
      try pair.send([start + 3]) { $0.durability = .power }
      try pair.watch.peer("phone").send(start, .quick())
    }
    try heard.wait("all") { $0.count == 400 }
    // Other tests may make the kernel's queue flow over, which all are told.
    let told = signals.withLock { $0.filter { $0 != .lookAgain } }
    #expect(told == [])
    // This one it does hear.
    try pair.watch.update(info: ["battery": "low"])
    try eventually("a name that changes") { signals.withLock { !$0.isEmpty } }
    watch.stop()
    outcomes.stop()
    receiving.stop()
  }
}
