import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Channels whose home is another machine, here another container.
@Suite(.blocking) struct ChannelHomeTests {
  private let home: Meeting
  private let away: Meeting
  private let atHome: Carrier
  private let carrier: Carrier
  /// The channel at home, and its copy.
  private let seats: Channel<Int>
  private let copy: Channel<Int>

  init() throws {
    (home, away) = (try Meeting(Meeting.havePatience), try Meeting(Meeting.havePatience))
    atHome = try Carrier(home.another(Meeting.havePatience))
    carrier = try Carrier(away.another(Meeting.havePatience))
    seats = home.container.channel("seats")
    copy = away.container.channel("seats")
    try seats.put(40)
    try store()
  }

  private func store(_ desk: ChangeDesk? = nil) throws {
    try carrier.store(atHome.content(of: "seats"), of: "seats", from: "home", changesTo: desk)
  }

  /// A desk through which the home makes all changes.
  private func desk() throws -> ChangeDesk {
    let atHome = atHome
    let desk = try carrier.takeChanges { change, answer in
      do {
        answer(try atHome.make(change, for: "away"))
      } catch {
        answer(Carrier.ChannelAnswer(.refused, reason: "\(error)"))
      }
    }
    try store(desk)
    return desk
  }

  // MARK: Copies

  /// An unreadable home is another than an unnamed one.
  @Test func anErrorInReadingTheHomeIsTold() throws {
    let rule = FaultRule(.open, path: "home.plist", persistent: true, .fail(.inputOutput))
    let slot = try away.container.storage.slot(.channels, "seats")
    try FaultPoints.with([rule]) {
      let error = try failure { _ = try slot.home() }
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
    #expect(try slot.home()?.machine == "home")
    // Another process may remove it first.
    for _ in 1...2 { try slot.removeHome() }
    #expect(try slot.home() == nil)
  }

  /// A channel without a value is a copy by its file alone, also after a power cut.
  @Test func theHomeOfAChannelWithoutAValueIsSynced() throws {
    typealias Step = (name: String, change: String, body: () throws -> Void)
    let steps: [Step] = [
      ("one", "rename", { try carrier.store(nil, of: "one", from: "home", changesTo: nil) }),
      ("one", "rename", { try carrier.store(nil, of: "one", from: "home", changesTo: nil) }),
      ("one", "unlink", { try carrier.adopt(Carrier.ChannelLegacy(nil, [:]), as: "one") }),
      ("two", "rename", { _ = try carrier.giveAway("two", to: "home") }),
    ]
    for (name, change, body) in steps {
      let calls = try FaultPoints.with { try body() }
      let file = try #require(
        calls.lastIndex { $0.hasPrefix("\(change) ") && $0.hasSuffix("/\(name)/home.plist") },
        "\(calls)")
      #expect(
        calls[file...].contains { $0.hasPrefix("fsync ") && $0.hasSuffix("/channels/\(name)") },
        "\(calls)")
      if change == "rename" {
        #expect(calls[..<file].contains { $0.hasPrefix("fsync ") }, "the content: \(calls)")
      }
    }
    // A statement of the home about a value that is present waits for no disk.
    let calls = try FaultPoints.with { try store() }
    #expect(calls.contains { $0.hasSuffix("seats/home.plist") }, "\(calls)")
    #expect(!calls.contains { $0.hasPrefix("fsync ") }, "\(calls)")
  }

  @Test func aCopyIsReadAndWatchedLikeAnyChannel() throws {
    let heard = Heard<Int?>()
    let watching = try copy.watch { heard.add($0.value) }
    try heard.waitForLast(40)
    let snapshot = try #require(try copy.latest)
    #expect(snapshot.value == 40 && snapshot.version == 1)
    #expect(snapshot.metadata.home == "home")
    #expect(try #require(snapshot.age) < .seconds(60))
    #expect(try seats.latest?.age == nil && seats.metadata?.home == nil)
    try seats.put(39)
    try store()
    try heard.waitForLast(39)
    try seats.clear()
    try store()
    try heard.waitForLast(nil)
    #expect(try copy.metadata?.version == 3)
    watching.stop()
  }

  /// The age begins anew when the home states that the copy is still the latest.
  @Test func theAgeIsThatOfTheLastWordFromHome() throws {
    let slot = try away.container.storage.slot(.channels, "seats")
    func since(_ date: Date, version: Int) throws -> Date? {
      try slot.setHome(ChannelHome(machine: "home", since: date, version: version))
      return try copy.latest?.metadata.confirmedAt
    }
    let later = Date() + 100
    #expect(try since(later, version: 1) == later)
    #expect(try copy.metadata?.confirmedAt == later)
    // The home has confirmed another version than the copy has.
    #expect(try since(later, version: 2) != later)
    let before = try away.bytes(of: "channels/seats/value.plist")
    try store()
    #expect(try away.bytes(of: "channels/seats/value.plist") == before)
  }

  @Test func aChangeWithoutACarrierIsUnreachable() throws {
    for change in [
      { try copy.put(1) }, { try copy.put(1, ifVersion: 1) }, { try copy.clear() },
      { try copy.update { $0 = 1 } ?? 0 },
      { try away.container.removeChannel("seats") ? 1 : 0 },
    ] as [() throws -> Int] {
      let error = try failure { _ = try change() }
      #expect(error.code == .unreachable && error.reason.contains("'home'"), "\(error)")
    }
    #expect(try failure { try copy.clear(erasing: true) }.code == .unsupported)
    #expect(try copy.value == 40 && copy.metadata?.version == 1)
    // Other channels are as always.
    try away.container.channel("own", of: Int.self).put(1)
  }

  /// Only the file beside the value can say so.
  @Test func aCopyWithoutAValueIsNotChangedEither() throws {
    try carrier.store(nil, of: "new", from: "home", changesTo: nil)
    #expect(try failure { try away.container.channel("new").put(1) }.code == .unreachable)
    try away.overwrite("channels/seats/value.plist", Array("damaged".utf8))
    #expect(try failure { try copy.put(1) }.code == .unreachable)
    try away.overwrite("channels/seats/home.plist", Array("damaged".utf8))
    let error = try failure { try copy.put(1) }
    #expect(error.code == .unreachable && error.reason.contains("does not name"))
    // The carrier repairs both.
    try store()
    #expect(try copy.value == 40)
  }

  @Test func severalChannelsWithACopyAmongThemAreUnsupported() throws {
    let desk = try desk()
    let own = away.container.channel("own", of: Int.self)
    let error = try failure { try away.container.update(own, copy) { ($0, $1) = (1, 1) } }
    #expect(error.code == .unsupported && error.subject == "seats")
    #expect(try own.value == nil && seats.value == 40)
    desk.stop()
  }

  @Test func contentOfThisMachineIsNotReplaced() throws {
    let own = away.container.channel("own", of: Int.self)
    try own.put(1)
    let content = try atHome.content(of: "seats")
    let error = try failure {
      try carrier.store(content, of: "own", from: "home", changesTo: nil)
    }
    #expect(error.code == .conflict)
    #expect(try own.put(2) == 2)
  }

  @Test func theDoctorNamesTheHome() throws {
    let findings = try away.container.storage.inspect()
      .filter { $0.severity != .fine && $0.subject != "file system" }
    #expect(findings.map(\.subject) == ["channels/seats/home.plist"])
    #expect(findings.map(\.what) == ["its home is another machine, 'home'"])
  }

  // MARK: Changes

  @Test func theHomeDecidesOnChanges() throws {
    let desk = try desk()
    #expect(try copy.put(7) == 2)
    #expect(try seats.value == 7)
    #expect(try copy.put(8, ifVersion: 2) == 3)
    #expect(try failure { try copy.put(9, ifVersion: 2) }.code == .conflict)
    // The copy is old, so the body runs on it first, and again on the home's value.
    var seen: [Int?] = []
    let after = try copy.update { value in
      seen.append(value)
      value = (value ?? 0) + 1
    }
    #expect(after == 9 && seen == [40, 8])
    #expect(try seats.latest?.version == 4)
    try store(desk)
    #expect(try copy.update { _ in } == 9)
    #expect(try copy.clear() == 5 && seats.latest?.value == nil)
    #expect(try failure { try copy.clear(erasing: true) }.code == .unsupported)
    desk.stop()
    #expect(try failure { try copy.put(1) }.code == .unreachable)
  }

  @Test func whatTheHomeRefusesIsAnError() throws {
    let desk = try carrier.takeChanges { change, answer in
      answer(
        change.value == .integer(1)
          ? Carrier.ChannelAnswer(.refused, reason: "closed")
          : Carrier.ChannelAnswer(.unreachable, reason: "cut off"))
    }
    try store(desk)
    let refusal = try failure { try copy.put(1) }
    #expect(refusal.code == .refused && refusal.reason == "closed")
    let cut = try failure { try copy.put(2) }
    #expect(cut.code == .unreachable && cut.reason == "cut off")
    desk.stop()
  }

  private func change(_ value: Int, _ operation: String, expected: Int?) -> Carrier.ChannelChange {
    Carrier.ChannelChange(
      channel: "seats", operation: operation, expected: expected, value: .integer(Int64(value)))
  }

  /// Each way to change a value hands on what other machines have asked for last.
  @Test func aChangeThatIsAskedAgainIsMadeOnce() throws {
    #expect(try atHome.make(change(39, "a", expected: 1), for: "one").result == .made)
    #expect(try atHome.make(change(38, "b", expected: 2), for: "two").result == .made)
    let other = home.container.channel("other", of: Int.self)
    for (name, body) in [
      ("put", { try seats.put(30) }), ("update", { try seats.update { $0 = 29 } }),
      ("clear", { try seats.clear() }),
      ("several", { try home.container.update(seats, other) { ($0, $1) = (28, 1) } }),
      ("another process", { try home.another().channel("seats").put(27) }),
      ("another machine", { _ = try atHome.make(change(26, "c", expected: nil), for: "three") }),
      ("another language", { try python(home, "add", "1") }),
    ] as [(String, () throws -> Void)] {
      try body()
      let version = try #require(try seats.latest?.version)
      for (operation, machine) in [("a", "one"), ("b", "two")] {
        let answer = try atHome.make(change(0, operation, expected: 1), for: machine)
        #expect(answer.result == .made && answer.version == version, "\(name)")
      }
      #expect(try seats.latest?.version == version, "\(name)")
    }
    let late = try atHome.make(change(0, "c", expected: 1), for: "one")
    #expect(try late.result == .differs && late.version == seats.latest?.version)
  }

  @discardableResult
  private func python(
    _ meeting: Meeting, _ arguments: String...
  ) throws -> ChildStatus? {
    guard let python = Programs.installed("python3") else {
      skip("changing in Python", missing: "python3")
      return nil
    }
    let program = Programs.source + "/Fixtures/python/take_part.py"
    return try run(python, [program, meeting.path, "seats"] + arguments).status
  }

  @Test func aProgramInAnotherLanguageFindsTheHome() throws {
    if let status = try python(away, "add", "1") { #expect(status == .exited(1)) }
    #expect(try copy.value == 40)
  }

  @Test func changesOfTooManyMachinesAreRefused() throws {
    for number in 0..<256 {
      let answer = try atHome.make(change(number, "x", expected: nil), for: "\(number)")
      try #require(answer.result == .made)
    }
    #expect(try atHome.make(change(0, "x", expected: nil), for: "256").result == .refused)
    #expect(try atHome.make(change(0, "y", expected: nil), for: "3").result == .made)
  }

  // MARK: Kills

  /// The carrier is killed before or after the change at home: the change is made once, and who has
  /// asked for it learns so.
  @Test(.notSanitized("a process for each system call"))
  func aChangeIsMadeOnceWhereverTheCarrierIsKilled() throws {
    var random = SeededRandom(seed: TestRun.seed)
    let some = (1...400).shuffled(using: &random).prefix(TestRun.isLong ? 400 : 8)
    // The first rename to this name is the change at home.
    let rules = ["rename~seats/value.plist@1:after:kill"] + some.map { "any@\($0):before:kill" }
    let rounds = TestRun.isLong ? 3 : 1
    try seats.put(0)
    try store()
    var count = 0
    for rule in (0..<rounds).flatMap({ _ in rules }) {
      func start(_ faults: String) throws -> Running {
        try Running(
          .carry(away.path, home.path, members: [], channels: ["seats"]),
          environment: ["WORMHOLE_FAULTS=\(faults)"])
      }
      var running = try start(rule)
      count += 1
      let result = Monitor<Result<Int?, any Error>?>(nil)
      let copy = copy
      // Before the change is asked, the carrier must have said where; it may be killed before.
      try? eventually("it carries", within: .seconds(5)) {
        try running.hasEnded || running.output.contains("carrying")
      }
      let asker = try Thread("asker") {
        let found = Result { try Self.untilAsked { try copy.update { $0 = ($0 ?? 0) + 1 } } }
        result.signal { $0 = found }
      }
      try eventually("\(rule): the change is made", within: .seconds(60)) {
        if running.hasEnded { running = try start("") }
        return result.withLock { $0 != nil }
      }
      asker.join()
      let made = try #require(try result.withLock { $0 }?.get())
      #expect(made == count, "\(rule) seed \(TestRun.seed)")
      #expect(try seats.value == count, "\(rule) seed \(TestRun.seed)")
      try? running.child.send(.kill)
      _ = try running.outcome()
    }
  }

  /// While no carrier runs, nothing is asked, and nothing is changed.
  private static func untilAsked<Value>(_ body: () throws -> Value) throws -> Value {
    let end = Instant.now + patience
    while true {
      do {
        return try body()
      } catch let error as WormholeError where error.code == .unreachable && Instant.now < end {
        let _: Void? = Monitor(()).wait(until: .now + .milliseconds(5)) { _ in nil }
      }
    }
  }
}
