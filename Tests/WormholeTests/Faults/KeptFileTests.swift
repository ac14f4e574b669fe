import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Files that the system refuses to remove or to make: the messages end all the same, and the log
/// states the refusal.
@Suite(.blocking) struct KeptFileTests {
  private let logged = Heard<LogEntry>()

  private func refusal(_ call: Call, _ path: String, _ error: Errno) -> FaultRule {
    FaultRule(call, path: path, persistent: true, .fail(error))
  }

  private func warnings(_ start: String) -> [String] {
    logged.all.filter { $0.level == .warning }.map(\.text).filter { $0.hasPrefix(start) }
  }

  @Test func aMemberIsWarnedOfAFileThatOutlivesItsMessage() throws {
    let files = try FilePair { [logged] in $0.log = { logged.add($0) } }
    try files.make("film", size: 1000)
    let sent = try files.phone.send(file: files.path("film"))
    let message = try #require(try files.watch.take(1).first)
    try FaultPoints.with([refusal(.unlink, "watch/files/", .inputOutput)]) {
      try message.acknowledge()
    }
    try eventually("it is delivered") { sent.status == .delivered }
    #expect(warnings("cannot remove the file of message '\(sent.id)': ").count == 1)
    #expect(try files.names("files").count == 1)
  }

  /// Claims a message with a file.
  private func claimed() throws -> (Meeting, QueueCallers, Message) {
    let meeting = try Meeting { [logged] in $0.log = { logged.add($0) } }
    try meeting.folder.write("content", to: "file")
    let queue = meeting.container.queue("jobs", of: Int.self)
    try queue.send(1, file: meeting.folder.path + "/file", .quick())
    let callers = try queue.callers(handlingDeadline: nil)
    return (meeting, callers, try #require(callers.next(until: .now + patience)))
  }

  @Test func aWorkerIsWarnedOfAFileThatOutlivesItsMessage() throws {
    let (meeting, callers, message) = try claimed()
    try FaultPoints.with([refusal(.unlink, "jobs/files/", .inputOutput)]) {
      try message.acknowledge()
    }
    #expect(warnings("cannot remove the file of message '\(message.id)': ").count == 1)
    #expect(try meeting.container.queue("jobs", of: Int.self).messages.isEmpty)
    callers.stop()
  }

  /// The message goes back although the copy stays.
  @Test func aWorkerIsWarnedOfACopyThatOutlivesItsClaim() throws {
    let (meeting, callers, message) = try claimed()
    let copy = meeting.folder.path + "/copy"
    try message.file?.move(to: copy)
    FaultPoints.with([refusal(.unlink, "/copy", .inputOutput)]) { message.requeue() }
    #expect(warnings("cannot remove the copy '\(copy)' of a file: ").count == 1)
    #expect(try meeting.folder.read("copy") == "content")
    callers.stop()
    let messages = try meeting.container.queue("jobs", of: Int.self).messages
    #expect(messages.map(\.id) == [message.id])
  }

  /// Reception frees space, and another error refuses it.
  @Test func onlyAFullDiskLetsAReceiverBeginWithoutARecordOfBatches() throws {
    let pair = try Pair { [logged] in $0.log = { logged.add($0) } }
    try pair.phone.send(contentsOf: [1, 2, 3], .quick())
    let heard = Heard<Handed>()
    let path = MemberDirectory.progressName
    let error = try failure {
      try FaultPoints.with([refusal(.rename, path, .inputOutput)]) {
        _ = try pair.watch.note(heard)
      }
    }
    #expect(error.errno == Errno.inputOutput.rawValue)
    var receiving: Subscription?
    try FaultPoints.with([refusal(.rename, path, .noSpace)]) {
      receiving = try pair.watch.note(heard)
    }
    try heard.wait("all") { $0.count == 3 }
    receiving?.stop()
    #expect(heard.all == (1...3).map { Handed($0) })
    let texts = logged.all.filter { $0.level == .warning }.map(\.text)
    #expect(
      texts.filter { $0.hasSuffix("; handled messages of a batch may be redelivered") }.count == 1,
      "\(texts)")
  }
}
