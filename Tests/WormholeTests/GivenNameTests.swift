import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage

/// Names that cannot be used: errors state the names as the caller has given them.
///
/// Locks and starts of members are slots with a prefix, which no caller knows.
@Suite struct GivenNameTests {
  private let meeting: Meeting
  private let long = String(repeating: "x", count: 181)

  init() throws { meeting = try Meeting() }

  @Test(.blocking) func aLocksNameIsTheCallers() throws {
    let error = try failure { try meeting.container.lock(long).hold {} }
    #expect(error.code == .invalidName && error.subject == long)
  }

  @Test func aLocksNameIsTheCallersForATaskToo() async throws {
    let lock = meeting.container.lock(long)
    let error = try await failure { try await lock.hold { await Task.yield() } }
    #expect(error.code == .invalidName && error.subject == long)
  }

  /// As with channels and members, though the file of a lock or a suite has a prefix.
  @Test(.blocking) func anEmptyNameIsRefusedWhereverANameIsUsed() throws {
    let container = meeting.container
    let errors = [
      try failure { try container.lock("").hold {} },
      try failure { try container.defaults("").set(1, forKey: "a") },
      try failure { _ = try container.defaults("").integer(forKey: "a") },
      try failure { try container.registerLaunch(of: "", program: "true") },
    ]
    for error in errors {
      #expect(error.code == .invalidName && error.subject.isEmpty)
      #expect(error.reason == "the name is empty")
    }
    #expect(try meeting.names("system").allSatisfy { !$0.hasSuffix(".") })
  }

  @Test(.blocking) func theNameOfAMemberToStartIsTheCallers() throws {
    let error = try failure {
      try meeting.container.registerLaunch(of: long, program: "true")
    }
    #expect(error.code == .invalidName && error.subject == long)
  }
}
