import TestSupport
import TestTraits
import Testing

@testable import WormholeContainerStorage
@testable import WormholeSyscalls

/// The 64 bytes in a lock file, which other programs may read.
@Suite(.blocking) struct HolderMarkTests {
  private func bytes(of mark: HolderMark) -> [UInt8] {
    withUnsafeBytes(of: mark.words) { Array($0) }
  }

  @Test func everyFieldHasItsPlace() {
    let owner = ProcessIdentity(
      process: 0x0102_0304, namespace: 0x1112_1314, started: 0x2122_2324, program: "wormhole",
      seed: 0x3132_3334_3536_3738)
    var mark = HolderMark(of: owner)
    mark.tenure = 0x41
    mark.renewals = 0x51
    let bytes = bytes(of: mark)
    #expect(bytes.count == HolderMark.size)
    #expect(Array(bytes[0..<8]) == Array("WHM1".utf8) + [4, 3, 2, 1])
    #expect(Array(bytes[8..<16]) == [0x14, 0x13, 0x12, 0x11, 0, 0, 0, 0])
    #expect(Array(bytes[16..<24]) == [0x24, 0x23, 0x22, 0x21, 0, 0, 0, 0])
    #expect(Array(bytes[24..<32]) == [0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31])
    #expect(bytes[32] == 0x41 && bytes[40] == 0x51)
    #expect(Array(bytes[48..<64]) == Array("wormhole".utf8) + [UInt8](repeating: 0, count: 8))
  }

  @Test func whatIsWrittenIsReadBack() throws {
    let folder = try TemporaryDirectory()
    let file = try folder.descriptor.open("1", [.readWrite, .create], mode: 0o600)
    #expect(try HolderMark(in: file).process == nil, "an empty file reads as zeros")
    var mark = HolderMark(of: .current)
    mark.tenure = 3
    try mark.write(to: file)
    #expect(try HolderMark(in: file) == mark)
    #expect(mark.process == Processes.current)
    #expect(try file.status().size == HolderMark.size)
  }

  @Test func aFreshFileNamesNobody() {
    #expect(HolderMark.unheld.process == nil)
    #expect(LockHolder(.unheld) == nil)
    #expect(LockHolder(HolderMark(words: SIMD8(repeating: .max))) == nil, "of another form")
  }

  @Test func theHolderIsLookedFor() throws {
    let own = ProcessIdentity.current
    func holder(namespace: UInt64, started: UInt64) -> LockHolder? {
      LockHolder(
        HolderMark(
          of: ProcessIdentity(
            process: own.process, namespace: namespace, started: started, program: "it", seed: 1)))
    }
    #expect(holder(namespace: own.namespace, started: own.started)?.state == .running)
    let gone = try #require(holder(namespace: own.namespace, started: own.started + 2))
    #expect(gone.state == .gone, "the number is another process's now")
    #expect(gone.description == "'it' (process \(own.process), gone)")
    #expect(holder(namespace: own.namespace + 1, started: own.started)?.state == .unknown)
    #expect(holder(namespace: 0, started: own.started)?.state == .unknown)
  }

  /// The name is printed on terminals, and any program may have written it.
  @Test func aHostileNameIsHarmless() {
    var mark = HolderMark(of: .current)
    let name = Array("a\u{1B}[2J\n'b'".utf8)
    var words: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &words) { $0.copyBytes(from: name) }
    (mark.words[6], mark.words[7]) = words
    #expect(mark.program == "a2Jb")
    (mark.words[6], mark.words[7]) = (.max, .max)
    #expect(mark.program == "")
  }
}
