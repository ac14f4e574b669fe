import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeDropIns

/// The log for failures that the originals of the drop-in modules cannot report.
@Suite struct DropInLogTests {
  @Test(.blocking, .notSanitized("it keeps what is on the stack elsewhere", by: .address))
  func theThousandthLineTakesNoMoreStackThanTheFirst() throws {
    let places = Heard<UInt>()
    let mark = "how deep is the stack?"
    DropInLog.redirect { entry in
      // Concurrent tests may log lines of their own.
      guard "\(entry)".contains(mark) else { return }
      var local = 0
      // Only the address of the variable is of interest.
      withUnsafePointer(to: &local) { places.add(UInt(bitPattern: $0)) }
    }
    defer { DropInLog.redirect(to: nil) }
    for _ in 0..<1000 { DropInLog.tell(.info, mark) }
    let all = places.all
    let (first, last) = try (#require(all.first), #require(all.last))
    #expect(all.count == 1000)
    #expect(max(first, last) - min(first, last) < 1024)
  }
}
