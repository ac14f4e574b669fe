import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Changes that depend on the present value.
@Suite(.blocking) struct UpdateTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  init() throws { meeting = try Meeting() }

  @Test func anUpdateAnswersWhatIsThereAfterIt() throws {
    let sum = container.channel("sum", of: Int.self)
    #expect(try sum.update { $0 = ($0 ?? 10) + 1 } == 11)
    #expect(try sum.update(default: 0) { $0 += 1 } == 12)
    #expect(try container.channel("other", of: Int.self).update(default: 5) { $0 += 1 } == 6)
    #expect(try sum.value == 12)
  }

  @Test func settingNilClears() throws {
    let sum = container.channel("sum", of: Int.self)
    try sum.put(1)
    #expect(try sum.update { $0 = nil } == nil)
    #expect(try sum.metadata?.isCleared == true)
    #expect(try sum.metadata?.version == 2)
  }

  @Test func whatIsLeftAsItWasIsNotWritten() throws {
    let sum = container.channel("sum", of: Int.self)
    #expect(try sum.update { _ in } == nil)
    #expect(try sum.update(default: 5) { _ in } == 5)
    #expect(try sum.metadata == nil)
    try sum.put(7)
    #expect(try sum.update { $0 = 7 } == 7)
    #expect(try sum.metadata?.version == 1)
  }

  @Test func aDiscardedUpdateIsNotWritten() throws {
    struct Plain: Codable, Sendable { var number = 0 }
    let plain = container.channel("plain", of: Plain.self)
    try plain.put(Plain())
    // Values of this type cannot be compared, so an equal value is written.
    try plain.update { $0?.number = 0 }
    #expect(try plain.metadata?.version == 2)
    let after = try plain.updateIfNeeded { value in
      value?.number = 5
      return .keep
    }
    #expect(after?.number == 0)
    let kept = try plain.updateIfNeeded(default: Plain()) { value in
      value.number = 5
      return value.number == 5 ? .keep : .commit
    }
    #expect(kept.number == 0)
    #expect(try plain.metadata?.version == 2)
  }

  @Test func whatTheBodyThrowsComesThrough() throws {
    struct Mine: Error {}
    let sum = container.channel("sum", of: Int.self)
    try sum.put(1)
    #expect(throws: Mine.self) {
      try sum.update { value in
        value = 2
        throw Mine()
      }
    }
    #expect(try sum.value == 1)
    #expect(try sum.update(default: 0) { $0 += 1 } == 2)
  }

  @Test func anotherChannelInsideAnUpdateIsNested() throws {
    let sum = container.channel("sum", of: Int.self)
    let other = container.channel("other", of: Int.self)
    var code: WormholeError.Code?
    try sum.update(default: 0) { value in
      code = try failure { try other.put(1) }.code
      // A read waits for no lock.
      value = try other.value ?? 1
    }
    #expect(code == .nested)
    #expect(try sum.value == 1)
  }

  /// P2: puts beside updates lose nothing either.
  @Test func twoProcessesLoseNothing() throws {
    let sum = container.channel("sum", of: Int.self)
    let peers = try (0..<2).map { _ in
      try Running(.count(meeting.path, "sum", times: 200))
    }
    for _ in 0..<200 { try sum.update(default: 0) { $0 += 1 } }
    for peer in peers { #expect(try peer.outcome().status == .exited(0)) }
    #expect(try sum.value == 600)
    #expect(try sum.metadata?.version == 600)
  }

  /// P3: a process that is suspended inside an update is overtaken; its own update is made when the
  /// process resumes.
  @Test func aStoppedUpdateIsPassedBy() throws {
    let sum = container.channel("sum", of: Int.self)
    try sum.put(10)
    let stopped = try Running(
      .stopUpdating(meeting.path, "sum"))
    try stopped.waitUntilStopped()
    for _ in 0..<5 { try sum.update(default: 0) { $0 += 1 } }
    #expect(try sum.value == 15)
    try eventually("it ends") {
      if try Processes.isStopped(stopped.child.process) { try stopped.child.send(.go) }
      return stopped.hasEnded
    }
    #expect(try sum.value == 16)
  }

  @Test func aWaitForALockEnds() throws {
    let container = try meeting.another {
      $0.timeout = .milliseconds(100)
      $0.lease = .seconds(3600)
    }
    let sum = container.channel("sum", of: Int.self)
    let stopped = try Running(
      .stopUpdating(meeting.path, "sum"))
    try stopped.waitUntilStopped()
    let error = try failure { try sum.put(1) }
    #expect(error.code == .timedOut)
    #expect(error.reason.contains("process \(stopped.child.process), stopped"))
  }
}
