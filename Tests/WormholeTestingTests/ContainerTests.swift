import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

@testable import WormholeTesting

/// Containers of a test's own, and members in one process and in two.
@Suite struct ContainerTests {
  @Test(.blocking) func containerGoesWithItsObject() throws {
    var container: TemporaryContainer? = try TemporaryContainer()
    let directory = try #require(container?.directory)
    let path = try #require(container?.path)
    do {
      let shared = try #require(try container?.open())
      #expect(shared.directory == path)
      try shared.channel("speed", of: Int.self).put(88)
    }
    #expect((try? Descriptor.open(path: path, [.readOnly, .directory])) != nil)
    container = nil
    let parent = try Descriptor.open(path: "/", [.readOnly, .directory])
    #expect(throws: Errno.noSuchFile) { try parent.status(of: String(directory.dropFirst())) }
  }

  @Test(.blocking) func testsTouchNoneOfTheAccountsGroups() throws {
    let home = try TemporaryDirectory()
    let outcome = try run(
      .testGroups("group.test"),
      environment: [
        "WORMHOLE_ROOT=", "HOME=\(home.path)", "XDG_STATE_HOME=\(home.path)/state",
        "TMPDIR=\(home.path)",
      ])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.count == 3)
    #expect(lines[0].hasPrefix(lines[2]) && lines[0].hasSuffix(".wormhole"))
    #expect(lines[1] == lines[2])
    #expect(lines[2].hasPrefix("\(home.path)/wormhole-testing-groups-"))
    #expect(try !home.descriptor.names().contains("state"))
    // The next run removes the leftovers of the first run.
    _ = try run(
      .testGroups("group.test"),
      environment: ["WORMHOLE_ROOT=", "HOME=\(home.path)", "TMPDIR=\(home.path)"])
    let left = try home.descriptor.names().filter { $0.hasPrefix("wormhole-testing-groups-") }
    #expect(left.count == 1)
  }

  @Test(.blocking) func theGroupsOfEndedTestsAreRemovedBehindALink() throws {
    let home = try TemporaryDirectory()
    let name = "wormhole-testing-groups-\(Int32.max)-1"
    try home.descriptor.makeDirectory("real", mode: 0o700)
    try home.descriptor.makeSymbolicLink("link", to: "real")
    let real = try home.descriptor.open("real", [.readOnly, .directory])
    try real.makeDirectory(name, mode: 0o700)
    _ = try run(
      .testGroups("group.test"), environment: ["WORMHOLE_ROOT=", "TMPDIR=\(home.path)/link"])
    #expect(try !real.names().contains(name))
  }

  /// The directory could not be made for a moment.
  @Test(.blocking) func theDirectoryOfTheGroupsIsTriedAgain() throws {
    let home = try TemporaryDirectory()
    let outcome = try run(
      .testGroups("group.test"),
      environment: [
        "WORMHOLE_ROOT=", "TMPDIR=\(home.path)",
        "WORMHOLE_FAULTS=mkdir~wormhole-testing-groups-:before:fail=ENOSPC",
      ])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
  }

  /// Otherwise the directory would be in the root directory, where it may be refused.
  @Test(.blocking) func anEmptyTMPDIRIsAsNone() throws {
    let outcome = try run(
      .testGroups("group.test"), environment: ["WORMHOLE_ROOT=", "TMPDIR="])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    let root = String(try #require(outcome.output.split(separator: "\n").last))
    #expect(root.split(separator: "/").count == 2)
    // Another test may remove the directory at the same time.
    do throws(Errno) {
      try removeContents(Descriptor.open(path: root, .readOnlyDirectory))
      try Descriptor.removeDirectory(path: root)
    } catch {}
  }

  /// Its process cannot be seen from here.
  @Test(.blocking) func theGroupsOfATestInAnotherNamespaceAreLeft() throws {
    let home = try TemporaryDirectory()
    let name = "wormhole-testing-groups-\(Int32.max)-1"
    try home.descriptor.makeDirectory(name, mode: 0o700)
    let directory = try home.descriptor.open(name, [.readOnly, .directory])
    #expect(try directory.tryLock(.shared))
    func testGroups() throws -> [String] {
      let outcome = try run(
        .testGroups("group.test"), environment: ["WORMHOLE_ROOT=", "TMPDIR=\(home.path)"])
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
      return try home.descriptor.names()
    }
    #expect(try testGroups().contains(name))
    try directory.unlock()
    #expect(try !testGroups().contains(name))
  }

  /// The process of the sweep is in another namespace, and its lock comes first.
  @Test(.blocking) func aDirectoryThatASweepRemovesIsMadeAgain() throws {
    let home = try TemporaryDirectory()
    let (name, isLocked) = ("groups", Heard<Bool>())
    let path = home.path + "/" + name
    try home.descriptor.makeDirectory(name, mode: 0o700)
    let swept = try home.descriptor.open(name, [.readOnly, .directory])
    #expect(try swept.tryLock(.exclusive))
    let making = try WormholeSyscalls.Thread("making") {
      let kept = try? TestGroups.makeLocked(path)
      let other = try? Descriptor.open(path: path, [.readOnly, .directory]).tryLock(.exclusive)
      isLocked.add(withExtendedLifetime(kept) { kept != nil && other == false })
    }
    let _: Void? = Monitor(0).wait(until: .now + .milliseconds(50)) { _ in nil }
    #expect(isLocked.all == [])
    try home.descriptor.removeDirectory(name)
    try swept.unlock()
    making.join()
    #expect(isLocked.all == [true])
  }

  @Test(.blocking) func whatGoesOnInItIsEndedFirst() throws {
    let failures = Heard<WormholeError>()
    var container: TemporaryContainer? = try TemporaryContainer()
    let shared = try #require(try container?.open())
    _ = try shared.channel("speed", of: Int.self).watch { _ in
    } failure: {
      failures.add($0)
    }
    #expect(shared.subscriptions.count == 1)
    container = nil
    #expect(shared.subscriptions.count == 0)
    #expect(failures.all == [])
  }

  @Test func membersSeeEachOther() async throws {
    let two = try await TwoMembers("left", "right")
    #expect(two.first.name == "left")
    #expect(try two.toSecond.reachability == .running)
    #expect(try two.toFirst.reachability == .running)
    let responding = two.first.respond(to: Int.self) { $0 + 1 }
    #expect(try await two.toFirst.request(1, as: Int.self, within: patience) == 2)
    responding.stop()
  }

  @Test func eventuallyAsksAnActor() async throws {
    actor Count {
      var looks = 0
      func look() -> Int {
        looks += 1
        return looks
      }
    }
    let count = Count()
    try await WormholeTesting.eventually("three looks", within: patience) {
      await count.look() == 3
    }
    #expect(await count.looks == 3)
  }

  @Test func eventuallyWaits() async throws {
    let heard = Heard<Int>()
    try await WormholeTesting.eventually("three looks", within: patience) {
      heard.add(1)
      return heard.count == 3
    }
    let error = try await failure {
      try await WormholeTesting.eventually("a wonder", within: .milliseconds(1)) { false }
    }
    #expect(error.description.hasPrefix("cannot wait for 'a wonder': the condition did not hold"))
  }
}
