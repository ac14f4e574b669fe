import Syscalls
import TestSupport
import TestTraits
import Testing

@testable import SharedContainer

/// New files that somebody else takes away while their owner puts them into place.
@Suite(.blocking) struct HiddenFileTests {
  /// To remove a directory with what is in it takes many steps.
  @Test func aDirectoryThatIsBeingRemovedIsNotPutIntoPlace() throws {
    let folder = try TemporaryDirectory()
    let name = AccessName(stamp: 1, process: "0123456789abcdef", number: 1)
    try folder.descriptor.makeDirectory("target", mode: 0o700)
    try folder.write("", to: "target/old")
    let target = AccessPath(folder.path + "/target")
    let path = HiddenFile.path(beside: target, name, 0)
    let hidden = try HiddenFile(beside: target, at: path)
    try Descriptor.open(path: path, [.readOnly, .directory]).makeDirectory("new", mode: 0o700)
    let new = try Descriptor.open(path: hidden.path, [.readOnly, .directory])
    for number in 1...3 { _ = try new.open("part-\(number)", [.writeOnly, .create], mode: 0o600) }
    let failure = Monitor<Errno?>(nil)
    let thread = try Thread("other") {
      let rule = FaultRule(.unlink, path: "part-", moment: .after, .delay(milliseconds: 500))
      FaultPoints.with([rule]) {
        let error = Errno.of { () throws(Errno) in try HiddenFile.remove(path, of: name) }
        failure.withLock { $0 = error }
      }
    }
    try eventually("it is being removed") { try new.names().count < 3 }
    let outcome = try hidden.exchange()
    thread.join()
    #expect(outcome != .exchanged)
    #expect(try folder.descriptor.open("target", [.readOnly, .directory]).names() == ["old"])
    #expect(failure.withLock { $0 } == nil)
    #expect(try folder.descriptor.names() == ["target"])
    #expect(try hidden.exchange() == .superseded)
  }
}
