import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// The findings of an inspection, and the effects of a repair.
@Suite(.blocking) struct InspectionTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot

  init() throws { (folder, container, slot) = try Container.forTest(holding: 3) }

  private func open(_ path: String) throws -> Descriptor {
    try Descriptor.open(path: container.path + path, [.readOnly, .directory])
  }

  private func problems() throws -> [Diagnosis] {
    try container.inspect().filter { $0.severity == .problem && $0.subject != "file system" }
  }

  @Test func aHealthyContainerHasNoProblems() throws {
    #expect(try problems() == [])
    #expect(try container.inspect().contains { $0.subject == "container" && $0.severity == .fine })
    #expect(try container.repair() == [])
  }

  @Test func damageIsFoundAndHealed() throws {
    let directory = try open("/channels/n")
    try directory.open("bad", [.writeOnly, .create], mode: 0o600).write("not a property list")
    try directory.rename("bad", to: directory, "value.plist")
    let found = try problems()
    #expect(found.map(\.subject) == ["channels/n/value.plist"])
    #expect(found.first?.isRepairable == true)
    #expect(try container.repair() == found)
    #expect(try slot.number() == 2)
    // A damaged file that was set aside stays, and is reported until a person has looked at it.
    #expect(try problems().allSatisfy { $0.subject.hasPrefix("damaged/") })
    #expect(try problems().count == 1)
  }

  /// The time is over before the second look, which confirms the finding.
  @Test func aFindingThatIsConfirmedLateIsReported() throws {
    let directory = try open("/channels/n")
    try directory.open("bad", [.writeOnly, .create], mode: 0o600).write("not a property list")
    try directory.rename("bad", to: directory, "value.plist")
    var time = Duration.milliseconds(25)
    let findings = try eventually("there is time for the first look") { () -> [Diagnosis]? in
      let (findings, unchecked) = try container.inspect(within: time)
      time *= 2
      return unchecked == 0 ? findings : nil
    }
    let found = try #require(findings.first { $0.subject == "channels/n/value.plist" })
    #expect(found.isRepairable)
  }

  /// A copy of another machine's channel is in order; a home that cannot be read is not.
  @Test func aHomeThatCannotBeReadIsAProblem() throws {
    try slot.setHome(ChannelHome(machine: "other"))
    let path = "channels/n/home.plist"
    #expect(try container.inspect().first { $0.subject == path }?.severity == .note)
    #expect(try problems() == [])
    let directory = try open("/channels/n")
    try directory.unlink("home.plist")
    try directory.open("home.plist", [.writeOnly, .create], mode: 0o600).write("no list")
    #expect(try problems().map(\.subject) == [path])
  }

  @Test func damageWithoutAKeptValueIsNotTouched() throws {
    let directory = try open("/channels/n")
    try directory.open("bad", [.writeOnly, .create], mode: 0o600).write("not a property list")
    try directory.rename("bad", to: directory, "value.plist")
    try directory.unlink("kept.plist")
    #expect(try problems().first?.isRepairable == false)
    #expect(try container.repair() == [])
    #expect(try directory.open("value.plist", [.readOnly]).contents().starts(with: "not".utf8))
  }

  @Test func whatTheDeadLeftIsFoundAndSwept() throws {
    try open("/staging").makeDirectory("0123456789abcdef", mode: 0o700)
    _ = try open("/channels/n/lock/1.d").open("next", [.writeOnly, .create], mode: 0o600)
    #expect(
      Set(try problems().map(\.subject))
        == ["staging/0123456789abcdef", "channels/n/lock/1.d/next"])
    #expect(try container.repair().count == 2)
    #expect(try problems() == [])
  }

  /// A holder's next value is there until its commit.
  @Test func whatAHolderHasStagedIsNoLeftover() throws {
    let found = try slot.hold("hold") { _ in
      _ = try open("/channels/n/lock/1.d").open("next", [.writeOnly, .create], mode: 0o600)
      return try problems()
    }
    #expect(found.result == [])
  }

  /// A file that a program is just making, and has not locked yet, looks like the leftover of a
  /// dead process.
  @Test func whatIsGoneAtASecondLookWasNobodysLeftover() throws {
    let staging = try open("/staging")
    try staging.makeDirectory("0123456789abcdef", mode: 0o700)
    let found = try container.inspect { try? staging.removeDirectory("0123456789abcdef") }
    #expect(found.allSatisfy { !$0.subject.hasPrefix("staging/") })
    #expect(found.contains { $0.subject == "container" })
  }

  @Test func foreignFilesAreToldAndLeft() throws {
    for place in ["", "/channels", "/channels/n", "/channels/n/lock", "/staging"] {
      _ = try open(place).open("notes.txt", [.writeOnly, .create], mode: 0o600)
    }
    let found = try container.inspect().filter { $0.what.hasPrefix("a foreign file") }
    #expect(found.count == 5)
    #expect(found.allSatisfy { $0.severity == .note && !$0.isRepairable })
    _ = try container.repair()
    #expect(try container.inspect().filter { $0.what.hasPrefix("a foreign file") }.count == 5)
  }

  /// A generation is foreign only if no process can have reached it.
  @Test func aMillionTakeoversMakeNothingForeign() throws {
    let lock = try open("/channels/n/lock")
    func touch(_ name: String) throws {
      _ = try lock.open(name, [.writeOnly, .create], mode: 0o600)
    }
    func foreign() throws -> [String] {
      try container.inspect().filter { $0.what.hasPrefix("a foreign file") }.map(\.subject)
    }
    for name in ["999998", "999999", "1000000", "1000001", "1000001.d"] { try touch(name) }
    #expect(try foreign() == [])
    for name in ["1000003", "1000003.d", "9223372036854775807", "0", "-1", "01"] { try touch(name) }
    #expect(
      try foreign().map { $0.split(separator: "/").last! }
        == ["-1", "0", "01", "1000003", "1000003.d", "9223372036854775807"])
  }

  @Test func aStoppedHolderIsNamed() throws {
    let stopped = try Running(
      .stopInside(container.path, "n"))
    try stopped.waitUntilStopped()
    let found = try problems()
    #expect(found.map(\.subject) == ["channels/n/lock/1"])
    #expect(
      found.first?.what == "held by 'TestPeer' (process \(stopped.child.process), stopped)")
  }
}
