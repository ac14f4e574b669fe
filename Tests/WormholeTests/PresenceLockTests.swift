import Synchronization
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Shared locks on `presence`, which every process that may read the file can hold: such a lock is
/// not a presence, and keeps no process from joining.
@Suite(.blocking) struct PresenceLockTests {
  private func be(
    _ place: SharedPlace, _ user: SharedPlace.User, _ name: String
  ) throws -> Running {
    let running = try place.start(user, .be(place.path, name))
    try eventually("'\(name)' has joined") { try running.output.contains("\n") }
    return running
  }

  @Test func aSharedLockIsNobodysPresence() throws {
    guard let place = try SharedPlace.make(for: "a lock of another user") else { return }
    let first = try be(place, .alice, "tv")
    try first.child.send(.kill)
    _ = try first.outcome()
    let home = place.path + "/members/tv"
    let sharing = try place.start(.bob, .share(home, "presence"))
    try eventually("he has a lock") { try sharing.output == "held\n" }
    #expect(try place.run(.alice, .ask(place.path, "tv")).output == "notRunning\n")
    let again = try be(place, .alice, "tv")
    #expect(try place.run(.bob, .ask(place.path, "tv")).output == "running\n")
    let taken = try place.run(.bob, .join(place.path, "tv"))
    #expect(taken.errors.contains("has the name"), "\(taken)")
    try again.child.send(.kill)
    _ = try again.outcome()
    #expect(!sharing.hasEnded)
    // The file that replaced the locked file is for the whole group.
    #expect(try place.exclusive() == [])
    #expect(try place.run(.bob, .join(place.path, "tv")).output == "joined\nleft\n")
    #expect(try place.run(.alice, .join(place.path, "tv")).output == "joined\nleft\n")
  }

  /// A process that was suspended before the rename of its new file replaces no other holder's
  /// file.
  @Test func whoeverIsStoppedInReplacingReplacesNoOther() throws {
    guard let place = try SharedPlace.make(for: "a lock of another user") else { return }
    #expect(try place.run(.alice, .join(place.path, "tv")).output == "joined\nleft\n")
    let home = place.path + "/members/tv"
    let sharing = try place.start(.bob, .share(home, "presence"))
    try eventually("he has a lock") { try sharing.output == "held\n" }
    let stopped = try place.start(
      .alice, .join(place.path, "tv"),
      environment: ["WORMHOLE_FAULTS=rename~members/tv/presence@1:before:stop"])
    try stopped.waitUntilStopped()
    let other = try be(place, .bob, "tv")
    try stopped.child.send(.go)
    let end = try stopped.outcome()
    #expect(end.output == "" && end.errors.contains("has the name"), "\(end)")
    #expect(!other.hasEnded)
    #expect(try place.run(.alice, .ask(place.path, "tv")).output == "running\n")
    let left = "channels system notices members guests staging damaged container.plist"
    let root = try Descriptor.open(path: place.path, [.readOnly, .directory])
    #expect(Set(try root.names()) == Set(left.split(separator: " ").map(String.init)))
  }

  /// Of all processes that find the file locked, exactly one replaces the file.
  @Test func exactlyOneJoinsThoughTheFileIsLockedAgainAndAgain() throws {
    let meeting = try Meeting()
    try meeting.container.join(as: "phone").leave()
    let isOver = Atomic<Bool>(false)
    let path = meeting.path + "/members/phone/presence"
    let locking = try Thread("locking") {
      var held: [OpenDirectory] = []
      while !isOver.load(ordering: .relaxed) {
        if let file = try? Descriptor.open(path: path, [.readOnly]),
          (try? file.trySharedPresenceLock()) == true
        {
          held.append(OpenDirectory(file))
          if held.count > 20 { held.removeFirst() }
        }
        Processes.yield()
      }
    }
    defer {
      isOver.store(true, ordering: .relaxed)
      locking.join()
    }
    let rounds = TestRun.isLong ? 100 : 15
    let peers = try (0..<6).map { _ in
      try Running(.joinInTurns(meeting.path, "phone", processes: 6, rounds: rounds))
    }
    let won = try peers.flatMap { peer in
      let outcome = try peer.outcome(within: .seconds(120))
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
      return outcome.output.split(separator: "\n").compactMap { Int($0) }
    }
    #expect(won.sorted() == Array(1...rounds))
  }
}
