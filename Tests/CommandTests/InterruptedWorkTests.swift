import TestTraits
import Testing
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeCommand

/// The threads of a command between the handling of a signal and the end of the process.
@Suite(.blocking) struct InterruptedWorkTests {
  /// The report states all lines that were sent.
  @Test func noLineIsSentAfterTheReportOfAnInterruption() throws {
    let count = LineCount(Output("wormhole", isQuiet: true))
    try count.send(2) {}
    count.interrupt()
    var isSent = false
    let error = #expect(throws: WormholeError.self) { try count.send(1) { isSent = true } }
    #expect(error?.errno == Errno.interrupted.rawValue)
    #expect(!isSent)
    #expect(count.sent == 2)
  }

  @Test func noFileIsMadeAfterTheRemovalOfTheDirectory() throws {
    let folder = RestoreFolder()
    defer { folder.remove() }
    let path = try folder.makeFile("film")
    #expect((try? Descriptor.status(ofPath: path)) != nil)
    let directory = String(path.dropLast("film".count))
    folder.remove()
    #expect((try? Descriptor.status(ofPath: directory)) == nil)
    let error = #expect(throws: WormholeError.self) { try folder.makeFile("film") }
    #expect(error?.errno == Errno.interrupted.rawValue)
  }
}
