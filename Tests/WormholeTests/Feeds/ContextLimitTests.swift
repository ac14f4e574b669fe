import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Contexts that are too large, or not durable, and a description of a file.
@Suite(.blocking) struct ContextLimitTests {
  @Test func aContextMayTakeTheLimitAndNoByteMore() throws {
    let meeting = try Meeting()
    func peer(limit: Int) throws -> Peer {
      try meeting.another { $0.maximumValueBytes = limit }.peer("watch", from: "till")
    }
    let text = String(repeating: "x", count: 2000)
    #expect(try peer(limit: 1_000_000).setContext(text))
    let file = "members/watch/context/till,next"
    let size = try meeting.bytes(of: file).count
    #expect(try peer(limit: size).setContext(text, evenIfSame: true))
    let before = try meeting.bytes(of: file)
    let error = try failure {
      _ = try peer(limit: size - 1).setContext(text, evenIfSame: true)
    }
    #expect(error.code == .tooLarge && error.subject == "watch")
    #expect(error.reason == "more than \(size - 1) bytes (limit: bytes)")
    #expect(try meeting.bytes(of: file) == before)
  }

  @Test func aReceivedFileShowsItsNameAndItsSize() throws {
    let files = try FilePair()
    try files.make("film", size: 1000)
    try files.phone.send(file: files.path("film"))
    let message = try files.watch.take(1)[0]
    let file = try #require(message.file)
    #expect("\(file)" == "ReceivedFile 'film', 1000 bytes")
    try message.acknowledge()
  }

  #if FAULT_POINTS
    /// The context is there for the receiver, but its name may be lost in a power cut.
    @Test func aContextWhoseNameIsNotSyncedIsMadeAndNotDurable() throws {
      let pair = try Pair()
      try pair.phone.setContext(1, durability: .power)
      let rule = FaultRule(
        .fsync, path: "watch/context", persistent: true, .fail(.inputOutput))
      let error = try failure {
        try FaultPoints.with([rule]) { _ = try pair.phone.setContext(2, durability: .power) }
      }
      #expect(error.code == .notDurable && error.subject == "watch")
      #expect(error.errno == Errno.inputOutput.rawValue)
      #expect(error.reason.hasPrefix("the change was made, but the directory could not be synced"))
      #expect(try pair.phone.sentContext?.value(as: Int.self) == 2)
      // Without the wish for this durability nothing is synced.
      try FaultPoints.with([rule]) { _ = try pair.phone.setContext(3, durability: .process) }
      #expect(try pair.phone.sentContext?.value(as: Int.self) == 3)
    }
  #endif
}
