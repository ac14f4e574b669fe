import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Members and queues that are not removed, and files of messages that have a second name.
@Suite(.blocking) struct RemovalRefusalTests {
  private let folder: TemporaryDirectory
  private let container: Container

  init() throws { (folder, container) = try Container.forTest() }

  private func names(_ path: String) throws -> [String] {
    try container.root.descriptor.open(path, .readOnlyDirectory).names()
  }

  private func expectRefusal(
    for part: MemberDirectory.Part, _ reason: String, _ hint: String
  ) throws {
    let path = "members/a/\(part.rawValue)"
    _ = try container.member("a")
    _ = try container.root.descriptor.open(path + "/x", .writeOnlyNew, mode: 0o600)
    let error = try failure { _ = try container.removeMember("a") }
    #expect(error.code == .refused)
    #expect(error.operation == "remove member")
    #expect(error.subject == "a")
    #expect(error.reason == reason)
    #expect(error.hint == hint)
    #expect(try names(path) == ["x"])
    try container.root.descriptor.unlink(path + "/x")
    #expect(try container.removeMember("a"))
    #expect(try names("members") == [])
  }

  @Test func whatIsOwedToAMemberIsNamed() throws {
    try expectRefusal(
      for: .dead, "its queue contains dead letters",
      "list the dead letters with 'wormhole queue a --dead', and retry or discard each with "
        + "'--retry ID' or '--discard ID', or discard all with '--discard-all'")
    try expectRefusal(
      for: .files, "its directory contains files of messages",
      "run 'wormhole doctor', which names the files and the remedy")
    try expectRefusal(
      for: .claimed, "its queue contains messages",
      "receive the messages, or cancel each with 'wormhole queue a --cancel ID'")
  }

  /// The remedies for messages do not help against a worker.
  @Test func aQueueWithAWorkerIsNotSaidToHaveMessages() throws {
    let queue = try container.member("q", in: .queues)
    let (home, presence) = try queue.makeWorker(deadline: nil)
    let error = try failure { _ = try container.removeMember("q", in: .queues) }
    #expect(error.code == .refused)
    #expect(error.operation == "remove queue")
    #expect(error.reason.contains("worker"), "\(error)")
    #expect(error.hint?.contains("--cancel") != true, "\(error)")
    #expect(try names("queues/q/workers") == [home.escaped])
    presence.release()
    #expect(try home.removeDeadWorker())
    #expect(try container.removeMember("q", in: .queues))
  }

  @Test func aFileInPlaceOfAMemberIsRefused() throws {
    _ = try container.root.descriptor.open("members/a", .writeOnlyNew, mode: 0o600)
    for isMaking in [true, false] {
      let error = try failure {
        if isMaking { _ = try container.member("a") } else { _ = try container.existingMember("a") }
      }
      #expect(error.code == .refused)
      #expect(error.operation == "open member")
      #expect(error.subject == "a")
      #expect(error.errno == Errno.notADirectory.rawValue)
    }
    #expect(try names("members") == ["a"])
  }

  /// A rename of one name of a file to another one leaves both names.
  @Test func aTargetThatIsTheFileItselfLeavesNoHiddenName() throws {
    var options = ContainerOptions.testing()
    options.sharing = .group
    let home = try Container.open(folder.path + "/g", options: options).member("a")
    let text = "the content"
    var sum = Checksum()
    sum.add(text.utf8.span.bytes)
    try home.part(.files).descriptor.open("x", .writeOnlyNew, mode: 0o600).write(text)
    try home.part(.files).descriptor.link("x", to: folder.descriptor, "out")
    let taking = MemberDirectory.TakeOptions(
      name: "x", size: text.utf8.count, checksum: sum.value, durability: .power,
      isReplacing: true)
    try home.takeAttachment(taking, to: UserPath(folder.path + "/out")) { _ in true }
    #expect(try folder.read("out") == text)
    #expect(try folder.descriptor.names().sorted() == ["c", "g", "out"])
    #expect(try home.part(.files).descriptor.names() == [])
  }

  /// What was not written is no data; still the copy has the size, and the sum counts the zeros.
  @Test func aHoleAtTheEndIsCopied() throws {
    let size = 1 << 20
    let source = try folder.descriptor.open("source", .readWriteNew, mode: 0o600)
    let target = try folder.descriptor.open("target", .readWriteNew, mode: 0o600)
    try source.write("head")
    try source.truncate(to: size)
    var found: UInt32 = 0
    // Bytes are copied, and not shared with the source.
    try FaultPoints.with([FaultRule(.clone, .fail(.notSupported))]) {
      found = try FileCopy.copy(source, to: target, size: size) { _ in true }
    }
    let bytes = try target.contents()
    var sum = Checksum()
    sum.add(bytes.span.bytes)
    #expect(bytes.count == size)
    #expect(found == sum.value)
    #expect(String(decoding: bytes.prefix(5), as: UTF8.self) == "head\0")
  }
}
