import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Searches for a message that returns to its inbox after the inbox was listed.
@Suite(.blocking) struct MovedMessageTests {
  private let meeting: Meeting
  private let home: OpenDirectory
  private let name: String

  /// Makes a member with one message, which is claimed.
  init() throws {
    meeting = try Meeting()
    try meeting.container.join(as: "watch").leave()
    try meeting.container.peer("watch").send("one", .quick { $0.id = "ticket" })
    home = OpenDirectory(
      try Descriptor.open(path: meeting.path + "/members/watch", [.readOnly, .directory]))
    name = try #require(try meeting.names("members/watch/inbox").first)
    try home.descriptor.rename("inbox/\(name)", to: home.descriptor, "claimed/\(name)~1")
  }

  /// Runs the command, and requeues the message before the command lists the claimed messages.
  private func outcome(of arguments: [String]) throws -> ProcessOutcome {
    let looking = try Running(
      Programs.built("wormhole"), ["--container", meeting.path] + arguments,
      environment: ["WORMHOLE_FAULTS=getdents~watch/claimed:before:stop"])
    try looking.waitUntilStopped()
    try home.descriptor.rename("claimed/\(name)~1", to: home.descriptor, "inbox/\(name)")
    _ = try looking.waitOrGo()
    return try looking.outcome()
  }

  @Test func itIsInTheQueue() throws {
    let outcome = try outcome(of: ["queue", "watch"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output.hasPrefix("ticket\t"), "\(outcome.output)")
  }

  /// The other way round: the message is claimed after its name was listed in the inbox, and before
  /// it is read.
  @Test func itIsInTheQueueThoughItIsClaimed() throws {
    try home.descriptor.rename("claimed/\(name)~1", to: home.descriptor, "inbox/\(name)")
    let looking = try Running(
      Programs.built("wormhole"), ["--container", meeting.path, "queue", "watch"],
      environment: ["WORMHOLE_FAULTS=open~,ticket,:before:stop"])
    try looking.waitUntilStopped()
    try home.descriptor.rename("inbox/\(name)", to: home.descriptor, "claimed/\(name)~1")
    _ = try looking.waitOrGo()
    let outcome = try looking.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    #expect(outcome.output.hasPrefix("ticket\t"), "\(outcome.output)")
  }

  @Test func itsIdIsRefused() throws {
    let outcome = try outcome(of: ["send", "--to", "watch", "--id", "ticket", "two"])
    #expect(outcome.status == .exited(75), "\(outcome.errors)")
    #expect(try meeting.names("members/watch/inbox") == [name])
  }
}
