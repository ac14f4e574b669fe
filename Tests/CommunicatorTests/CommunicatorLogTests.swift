import TestSupport
import TestTraits
import Testing

/// What Communicator logs because no call of the program returns it.
///
/// As processes, since a process has one log.
@Suite(.blocking) struct CommunicatorLogTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  private func start(
    _ program: String, _ role: String, in container: String, _ steps: [String]
  ) throws -> Running {
    try Running(
      Programs.built("DropInPeer"), [program] + steps,
      environment: [
        "WORMHOLE_ROLE=\(role)", "WORMHOLE_CONTAINER=\(folder.path)/\(container)",
        "WORMHOLE_GROUP=", "WORMHOLE_WATCH=watch",
      ])
  }

  private func lines(_ text: String, with part: String) -> [Substring] {
    text.split(separator: "\n").filter { $0.contains(part) }
  }

  /// The states that nobody observes are no content, and their loss is not logged.
  @Test func aUserInfoOfUnknownFormIsLoggedAndAStateIsNot() throws {
    let watch = try start("communicator", "watch", in: "c", ["observe=guaranteed", "await=never"])
    let phone = try start("session", "phone", in: "c", ["activate", "info=5", "await=never"])
    try eventually("the transfer's end") { try phone.output.contains("finished n=5 ok\n") }
    try eventually("the log entry") { try !lines(watch.errors, with: "dropped").isEmpty }
    let dropped = try lines(watch.errors, with: "dropped")
    #expect(dropped.count == 1)
    let entry =
      "dropped a call of a message of Communicator: the delegate does not implement the method"
    #expect(dropped.first?.contains(entry) == true)
    #expect(try !watch.output.contains("guaranteed"))
  }

  @Test func anActivationThatFailsIsLoggedAndItsStateIsTold() throws {
    try folder.write("", to: "file")
    let phone = try start("communicator", "phone", in: "file", ["observe=state", "await=never"])
    try eventually("the state") { try phone.output.contains("state notActivated\n") }
    let failed = "the watch session failed: "
    try eventually("the log entry") { try !lines(phone.errors, with: failed).isEmpty }
    let entries = try lines(phone.errors, with: failed)
    #expect(entries.count == 1)
    #expect(entries.first?.contains("\(folder.path)/file") == true)
  }
}
