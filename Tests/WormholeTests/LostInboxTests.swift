import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Directories of a member that another program removes or moves away while the member watches
/// them.
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

    /// Frees the name for the next directory that is moved away.
    func clear(_ part: String, of meeting: Meeting) throws {
      guard self == .moved else { return }
      let away = try run("rm", ["-r", "\(meeting.path)/members/watch/\(part)-away"])
      #expect(away.status == .exited(0), "\(away.errors)")
    }
  }

  /// No message is sent, so only the inbox's own end wakes the receiver.
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
      // This sender has never seen the old inbox, and its first look makes no directory.
      try pair.meeting.another().peer("watch").send(round * 2 + 1, .quick())
      try heard.wait("what is sent afterwards") { $0.count == round * 2 }
      times.append(Instant.now - begin - bystander.allowance())
      try way.clear("inbox", of: pair.meeting)
    }
    #expect(heard.all == [2, 3, 4, 5, 6, 7].map { Handed($0) })
    // The quickest round counts, because a busy machine delays each step.
    #expect(times.min()! < .seconds(1), "\(times)")
    receiving.stop()
  }

  /// The sender may be the process that makes the inbox again.
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

  /// A sender that has the moved inbox open, which still takes messages, soon looks for the new
  /// inbox.
  @Test func whoHasAMovedInboxOpenFindsTheNewOne() throws {
    let pair = try Pair()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try pair.send([1])
    try heard.wait("the first") { $0.count == 1 }
    try Way.moved.take("inbox", of: pair.meeting)
    var last = 1
    try eventually("the newest comes") {
      // The newest message must not have arrived through the moved inbox, if the receiver still
      // watches there.
      let isMadeAgain = (try? pair.files("inbox")) != nil
      if isMadeAgain, last > 1, heard.all.last?.number == last { return true }
      last += 1
      try pair.send([last])
      return false
    }
    // Messages sent before the sender looked for the new inbox went to the moved inbox, where the
    // waiting messages are. One may have been received while the receiver still watched the moved
    // inbox.
    let astray = try pair.files("inbox-away").count
    let numbers = heard.all.map(\.number)
    #expect(numbers == Set(numbers).sorted())
    #expect(numbers.count + astray == last, "\(numbers), and \(astray) went astray")
    #expect(try pair.files("inbox") == [])
    receiving.stop()
  }

  /// A listing must not make a directory again that another program is removing.
  @Test func listingMakesNothing() throws {
    let meeting = try Meeting()
    try meeting.container.peer("watch").send(1, .quick())
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
    let peer = meeting.container.peer("watch")
    try peer.send(1, .quick())
    _ = try run("rm", ["-r", meeting.path + "/members/watch"])
    // The sender may not have noticed the removal. In this case the send fails, and the next send
    // looks for the inbox.
    let isSent = (try? peer.send(2, .quick())) != nil
    let sent = isSent ? 2 : 3
    if !isSent { try peer.send(sent, .quick()) }
    let heard = Heard<Handed>()
    let watch = try meeting.another().join(as: "watch")
    let receiving = try watch.note(heard)
    try heard.wait("it is received") { $0 == [Handed(sent)] }
    receiving.stop()
  }

  /// The name of a new inbox is no more durable than the first inbox's name was.
  @Test func ofANewInboxTheNameIsSyncedToo() throws {
    let meeting = try Meeting()
    let peer = meeting.container.peer("watch")
    try peer.send(1)
    let sync = FaultRule(.fsync, path: "members/watch", number: 2, .fail(.inputOutput))
    // If the inbox's name is durable, a send syncs one directory; otherwise it syncs two.
    _ = try FaultPoints.with([sync]) { try peer.send(2) }
    _ = try run("rm", ["-r", meeting.path + "/members/watch/inbox"])
    _ = try FaultPoints.with([sync]) {
      let error = try failure { try peer.send(3) }
      #expect(error.code == .notDurable)
    }
    #expect(try meeting.names("members/watch/inbox").count == 1)
  }

  /// Half of the pause in a removal after which a removed directory is made again.
  private static let pause = Duration.milliseconds(100)

  /// A watched directory is not made again during its removal, nor afterwards, unless the removal
  /// pauses for longer.
  @Test func aMembersDirectoryCanBeRemoved() throws {
    var quick = 0
    for _ in 0..<60 where quick < 20 {
      let meeting = try Meeting()
      let watch = try meeting.container.join(as: "watch")
      let contexts = try watch.watchContexts { _ in }
      let outcomes = Heard<String>()
      let watching = try watch.watchOutcomes { outcomes.add($0.id) }
      let receiving = try watch.receive { _ in }
      // Waits until the member is idle.
      let sent = try watch.peer("watch").send(1, .quick())
      try outcomes.waitForLast(sent.id)
      try eventually("the receipt is read") {
        try meeting.names("members/watch/receipts").isEmpty
      }
      let begin = Instant.now
      let outcome = try run("rm", ["-r", meeting.path + "/members/watch"])
      let left = try meeting.names("members")
      // A later look may find the directory made again.
      if Instant.now - begin < Self.pause {
        quick += 1
        #expect(outcome.status == .exited(0), "\(outcome.errors)")
        #expect(left == [])
      }
      receiving.stop()
      watching.stop()
      contexts.stop()
    }
    #expect(quick > 0)
  }

  /// The removal may take any time in all, if it never pauses for long.
  @Test func aRemovalThatTakesItsTimeIsNotDisturbed() throws {
    for _ in 0..<100 {
      let meeting = try Meeting()
      let watch = try meeting.container.join(as: "watch")
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
    // The names are reversed: `watch`, whose directory goes, is the sender.
    let heard = Heard<Outcome.Status>()
    let watching = try pair.watch.watchOutcomes { heard.add($0.status) }
    let receiving = try pair.sender.receive { _ in }
    let peer = pair.watch.peer("phone")
    try peer.send(1, .quick())
    try heard.wait("the first") { $0.count == 1 }
    try eventually("its receipt is read") { try pair.files("receipts").isEmpty }
    try way.take("receipts", of: pair.meeting)
    // The first receiver may have the old receipts open; a new receiver does not.
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

  /// No ordinary operation notifies the watch for the end of these directories.
  @Test func ordinaryRunningWakesNobodyForIt() throws {
    let pair = try Pair()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    let outcomes = try pair.watch.watchOutcomes { _ in }
    let signals = Monitor<[WatchSignal]>([])
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
    // Other tests may overflow the kernel's queue, and every watch is notified of an overflow.
    let told = signals.withLock { $0.filter { $0 != .lookAgain } }
    #expect(told == [])
    // This change does notify the watch.
    try pair.watch.update(info: ["battery": "low"])
    try eventually("a name that changes") { signals.withLock { !$0.isEmpty } }
    watch.stop()
    outcomes.stop()
    receiving.stop()
  }
}
